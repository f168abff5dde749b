"""A finding: one thing about a kernel worth changing, and the rule that found it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from wavecast.analyze.result import CodeAnalysis
from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.isa.instruction import SourceLocation
from wavecast.isa.program import Program
from wavecast.perfmodel.bounds import Roofline
from wavecast.rules.fix import Fix, Outcome

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a rule: `evidence` has the facts, `advice` what to change.

    `fixes` are changes whose time can be predicted, in the order in which to try them; the best
    one's advice replaces `advice`. `locations` are the lines of a finding merged from several.
    `covers` are the instructions it explains: findings about nothing else are left out.
    """

    rule: str
    severity: Severity
    message: str
    evidence: str
    advice: str
    location: SourceLocation | None = None
    instruction: int | None = None
    time_saved: float | None = None
    """The fraction of the predicted time that its fix saves; None where that is not predicted."""
    fixes: tuple[Fix, ...] = ()
    outcome: Outcome | None = None
    """The predicted effect of the fix that is advised."""
    locations: tuple[SourceLocation, ...] = ()
    covers: frozenset[int] = frozenset()
    about: str = ""
    """The words its message begins with where it says the same of other things: `loads of x`."""


def kernel_location(code: CodeObject) -> SourceLocation | None:
    """The first line of a kernel; None where it is not known, as in assembly."""
    return SourceLocation(code.source, code.source_line) if code.source_line else None


@dataclass(frozen=True, slots=True)
class RuleInput:
    """The input of a rule. `program` is the machine code (SASS for NVIDIA), `launch` None without a
    launch."""

    code: CodeObject
    device: Device
    analysis: CodeAnalysis
    roofline: Roofline
    program: Program
    launch: Launch | None

    @property
    def kernel_location(self) -> SourceLocation | None:
        """The first line of the kernel, for findings about the whole kernel; None where it is not
        known, as in assembly."""
        return kernel_location(self.code)


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of the registry. `name` is kebab-case; `check` yields findings. A rule that
    `compiles_often` runs with what-ifs only: every fix takes a compilation."""

    name: str
    severity: Severity
    title: str
    explanation: str
    check: Callable[[RuleInput], Iterable[Finding]]
    compiles_often: bool = False
