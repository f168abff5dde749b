"""The result of `explain`: one explanation per kernel and target, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from wavecast.analyze.result import CodeAnalysis
from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.isa.program import Program
from wavecast.json_objects import JsonObject, doc
from wavecast.perfmodel.bounds import Roofline
from wavecast.pipeline.explain.prediction import NOT_ASKED, Predicted
from wavecast.rules.finding import Finding


@dataclass(frozen=True, slots=True)
class Explanation:
    """One kernel on one device."""

    code: CodeObject
    device: Device
    launch: Launch | None
    analysis: CodeAnalysis
    roofline: Roofline
    findings: tuple[Finding, ...]
    program: Program | None
    predicted: Predicted = NOT_ASKED


@dataclass(frozen=True, slots=True)
class Failure:
    """One kernel or target that could not be explained; the others still are."""

    kernel: str
    target: str
    stage: str  # capture, compile, parse, analyze
    message: str
    hint: str = ""


class ConfigurationChoice(JsonObject):
    """A configuration of an autotuned call."""

    kernel: str
    device: str
    configuration: str
    seconds: Annotated[float | None, doc("predicted time of a launch")]
    limiter: str
    why_not: Annotated[str, doc("why there is no predicted time; empty where there is one")]
    chosen: Annotated[bool, doc("whether this configuration is the explained one")]


@dataclass(frozen=True, slots=True)
class ModelLineTime:
    """The kernels and calls of some `lines` (`path:line`) of a compiled model on a device; () are
    those of no line. `seconds` is the predicted time of all of them, None where one has none."""

    device: Device
    lines: tuple[str, ...]
    kernels: tuple[str, ...]
    seconds: float | None


@dataclass(frozen=True, slots=True)
class ModelLineChange:
    """What runs for some lines of a compiled model, and what would with the kernel library."""

    lines: tuple[str, ...]
    before: ModelLineTime
    after: ModelLineTime

    @property
    def saved(self) -> float | None:
        """Seconds less, negative for more; None where one time is not known."""
        if self.before.seconds is None or self.after.seconds is None:
            return None
        return self.before.seconds - self.after.seconds


@dataclass(frozen=True, slots=True)
class ExplainReport:
    """Everything one `explain` run produced. `notes` are lines a user must see once; `choices` the
    configurations of autotuned kernels that were compared, the best of a call first. `lines` are
    those of a model under `torch.compile`, `changes` what the kernel library changes in it."""

    explanations: tuple[Explanation, ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    inputs: tuple[str, ...]
    choices: tuple[ConfigurationChoice, ...] = ()
    lines: tuple[ModelLineTime, ...] = ()
    changes: tuple[ModelLineChange, ...] = ()
