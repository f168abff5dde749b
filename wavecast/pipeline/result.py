"""The result of `explain`: one explanation per kernel and target, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.analyze.result import CodeAnalysis
from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.isa.program import Program
from wavecast.model.bounds import Roofline
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


@dataclass(frozen=True, slots=True)
class Failure:
    """One kernel or target that could not be explained; the others still are."""

    kernel: str
    target: str
    stage: str  # capture, compile, parse, analyze
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything one `explain` run produced. `notes` are lines a user must see once."""

    explanations: tuple[Explanation, ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    inputs: tuple[str, ...]
