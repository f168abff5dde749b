"""Loops: what an iteration of each costs on every pipe, and the chain it cannot beat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from wavecast.analyze.charges import Charge
from wavecast.analyze.critical_path import critical_path
from wavecast.analyze.pipes import Residency, Tally, limiter
from wavecast.analyze.result import LoopAnalysis, Wait
from wavecast.isa.program import Program

TripCount = Callable[[int], tuple[float | None, str]]
"""Loop index -> iterations per entry of the loop for one wave, and why it is unknown."""


def loops(
    program: Program,
    blocks: Sequence[Tally],
    charges: list[Charge] | None,
    residency: Residency,
    waits: Sequence[Wait],
    trip_count: TripCount,
) -> tuple[LoopAnalysis, ...]:
    """Every loop of a program, outer before inner.

    `blocks` holds one tally per basic block. `charges` is one per instruction, or None where
    dependencies are not known; then the critical path is 0.
    """
    trips = [trip_count(loop.index) for loop in program.loops]
    bodies: dict[int, Tally] = {}
    full_waits = _full_waits(program, waits)
    analyses = []
    owned = own_blocks(program)
    for loop in reversed(program.loops):
        numbers = owned[loop.index]
        tally = Tally()
        for number in numbers:
            tally.add(blocks[number])
        body = LoopAnalysis(
            index=loop.index,
            location=loop.location,
            depth=loop.depth,
            blocks=len(numbers),
            waves_per_simd=max(1, round(residency.waves)),
            critical_path=critical_path(program, numbers, charges) if charges else 0.0,
            trip_count=trips[loop.index][0],
            trip_note=trips[loop.index][1],
            waits_full=full_waits[loop.index],
            parent=loop.parent,
            **_costs(tally, residency),
        )
        inner = [(bodies[child], trips[child][0]) for child in loop.children]
        if inner and all(count is not None for _, count in inner):
            for inner_body, count in inner:
                tally.add(inner_body, count or 0.0)
            costs = _costs(tally, residency)
            body = replace(body, includes_inner=True, without_inner=body, **costs)
        bodies[loop.index] = tally
        analyses.append(body)
    return tuple(reversed(analyses))


def _costs(tally: Tally, residency: Residency) -> dict[str, Any]:
    """What an analysis says about the instructions of an iteration."""
    cycles = tally.cycles(residency)
    return {
        "instructions": tally.classes(),
        "cycles": cycles,
        "limiter": limiter(cycles),
        "flops": tally.matrix_flops(),
        "matrix_density": tally.matrix_density(),
        "bytes_global": tally.bytes_global(),
        "bytes_lds": tally.bytes_lds(),
        "barriers": tally.barriers(),
    }


def straight_cycles(
    program: Program, blocks: Sequence[Tally], residency: Residency
) -> dict[str, float]:
    """Cycles per pipe of the blocks that are in no loop and can be reached."""
    total = Tally()
    for number in program.reverse_postorder:
        if program.innermost_loop[number] is None:
            total.add(blocks[number])
    return total.cycles(residency)


def own_blocks(program: Program) -> list[list[int]]:
    """Per loop, its blocks that are in no inner loop, in execution order from the header."""
    by_loop: list[list[int]] = [[] for _ in program.loops]
    for number in program.reverse_postorder:
        loop = program.innermost_loop[number]
        if loop is not None:
            by_loop[loop].append(number)
    return by_loop


def _full_waits(program: Program, waits: Sequence[Wait]) -> list[int]:
    """Waits for everything outstanding, by their innermost loop."""
    counts = [0] * len(program.loops)
    for wait in waits:
        if wait.full and wait.loop is not None:
            counts[wait.loop] += 1
    return counts
