"""What a comparison of two versions of kernels finds. Frozen; times are seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wavecast.analyze.result import LoopAnalysis
from wavecast.arch import Device
from wavecast.pipeline.explain.result import Explanation, Failure
from wavecast.rules.finding import Finding

Basis = Literal["seconds", "cycles"]
"""What parts of a kernel are weighed by: predicted seconds of the launch, or, where there is no
prediction on both sides, clock cycles of the pipe it uses, one wave executing each instruction
once. Without instructions (NVIDIA), a loop is weighed by the cycles of an iteration on the
slowest pipe."""


RowChange = Literal["same", "operands", "changed", "gone", "new"]


@dataclass(frozen=True, slots=True)
class Delta:
    """A number before and after; None where that side does not have it."""

    name: str
    before: float | None
    after: float | None

    @property
    def changed(self) -> bool:
        return self.before != self.after

    @property
    def difference(self) -> float:
        """After minus before; what a side lacks counts as 0."""
        return (self.after or 0.0) - (self.before or 0.0)


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A line of two listings side by side.

    `kind` is `same` (equal but for the numbers of registers), `operands` (the same instruction, fed
    by another one), `changed` (one instruction in the place of another), `gone` or `new`. `before`
    and `after` are indices of instructions in their programs.
    """

    kind: RowChange
    before: int | None
    after: int | None
    before_text: str = ""
    after_text: str = ""


@dataclass(frozen=True, slots=True)
class DiffRegion:
    """A loop without the loops inside it, or all code outside of loops (`loop` is False).

    `before` and `after` are the loop on each side, None where it has no such loop. `lines` are the
    numbers of its source line, 0 where unknown, `text` is that line. `spent` is what its
    instructions take (`KernelDiff.basis`); `rows` are its instructions side by side, () where the
    code of a side is not at hand.
    """

    loop: bool
    before: LoopAnalysis | None
    after: LoopAnalysis | None
    lines: tuple[int, int]
    text: str
    spent: Delta
    rows: tuple[DiffRow, ...]

    @property
    def changes(self) -> int:
        """How many rows are not the same."""
        return sum(row.kind != "same" for row in self.rows)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A source line of the kernel, matched across versions by its text. Numbers are 0 on a side
    that does not have it; `spent` as in `DiffRegion`."""

    file: str
    before: int
    after: int
    text: str
    spent: Delta


@dataclass(frozen=True, slots=True)
class KernelDiff:
    """One launched kernel on one device, before and after; None on a side without it.

    `number` counts launches of that name, from 1. `figures` are KPIs by their name, `resources`
    what the code occupies, `mix` instructions by cost class. `responsible` is the region where most
    of the change of time takes place, None where nothing changes. `same_code` says that machine
    code and metadata are equal, byte for byte.
    """

    name: str
    number: int
    device: Device
    before: Explanation | None
    after: Explanation | None
    figures: tuple[Delta, ...] = ()
    resources: tuple[Delta, ...] = ()
    mix: tuple[Delta, ...] = ()
    basis: Basis = "seconds"
    regions: tuple[DiffRegion, ...] = ()
    responsible: DiffRegion | None = None
    lines: tuple[DiffLine, ...] = ()
    findings_gone: tuple[Finding, ...] = ()
    findings_new: tuple[Finding, ...] = ()
    same_code: bool = False

    @property
    def paired(self) -> bool:
        return self.before is not None and self.after is not None

    @property
    def listed(self) -> bool:
        """Whether the instructions of both sides are at hand."""
        sides = (self.before, self.after)
        return all(side is not None and side.program is not None for side in sides)

    def figure(self, name: str) -> Delta | None:
        """A KPI by name, None where neither side has it."""
        return next((delta for delta in self.figures if delta.name == name), None)


@dataclass(frozen=True, slots=True)
class Diff:
    """Two sides compared: their labels, an entry per kernel and device, what failed on each."""

    before: str
    after: str
    kernels: tuple[KernelDiff, ...]
    failed_before: tuple[Failure, ...] = ()
    failed_after: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()


__all__ = ["Basis", "Delta", "Diff", "DiffLine", "DiffRegion", "DiffRow", "KernelDiff", "RowChange"]
