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


def backward_slice(program: Program, operations: Sequence[SassOperation]) -> tuple[bool, ...]:
    """Whether each instruction writes a register that addresses, guards or branches depend on.

    Registers are followed by name, wherever they are written.
    """
    live: set[Register] = set()
    for instruction, operation in zip(program.instructions, operations, strict=True):
        if operation.guard is not None:
            live |= _pair(operation.guard[0])
        for register in tensor_copies.registers(operation):
            live |= _pair(register)
        if instruction.memory is not None or operation.name in ("SYNCS", "UTCBAR"):
            for address in operation.addresses:
                for register, _, _ in address.terms:
                    live |= _pair(register)
            for operand in operation.reads:
                if operand.register is not None and operand.register.file in ("P", "UP"):
                    live |= _pair(operand.register)
        if instruction.opcode.control is not Control.NONE or operation.name in (
            "RET",
            "BRX",
            "BRXU",
        ):
            for register in operation.sources:
                live |= _pair(register)
    in_slice = [False] * len(operations)
    changed = True
    while changed:
        changed = False
        for at, operation in enumerate(operations):
            if in_slice[at] or not _written_registers(operation) & live:
                continue
            in_slice[at] = changed = True
            for register in operation.sources:
                live |= _pair(register)
            if operation.name == "P2R":
                live |= {Register("P", number) for number in range(7)}
            if operation.name in LOADS:
                live.add(LOADS[operation.name])
    return tuple(in_slice)


def _pair(register: Register) -> set[Register]:
    """A register that is read, and the next one, with which it may be a pair."""
    if register.number == ZERO:
        return set()
    if register.file in ("P", "UP"):
        return {register}
    return {register, Register(register.file, register.number + 1)}


def _written_registers(operation: SassOperation) -> set[Register]:
    registers = set()
    for register in operation.writes:
        if register.number == ZERO:
            continue
        count = _WIDEST if register.file in ("R", "UR") else 1
        wide = (
            bool({"64", "128", "WIDE", "x4"} & set(operation.modifiers)) or operation.name == "CS2R"
        )
        registers |= {
            Register(register.file, register.number + part) for part in range(count if wide else 1)
        }
    if operation.name in STORES:
        registers.add(STORES[operation.name])
    if operation.name == "R2P":
        registers |= {Register("P", number) for number in range(7)}
    return registers


__all__ = ["LOADS", "STORES", "backward_slice"]
