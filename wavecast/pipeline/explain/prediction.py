"""The predicted time of an explained launch: from a captured sample, else from its code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.analyze.result import CodeAnalysis
from wavecast.arch import Device
from wavecast.compile import ttgir
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.errors import MissingFact, Unpredictable
from wavecast.isa.program import Kernel, Program
from wavecast.perfmodel.account import SourcePosition, position_of
from wavecast.perfmodel.notes import Note
from wavecast.perfmodel.predict import predict
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.perfmodel.sm.profile import profile_of_sass
from wavecast.perfmodel.static import profile_of_code


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """A prediction and the profile it is of, or the reason why there is none, and what helps."""

    prediction: Prediction | None
    profile: LaunchProfile | None = None
    why_not: str = ""
    hint: str = ""

    @property
    def needs_sample(self) -> bool:
        """Whether an executed sample would tell more: the code gives no time, or only an estimate
        of what workgroups reuse."""
        return self.profile is None or Note.UNKNOWN_REUSE in self.profile.notes


NOT_ASKED: Final = Predicted(None, None, "not asked for")


def predict_launch(
    launch: Launch,
    analysis: CodeAnalysis,
    kernel: Kernel | Program,
    device: Device,
    *,
    sampled: LaunchProfile | None = None,
    what_if: bool = False,
    mall_resident: Mapping[str, float] | None = None,
) -> Predicted:
    """Predict a launch; where that fails, `why_not` has the reason.

    `kernel` is the parsed code, of NVIDIA code its program. The profile is `sampled` where there is
    one, else that of the code. `mall_resident` is the share, by argument, of the bytes that are in
    the memory-side cache before a launch predicted from its code; sampled profiles begin with empty
    caches.
    """
    try:
        if isinstance(kernel, Program):
            profile = profile_of_sass(launch, analysis, kernel, device)
        else:
            profile = sampled or profile_of_code(launch, analysis, kernel, device, mall_resident)
        operations = _operations(launch.code)
        prediction = predict(profile, device, what_if=what_if, operations=operations)
    except (Unpredictable, MissingFact) as error:
        return Predicted(None, None, error.message, error.hint)
    return Predicted(prediction, profile)


def _operations(code: CodeObject) -> dict[SourcePosition, list[str]]:
    """The operations of Triton's GPU IR by source place, where the code has it."""
    text = code.stages.get("ttgir")
    by_position: dict[SourcePosition, list[str]] = {}
    for operation in ttgir.parse(text).operations if isinstance(text, str) else ():
        if operation.location is not None:
            name = f"{operation.line}: {operation.name}"
            by_position.setdefault(position_of(operation.location), []).append(name)
    return by_position


__all__ = ["NOT_ASKED", "Predicted", "predict_launch"]
