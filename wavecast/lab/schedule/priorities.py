"""Priorities of waves around matrix instructions: `s_setprio`.

A wave whose matrix instructions are at hand issues before others, which load meanwhile. Priorities
change no result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from wavecast.isa.opcode import OpcodeFlag
from wavecast.isa.program import Program
from wavecast.lab.schedule.groups import kind_of
from wavecast.lab.schedule.layout import Item, Layout
from wavecast.lab.schedule.memory_order import is_fence

RUNS: Final = "runs"
"""Around matrix instructions with at most `CLOSE` others between two of them."""
PHASES: Final = "phases"
"""From the first to the last matrix instruction of a block, or between its barriers."""
CLOSE: Final = 2
LEAST: Final = 2
"""Matrix instructions that a priority is worth."""
_HIGH: Final = "s_setprio 1"
_NORMAL: Final = "s_setprio 0"


def without_priorities(layout: Layout) -> Layout:
    """A layout without the instructions that set priorities."""
    instructions = layout.program.instructions
    for number, block in enumerate(layout.blocks):
        kept = [
            item
            for item in block
            if isinstance(item, str)
            or OpcodeFlag.PRIORITY not in instructions[item].decoded.opcode.flags
        ]
        if len(kept) < len(block) and kept:
            layout = layout.with_block(number, kept)
    return layout


def with_priorities(layout: Layout, where: str) -> Layout:
    """A layout without priorities, with a higher one at `RUNS` or `PHASES`."""
    for number, block in enumerate(layout.blocks):
        items: list[Item] = []
        stretches = [*_stretches(layout.program, block, where)]
        starts, ends = {first for first, _ in stretches}, {last for _, last in stretches}
        for at, item in enumerate(block):
            items += [_HIGH] if at in starts else []
            items.append(item)
            items += [_NORMAL] if at in ends else []
        if stretches:
            layout = layout.with_block(number, items)
    return layout


def _stretches(program: Program, block: Sequence[Item], where: str) -> Iterator[tuple[int, int]]:
    """Positions of the first and the last matrix instruction of each stretch of a block."""
    first = last = -1
    count = 0
    for at, item in enumerate(block):
        decoded = None if isinstance(item, str) else program.instructions[item].decoded
        ends = decoded is not None and is_fence(decoded)
        if where == RUNS and count and at - last > CLOSE + 1:
            ends = True
        if ends:
            if count >= LEAST:
                yield first, last
            count = 0
        if decoded is not None and kind_of(decoded) == "matrix":
            first = at if not count else first
            last, count = at, count + 1
    if count >= LEAST:
        yield first, last


__all__ = ["PHASES", "RUNS", "with_priorities", "without_priorities"]
