"""What a wait instruction waits for: counters and the value each must fall to.

The fields of the immediates are columns of the opcode table (LLVM `Utils/AMDGPUBaseInfo.cpp`,
getVmcntBitShiftLo and its neighbours).
"""

from __future__ import annotations

import re

from wavecast.isa.counters import LIMITS, counter_set
from wavecast.isa.instruction import Instruction, OperandClass
from wavecast.isa.opcode import Opcode, OpcodeFlag, Role

_CLUSTER = (-3, 0xFFFD, 0xFFFFFFFD)
"""The barrier of the cluster as operands say it. Source: LLVM, "User Guide for AMDGPU Backend"."""
_LARGEST_NAME = 63
"""Source: six bits of M0."""
_SYMBOLIC = re.compile(r"(\w+?)(_sat)?\((0x[0-9a-fA-F]+|\d+)\)")


def arrives(opcode: Opcode) -> bool:
    """True where a wave tells the others of its workgroup that it has reached the barrier."""
    return OpcodeFlag.ARRIVE in opcode.flags


def awaits(opcode: Opcode) -> bool:
    """True where a wave waits until the others of its workgroup have reached the barrier."""
    return OpcodeFlag.AWAIT in opcode.flags


def is_of_cluster(instruction: Instruction) -> bool:
    """True for a signal at the barrier of the cluster (-3), and for a wait for it."""
    return any(operand.value in _CLUSTER for operand in instruction.operands)


def is_named(instruction: Instruction) -> bool:
    """True for an instruction of a barrier that a number from 1, or M0, names."""
    if instruction.opcode.role is not Role.BARRIER:
        return False
    return any(
        operand.kind is OperandClass.SPECIAL or 0 < (operand.value or 0) <= _LARGEST_NAME
        for operand in instruction.operands
    )


def sets_priority(opcode: Opcode) -> bool:
    """True where a wave sets the priority it issues with."""
    return OpcodeFlag.PRIORITY in opcode.flags


def sleeps(opcode: Opcode) -> bool:
    """True where a wave issues nothing for the clocks its operand gives."""
    return OpcodeFlag.SLEEP in opcode.flags


def wait_counters(instruction: Instruction, target: str) -> dict[str, int]:
    """Counter name -> number of operations that may still be outstanding after the wait.

    Empty for waits that concern no memory counter (`s_waitcnt_depctr`, `s_wait_alu`), for a value
    that a register holds, and for other instructions. Counter names are the target's
    own (`vmcnt`, `lgkmcnt`, `vscnt`; `loadcnt`, `dscnt` …).
    """
    opcode = instruction.opcode
    if opcode.waits_for_all:
        return dict.fromkeys(LIMITS[counter_set(target)], 0)
    fields, operands = opcode.waits, instruction.operands
    if not fields or not operands or operands[0].bits:
        return {}
    immediate = operands[-1].value
    if immediate is None:
        names = {field.counter for field in fields}
        operand_counts = (
            (match[1], int(match[3], 0)) for match in _SYMBOLIC.finditer(operands[-1].text)
        )
        return {counter: count for counter, count in operand_counts if counter in names}
    counts = ((field, field.value(immediate)) for field in fields)
    return {
        field.counter: count
        for field, count in counts
        if not (field.optional and count == field.ones)
    }
