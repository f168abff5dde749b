"""Which instructions of a kernel decide its addresses, guards and branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wavecast.analyze.sass import tensor_copies
from wavecast.analyze.sass.operands import ZERO, Register, SassOperation
from wavecast.isa.opcode import Control
from wavecast.isa.program import Program

_WIDEST: Final = 4
"""Registers one instruction writes at most, where its text names the first."""


_STACK: Final = Register("stack", 0)
_SHARED: Final = Register("shared", 0)
"""Stand for every word of a thread's stack and of a workgroup's shared memory."""
LOADS: Final = {"LDL": _STACK, "LDS": _SHARED}
STORES: Final = {"STL": _STACK, "STS": _SHARED}
"""What loads and stores of a workgroup or a thread pass values through."""


def needed(program: Program, operations: Sequence[SassOperation]) -> tuple[bool, ...]:
    """Whether each instruction writes a register that addresses, guards or branches depend on.

    Registers are followed by name, wherever they are written.
    """
    wanted: set[Register] = set()
    for instruction, own in zip(program.instructions, operations, strict=True):
        if own.guard is not None:
            wanted |= _pair(own.guard[0])
        for register in tensor_copies.registers(own):
            wanted |= _pair(register)
        if instruction.memory is not None or own.name in ("SYNCS", "UTCBAR"):
            for address in own.addresses:
                for register, _, _ in address.terms:
                    wanted |= _pair(register)
            for operand in own.reads:
                if operand.register is not None and operand.register.file in ("P", "UP"):
                    wanted |= _pair(operand.register)
        if instruction.opcode.control is not Control.NONE or own.name in ("RET", "BRX", "BRXU"):
            for register in own.sources:
                wanted |= _pair(register)
    chosen = [False] * len(operations)
    changed = True
    while changed:
        changed = False
        for at, own in enumerate(operations):
            if chosen[at] or not _written(own) & wanted:
                continue
            chosen[at] = changed = True
            for register in own.sources:
                wanted |= _pair(register)
            if own.name == "P2R":
                wanted |= {Register("P", number) for number in range(7)}
            if own.name in LOADS:
                wanted.add(LOADS[own.name])
    return tuple(chosen)


def _pair(register: Register) -> set[Register]:
    """A register that is read, and the next one, with which it may be a pair."""
    if register.number == ZERO:
        return set()
    if register.file in ("P", "UP"):
        return {register}
    return {register, Register(register.file, register.number + 1)}


def _written(own: SassOperation) -> set[Register]:
    found = set()
    for register in own.writes:
        if register.number == ZERO:
            continue
        count = _WIDEST if register.file in ("R", "UR") else 1
        wide = bool({"64", "128", "WIDE", "x4"} & set(own.modifiers)) or own.name == "CS2R"
        found |= {
            Register(register.file, register.number + part) for part in range(count if wide else 1)
        }
    if own.name in STORES:
        found.add(STORES[own.name])
    if own.name == "R2P":
        found |= {Register("P", number) for number in range(7)}
    return found


__all__ = ["LOADS", "STORES", "needed"]
