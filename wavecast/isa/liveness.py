"""Which registers are live before and after every instruction.

A write kills a register only when nothing of the old value survives it (`Decoded.kills`). Lanes
that EXEC masks off do keep their old value; like LLVM's own register allocator this analysis takes
the value as dead there, because structured control flow branches around masked regions.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.isa.program import Program


@dataclass(frozen=True, slots=True)
class Liveness:
    """Register sets (`wavecast.isa.registers`) live before and after each instruction."""

    before: list[int]
    after: list[int]


def liveness(program: Program) -> Liveness:
    """Backward data flow over the blocks, then one pass through the instructions."""
    instructions, blocks = program.instructions, program.blocks
    live_in, live_out = _block_liveness(program)
    del live_in
    before = [0] * len(instructions)
    after = [0] * len(instructions)
    for block in blocks:
        live = live_out[block.index]
        for index in range(block.stop - 1, block.start - 1, -1):
            decoded = instructions[index].decoded
            after[index] = live
            live = (live & ~decoded.kills) | decoded.reads
            before[index] = live
    return Liveness(before, after)


def _block_liveness(program: Program) -> tuple[list[int], list[int]]:
    uses, kills = [], []
    for block in program.blocks:
        upward_exposed = killed = 0
        for instruction in program.instructions[block.start : block.stop]:
            decoded = instruction.decoded
            upward_exposed |= decoded.reads & ~killed
            killed |= decoded.kills
        uses.append(upward_exposed)
        kills.append(killed)
    live_in = [0] * len(uses)
    live_out = [0] * len(uses)
    pending = list(program.reverse_postorder)
    queued = set(pending)
    while pending:
        index = pending.pop()
        queued.discard(index)
        block = program.blocks[index]
        out = 0
        for successor in block.successors:
            out |= live_in[successor]
        live_out[index] = out
        new = uses[index] | (out & ~kills[index])
        if new != live_in[index]:
            live_in[index] = new
            for predecessor in block.predecessors:
                if predecessor not in queued:
                    queued.add(predecessor)
                    pending.append(predecessor)
    return live_in, live_out
