"""Code for 32 lanes in a kernel whose waves have 64.

The LLVM IR of a HIP kernel (the stage `llir`) has its ballots and shuffles as calls, behind
inlining and unrolling. Lanes that execute a block, lanes in which a value is used and lanes it is
made of (`flow`) tell groups of 32, both of which are used, from code that loses the other half.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from wavecast.analyze.lanes.assumption import Assumption, LaneAssumption
from wavecast.analyze.lanes.ballots import BallotSites
from wavecast.analyze.lanes.demand import LaneDemand
from wavecast.analyze.lanes.flow import LaneFlow
from wavecast.analyze.lanes.halves import HALF, ITEMS, LaneGuards
from wavecast.analyze.lanes.leaders import LeaderSites
from wavecast.analyze.lanes.per_lane import LANES, LaneValues, WaveStart, first_wave
from wavecast.analyze.lanes.shuffles import ShuffleSites
from wavecast.analyze.lanes.unrolling import EXCHANGE, unroll_loops
from wavecast.analyze.lanes.votes import BALLOT
from wavecast.compile.ir_blocks import IrBlock, blocks_of
from wavecast.compile.llvm_ir import Position
from wavecast.isa.program import KernelDescriptor


def assumptions(
    text: str,
    kernel: str,
    descriptor: KernelDescriptor,
    block: tuple[int, int, int] | None = None,
) -> list[LaneAssumption]:
    """The sites of a kernel that take 32 lanes for granted, in the order of the source.

    `text` is its module of LLVM IR, `block` the launch's, None or zeros where nobody states it.
    """
    if not is_wide(descriptor, block):
        return []
    if not any(name in text for name in (EXCHANGE, BALLOT, ITEMS)):
        return []
    blocks = blocks_of(text.split("\n"), kernel)
    start = _start(blocks, descriptor, block)
    values = LaneValues(start)
    values.add(blocks)
    blocks = unroll_loops(blocks, values)
    values = LaneValues(start)
    values.add(blocks)
    flow = LaneFlow(blocks, values)
    guards = LaneGuards(flow)
    by_position: dict[tuple[Assumption, Position], LaneAssumption] = {}
    demand = LaneDemand(flow)
    sites = chain(
        BallotSites(flow, demand, guards).sites(),
        ShuffleSites(flow, demand, guards).sites(),
        LeaderSites(flow, demand).sites(),
    )
    for site in sites:
        before = by_position.get((site.what, site.position))
        if site.position and (before is None or site.certain):
            by_position[site.what, site.position] = site
    return sorted(by_position.values(), key=lambda site: (site.position[-1:], site.what.value))


def is_wide(descriptor: KernelDescriptor, block: tuple[int, int, int] | None) -> bool:
    """Whether waves have 64 lanes, more than 32 of which may be active."""
    threads = descriptor.required_threads or descriptor.max_workgroup_size
    if block is not None and all(block):
        threads = block[0] * block[1] * block[2]
    return descriptor.wave_size == LANES and threads > HALF


def _start(
    blocks: Mapping[str, IrBlock],
    descriptor: KernelDescriptor,
    block: tuple[int, int, int] | None,
) -> WaveStart:
    callees = {i.detail for b in blocks.values() for i in b.instructions if i.opcode == "call"}
    is_flat = not any(f"{ITEMS}{axis}" in callees for axis in "yz")
    most = descriptor.required_threads or descriptor.max_workgroup_size
    return first_wave(block if block is not None and all(block) else None, most, is_flat=is_flat)


__all__ = ["assumptions", "is_wide"]
