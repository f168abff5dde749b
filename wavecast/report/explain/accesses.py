"""A kernel's memory instructions, alike ones together, and what they cost a wave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wavecast.report.explain.summary import line_of
from wavecast.report.kit import units

if TYPE_CHECKING:
    from wavecast.analyze.result import CodeAnalysis


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """Memory instructions alike in line, argument, width and pattern."""

    line: int | None
    argument: str
    space: str
    kind: str
    bytes_per_lane: int
    pattern: str
    stride: int | None
    count: int
    lines: int | None
    transactions_ideal: int | None
    conflict_ways: float | None
    in_loop: bool
    indices: tuple[int, ...]


def memory_groups(analysis: CodeAnalysis) -> list[MemoryGroup]:
    """The kernel's memory instructions, grouped: in loops first, scalar ones last, by line."""
    by_key: dict[tuple[object, ...], list[int]] = {}
    for position, access in enumerate(analysis.memory):
        key = (
            access.loop is None,
            line_of(access.location),
            access.space,
            access.kind,
            access.argument,
            access.bytes_per_lane,
            access.pattern,
            access.stride,
            access.lines,
            access.transactions_ideal,
            access.conflict_ways,
        )
        by_key.setdefault(key, []).append(position)
    result = []
    for positions in by_key.values():
        first = analysis.memory[positions[0]]
        result.append(
            MemoryGroup(
                line=line_of(first.location),
                argument=first.argument,
                space=first.space,
                kind=first.kind,
                bytes_per_lane=first.bytes_per_lane,
                pattern=first.pattern,
                stride=first.stride,
                count=len(positions),
                lines=first.lines,
                transactions_ideal=first.transactions_ideal,
                conflict_ways=first.conflict_ways,
                in_loop=first.loop is not None,
                indices=tuple(analysis.memory[p].index for p in positions),
            )
        )
    unknown_last = 1 << 30
    return sorted(
        result,
        key=lambda g: (
            not g.in_loop,
            g.space == "scalar",
            unknown_last if g.line is None else g.line,
            g.space,
            g.kind,
            g.argument,
            -g.bytes_per_lane,
        ),
    )


def operation(group: MemoryGroup) -> str:
    """`global load`, `LDS store`, `global load to LDS`: in the model's terms."""
    space = "LDS" if group.space == "lds" else group.space
    return f"{space} {group.kind.replace('_to_lds', ' to LDS')}"


def lanes(group: MemoryGroup) -> str:
    """What the lanes touch: `contiguous`, `strided by 32 B`, `contiguous rows` of a tile,
    `irregular`."""
    if group.pattern == "strided" and group.stride:
        return f"strided by {group.stride} B"
    if group.pattern == "rows" and group.space != "lds":
        return "contiguous rows"
    return group.pattern


def access_quality(group: MemoryGroup) -> str:
    """What a wave touches: `4 lines`, `64 lines, ideal 8`, `2-way conflict`, "" when unknown."""
    if group.conflict_ways is not None:
        if group.conflict_ways <= 1:
            return "no conflict"
        return f"{units.count(group.conflict_ways)}-way conflict"
    if group.lines is None:
        return ""
    lines = units.plural(group.lines, "line")
    if group.transactions_ideal is None or group.lines <= group.transactions_ideal:
        return lines
    return f"{lines}, ideal {group.transactions_ideal}"


def wasteful(group: MemoryGroup) -> bool:
    """Whether a wave touches more lines, or banks more often, than it needs."""
    if group.conflict_ways is not None and group.conflict_ways > 1:
        return True
    if group.lines is None or group.transactions_ideal is None:
        return False
    return group.lines > group.transactions_ideal
