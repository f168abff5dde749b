"""Where the predicted time goes: by source line, by cause, and from the top down.

What waves of the simulated unit spend at an instruction, waiting or issuing, is that instruction's
share of the time between launch and end; shares of one kind add up to the prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

import numpy as np

from wavecast.analyze.mix import instruction_class
from wavecast.isa.instruction import Instruction, SourceLocation
from wavecast.isa.program import Program
from wavecast.perfmodel.prediction import Share
from wavecast.perfmodel.simulation.causes import CAUSES, ISSUE
from wavecast.perfmodel.simulation.timing import LaunchTiming

LEAST: Final = 1e-4
"""Shares below this part of the time are gathered under `other`."""
SourcePosition = tuple[str, int, int]
"""A position in source code: file name without folders, line, column."""
NONE: Final[Mapping[SourcePosition, Sequence[str]]] = {}
NO_OPERATION: Final = "no operation"
NO_LINE: Final = "no source line"
LAUNCH: Final = "launch"


def position_of(location: SourceLocation) -> SourcePosition:
    """The position of a location itself, not of the call that inlined it."""
    return PurePath(location.file).name, location.line, location.column


def account(
    timing: LaunchTiming,
    program: Program,
    operations: Mapping[SourcePosition, Sequence[str]] = NONE,
) -> tuple[Share, ...]:
    """Shares of the kinds `line`, `stall` and `top-down`, each adding up to `timing.seconds`.

    With `operations`, names of a higher IR's operations by source position, also shares of the kind
    `ir`: the time of an instruction is divided evenly among the operations of its position.
    """
    work = timing.seconds - timing.launch
    return (
        *_shares("line", _by_line(timing, program), work, timing.launch),
        *_shares("stall", _by_cause(timing), work, timing.launch),
        *_top_down(timing, work),
        *(
            _shares("ir", _by_operation(timing, program, operations), work, timing.launch)
            if operations
            else ()
        ),
    )


def _by_line(timing: LaunchTiming, program: Program) -> dict[str, float]:
    stalls = timing.unit.stalls.sum(axis=1)
    clocks_by_line: dict[str, float] = {}
    for instruction in program.instructions:
        clocks = float(stalls[instruction.index])
        if clocks:
            location = instruction.location
            name = NO_LINE if location is None else str(location.outermost)
            clocks_by_line[name] = clocks_by_line.get(name, 0.0) + clocks
    return clocks_by_line


def _by_operation(
    timing: LaunchTiming, program: Program, operations: Mapping[SourcePosition, Sequence[str]]
) -> dict[str, float]:
    stalls = timing.unit.stalls.sum(axis=1)
    clocks_by_operation: dict[str, float] = {}
    for instruction in program.instructions:
        clocks = float(stalls[instruction.index])
        if clocks:
            names = _operations_of(instruction, operations)
            for name in names:
                clocks_by_operation[name] = clocks_by_operation.get(name, 0.0) + clocks / len(names)
    return clocks_by_operation


def _operations_of(
    instruction: Instruction, at: Mapping[SourcePosition, Sequence[str]]
) -> Sequence[str]:
    """The operations of an instruction's place, or of the call it was inlined at: those that make
    such instructions, else those that make any."""
    location = instruction.location
    patterns = _MADE_BY.get(instruction_class(instruction.decoded), ())
    while location is not None:
        names = at.get(position_of(location), ())
        working = [name for name in names if not any(part in name for part in _NO_CODE)]
        matches = [name for name in working if any(part in name for part in patterns)]
        if matches or working or names:
            return matches or working or names
        location = location.inlined_at
    return [NO_OPERATION]


_MADE_BY: Final = {
    "matrix": ("dot",),
    "vmem_load": (".load", "buffer_load", "async_copy"),
    "vmem_store": (".store", "buffer_store"),
    "vmem_atomic": ("atomic",),
    "lds": ("local_load", "local_store", "convert_layout", "transpose", "reduce", "scan"),
}
"""Instruction class -> parts of the names of Triton operations that make such instructions."""
_NO_CODE: Final = (
    *("scf.", "broadcast", "expand_dims", "splat", "memdesc", "local_alloc", "make_range"),
    *("constant", "reshape", "tt.trans"),
)
"""Parts of the names of operations that rename or rearrange values and make no code themselves."""


def _by_cause(timing: LaunchTiming) -> dict[str, float]:
    return dict(zip(CAUSES, timing.unit.stalls.sum(axis=0).tolist(), strict=True))


def _shares(kind: str, parts: Mapping[str, float], work: float, launch: float) -> list[Share]:
    total = sum(parts.values()) or 1.0
    large = {name: part for name, part in parts.items() if part > LEAST * total}
    shares = [Share(kind, name, work * part / total) for name, part in large.items()]
    rest = total - sum(large.values())
    if rest > 1e-12 * total:
        shares.append(Share(kind, "other", work * rest / total))
    shares.append(Share(kind, LAUNCH, launch))
    return sorted(shares, key=lambda share: -share.seconds)


def _top_down(timing: LaunchTiming, work: float) -> list[Share]:
    """Time of the launch as its units' SIMDs see it: useful matrix work, other issue where the
    matrix pipes rest, waiting by cause, and units without work: too few workgroups, or the tail."""
    placement, unit = timing.placement, timing.unit
    filled = placement.workgroups / (placement.most_per_unit * placement.units)
    tail = work * (1 - min(1.0, filled))
    rest = work - tail
    span = max(unit.clocks, 1.0) * placement.simds
    matrix = min(1.0, unit.busy["matrix"] / span)
    other = min(1.0 - matrix, (unit.busy["vector"] + unit.busy["transcendental"]) / span)
    causes = np.delete(unit.stalls.sum(axis=0), ISSUE)
    names = [name for name in CAUSES if name != CAUSES[ISSUE]]
    waiting = rest * (1 - matrix - other)
    weight = causes / causes.sum() if causes.sum() else causes
    shares = [
        Share("top-down", "matrix work", rest * matrix),
        Share("top-down", "vector work", rest * other),
        *(
            Share("top-down", f"waiting: {name}", waiting * float(part))
            for name, part in zip(names, weight, strict=True)
            if part > LEAST
        ),
        Share("top-down", "idle units", tail),
        Share("top-down", LAUNCH, timing.launch),
    ]
    missing = timing.seconds - sum(share.seconds for share in shares)
    if abs(missing) > 1e-12 * timing.seconds:
        shares.append(Share("top-down", "other", missing))
    return sorted((s for s in shares if s.seconds > 0), key=lambda share: -share.seconds)


__all__ = ["LAUNCH", "NONE", "NO_LINE", "SourcePosition", "account", "position_of"]
