"""What a wave may still have in flight when it tells the others that it has reached a barrier."""

from __future__ import annotations

from wavecast.analyze.sync.outstanding import Flow, State
from wavecast.isa.collector import no_collections
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
    flow = Flow(program)
    found: dict[int, tuple[int, ...]] = {}
    for block in program.blocks:
        entry = flow.entries[block.index]
        inside = [index for index in range(block.start, block.stop) if index in barriers]
        if entry is None or not inside:
            continue
        state = State(entry)
        steps = flow.steps[block.index]
        taken = 0
        for barrier in inside:
            while taken < len(steps) and steps[taken].index < barrier:
                flow.apply(state, steps[taken])
                taken += 1
            open_ = {operation for scores in state.scores for operation in scores}
            found[barrier] = tuple(
                sorted(op for op in open_ if instructions[op].decoded.memory is not None)
            )
    return found


__all__ = ["outstanding_at"]
