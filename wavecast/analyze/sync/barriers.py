"""What a wave may still have in flight when it tells the others that it has reached a barrier."""

from __future__ import annotations

from bisect import bisect_right

from wavecast.analyze.sync.outstanding import OutstandingFlow, OutstandingState
from wavecast.isa.collector import no_collections
from wavecast.isa.opcode import MemoryEffect, MemoryKind, Space
from wavecast.isa.program import Program
from wavecast.isa.waits import arrives


@no_collections()
def outstanding_at(program: Program) -> dict[int, tuple[int, ...]]:
    """Barrier instruction -> the memory instructions that may not have completed there, in order.

    Barriers are those rows by which a wave says it has come (`s_barrier`, `s_barrier_signal`); the
    hardware waits for no counter at them: every target here can back a barrier off, so LLVM
    inserts no wait either (SIInsertWaitcnts.cpp, supportsBackOffBarrier). All indices are
    instruction indices. Barriers no path reaches are left out.
    """
    instructions = program.instructions
    barriers = {item.index for item in instructions if arrives(item.decoded.opcode)}
    if not barriers:
        return {}
    flow = OutstandingFlow(program)
    by_barrier: dict[int, tuple[int, ...]] = {}
    for block in program.blocks:
        entry = flow.entries[block.index]
        block_barriers = [index for index in range(block.start, block.stop) if index in barriers]
        if entry is None or not block_barriers:
            continue
        state = OutstandingState(entry)
        steps = flow.steps[block.index]
        position = 0
        for barrier in block_barriers:
            while position < len(steps) and steps[position].index < barrier:
                flow.apply(state, steps[position])
                position += 1
            open_ = {operation for scores in state.scores for operation in scores}
            by_barrier[barrier] = tuple(
                sorted(op for op in open_ if instructions[op].decoded.memory is not None)
            )
    return by_barrier


__all__ = ["outstanding_at"]


def unfinished_stores(program: Program) -> dict[int, tuple[int, ...]]:
    """Barrier instruction -> the stores to LDS that may be under way there, of barriers after which
    the code reads LDS before it comes to another one: waves read what was there before.

    Compilers ask for a wait at such barriers, and LLVM has lost some (docs/hardware.md).
    """
    instructions = program.instructions
    stops = {block.start: block.stop for block in program.blocks}
    starts = sorted(stops)
    by_barrier = {}
    for barrier, open_ in outstanding_at(program).items():
        stores = tuple(op for op in open_ if _is(instructions[op].memory, _STORES))
        if not stores:
            continue
        stop = stops[starts[bisect_right(starts, barrier) - 1]]
        for index in range(barrier + 1, stop):
            if arrives(instructions[index].decoded.opcode):
                break
            if _is(instructions[index].memory, _LOADS):
                by_barrier[barrier] = stores
                break
        else:
            by_barrier[barrier] = stores
    return by_barrier


_STORES = frozenset({MemoryKind.STORE})
_LOADS = frozenset({MemoryKind.LOAD, MemoryKind.ATOMIC})


def _is(memory: MemoryEffect | None, kinds: frozenset[MemoryKind]) -> bool:
    return memory is not None and memory.space is Space.LDS and memory.kind in kinds
