"""The wait structure: which counters a program waits on, how far down, and in which loop."""

from __future__ import annotations

from wavecast.analyze.result import Wait
from wavecast.isa.opcode import Role
from wavecast.isa.program import Program
from wavecast.isa.waits import wait_counters

# bound once: looking an enum member up costs ten times what comparing it does
_WAIT = Role.WAIT


def waits(program: Program) -> tuple[Wait, ...]:
    """Every wait on a memory counter, in program order."""
    code_waits = []
    for block in program.blocks:
        loop = program.innermost_loop[block.index]
        for instruction in program.instructions[block.start : block.stop]:
            if instruction.decoded.opcode.role is not _WAIT:
                continue
            counters = wait_counters(instruction, program.target)
            if counters:
                full = min(counters.values()) == 0
                code_waits.append(
                    Wait(instruction.index, counters, full, instruction.location, loop)
                )
    return tuple(code_waits)
