"""Atomics of a launch that share addresses.

One channel of the L2 has an address, and serves the atomics to it one after the other. Which lanes
meet depends on data, so the addresses of a tensor are taken to be hit equally often: a lower bound
of what the one that is hit most takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from wavecast.analyze.result import CodeAnalysis, MemoryInstruction
from wavecast.isa.program import Program
from wavecast.perfmodel.placement import LaunchPlacement

CACHED = ("global", "buffer", "flat")
"""Spaces of `MemoryInstruction` whose accesses go through the L2."""


def is_global_atomic(item: MemoryInstruction) -> bool:
    """Whether an instruction is an atomic that the L2 serves."""
    return item.kind == "atomic" and item.space in CACHED


def operations(
    items: Iterable[MemoryInstruction],
    executions: Mapping[int, float],
    placement: LaunchPlacement,
) -> float:
    """Atomics of the lanes of a launch. `executions` are per wave, by instruction."""
    lanes = sum(
        (item.lanes if item.lanes is not None else placement.wave_lanes)
        * executions.get(item.index, 0.0)
        for item in items
    )
    return lanes * placement.workgroups * placement.waves


def executions_of(program: Program, analysis: CodeAnalysis) -> dict[int, float]:
    """Executions of the instructions of a program per wave, of those that are known."""
    executions: dict[int, float] = {}
    for block, count in zip(program.blocks, analysis.executed, strict=False):
        if count is not None:
            executions.update(dict.fromkeys(range(block.start, block.stop), count))
    return executions


def addresses(item: MemoryInstruction, tensor_bytes: float) -> int:
    """How many addresses a tensor has for an atomic."""
    return max(1, int(tensor_bytes) // max(1, item.bytes_per_lane))


def at_one_address(
    memory: Iterable[MemoryInstruction],
    executions: Mapping[int, float],
    placement: LaunchPlacement,
    sizes: Mapping[str, float],
) -> float:
    """Atomics of a launch that go to the address with the most of them, at least. `sizes` are the
    bytes of tensors by argument; atomics to unknown tensors count as not meeting."""
    totals: dict[str, float] = {}
    for item in memory:
        size = sizes.get(item.argument)
        if size and is_global_atomic(item):
            each = operations([item], executions, placement) / addresses(item, size)
            totals[item.argument] = totals.get(item.argument, 0.0) + each
    return max(totals.values(), default=0.0)


def busiest(balls: float, bins: int) -> float:
    """Of `balls` thrown into `bins` at random, about how many the fullest has: the number that on
    average half a bin or less exceeds (Poisson)."""
    mean = balls / bins
    number, term = 0, math.exp(-mean)
    above = 1.0 - term
    while above * bins > 0.5 and number < balls:
        number += 1
        term *= mean / number
        above -= term
    return float(max(number, math.ceil(mean), 1))


__all__ = [
    "CACHED",
    "addresses",
    "at_one_address",
    "busiest",
    "executions_of",
    "is_global_atomic",
    "operations",
]
