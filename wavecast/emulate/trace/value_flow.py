"""Where the value of an instruction goes: through registers, and through memory from the stores to
the loads that a `MemoryLinks` names.

Memory is divided among the dwords of the accesses of an instruction: those of a lane's access are
numbered from 0 on, where it has two locations those of the second after those of the first. A
scalar load has one, whatever its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from wavecast.emulate.lower.sites import data_operands
from wavecast.isa.defuse import DefUse
from wavecast.isa.instruction import Decoded, Instruction
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.opcode import OperandAccess as Use
from wavecast.isa.program import Program
from wavecast.isa.registers import EXEC, SCC
from wavecast.isa.semantics.open_behaviour import open_behaviour

AccessDword = tuple[int, int]
"""An instruction, and a dword of what a lane accesses."""
STORING: Final = frozenset({MemoryKind.STORE, MemoryKind.ATOMIC})
LOADING: Final = frozenset({MemoryKind.LOAD, MemoryKind.ATOMIC})
COPYING: Final = frozenset({MemoryKind.LOAD_TO_LDS, MemoryKind.STORE_FROM_LDS})
_LARGEST_UNIT: Final = 4
"""Dwords that a lane moves at most in one step of a copy of a tensor."""


class MemoryLinks(Protocol):
    """Which loads bring what stores have written."""

    def loads(self, stored: AccessDword) -> Iterable[AccessDword]:
        """The dwords of loads that bring a dword of a store."""
        ...


class NoMemory:
    """Values end where they are stored."""

    def loads(self, stored: AccessDword) -> Iterable[AccessDword]:
        del stored
        return ()


def access_dwords(decoded: Decoded) -> int:
    """How many dwords a memory instruction accesses per lane."""
    memory = decoded.memory
    assert memory is not None
    if memory.space is Space.SCALAR:
        return 1
    if decoded.opcode.form == "TENSOR":
        return _LARGEST_UNIT
    offsets = decoded.opcode.memory_form.offsets
    return offsets * max(1, memory.bytes // offsets // 4)


class ValueFlow:
    """How values go through a program; only what `is_executed` counts."""

    def __init__(
        self, program: Program, is_executed: Callable[[int], bool], memory: MemoryLinks
    ) -> None:
        self.program, self.memory = program, memory
        self.chains = DefUse(program)
        self._is_executed = is_executed
        self._read_by: dict[int, tuple[tuple[int, int], ...]] = {}

    def uses(self, origins: Iterable[int]) -> Iterator[tuple[Instruction, int]]:
        """The instructions that may read what instructions `origins` compute, each with registers
        that have it; an instruction may come several times."""
        return _Reached(self, origins).uses()

    def users(self, index: int) -> tuple[tuple[int, int], ...]:
        """The executed instructions that read what `index` writes, and the registers."""
        users = self._read_by.get(index)
        if users is None:
            users = self._read_by[index] = tuple(
                (user, self._bits(index, user))
                for user in sorted(self.chains.uses(index))
                if self._is_executed(user)
            )
        return users

    def _bits(self, index: int, user: int) -> int:
        """The registers in which `user` may read what `index` wrote."""
        return sum(
            1 << bit for bit, definitions in self.chains.sources(user).items()
            if index in definitions
        )  # fmt: skip


class _Reached:
    """What one search has reached."""

    def __init__(self, flow: ValueFlow, origins: Iterable[int]) -> None:
        self._flow, self._instructions = flow, flow.program.instructions
        self._carried: dict[int, int] = {}  # by instruction, the registers it wrote with the value
        self._stored: set[AccessDword] = set()
        self._loaded: set[AccessDword] = set()
        self._pending = [(origin, own_writes(self._instructions[origin])) for origin in origins]

    def uses(self) -> Iterator[tuple[Instruction, int]]:
        while self._pending:
            index, written = self._pending.pop()
            for user, readable in self._flow.users(index):
                bits = readable & written
                if not bits:
                    continue
                instruction = self._instructions[user]
                yield instruction, bits
                self._carry(user, _carried(instruction.decoded, bits))
                for dword in _stored_dwords(instruction.decoded, bits):
                    self._store((user, dword))

    def _carry(self, index: int, registers: int) -> None:
        before = self._carried.get(index, 0)
        if before | registers != before:
            self._carried[index] = before | registers
            self._pending.append((index, before | registers))

    def _store(self, stored: AccessDword) -> None:
        """Follow a dword of a store, and those of copies and atomics that it leads to."""
        pending = [stored]
        while pending:
            dword = pending.pop()
            if dword in self._stored:
                continue
            self._stored.add(dword)
            for load in self._flow.memory.loads(dword):
                if load not in self._loaded:
                    self._loaded.add(load)
                    index, number = load
                    decoded = self._instructions[index].decoded
                    self._carry(index, _loaded_registers(decoded, number))
                    pending += [(index, written) for written in _written_on(decoded, number)]


def own_writes(instruction: Instruction) -> int:
    """The registers of an instruction's own result, without those of the second of a pair."""
    second = instruction.second
    if second is None or open_behaviour(instruction) is None:
        return instruction.writes
    return instruction.writes & ~second.writes


def _carried(decoded: Decoded, bits: int) -> int:
    """The registers that an instruction writes with a value it reads in `bits`: not what it loads,
    not what it computes in lanes that the value chose, and not the lanes that it saves."""
    exchanges = decoded.memory is None or decoded.memory.kind is MemoryKind.PERMUTE
    if not bits & ~EXEC or not exchanges:
        return 0
    if "saveexec" in decoded.opcode.name:
        return decoded.writes & (EXEC | SCC)
    second = decoded.second
    if second is None:
        return decoded.writes
    first_reads = decoded.reads & ~second.reads
    for operand in decoded.operands:
        first_reads |= operand.bits
    written = decoded.writes & ~second.writes if bits & first_reads else 0
    return written | (second.writes if bits & second.reads else 0)


def _stored_dwords(decoded: Decoded, bits: int) -> Iterator[int]:
    """The dwords that an instruction stores with a value it reads in `bits`."""
    memory = decoded.memory
    if memory is None or memory.kind not in STORING:
        return
    data = [o.bits for o, role in data_operands(decoded) if role.access is not Use.WRITE]
    if memory.space is Space.SCALAR:
        data = [decoded.operands[0].bits]
    if memory.kind is MemoryKind.ATOMIC or memory.space is Space.SCALAR:
        if any(bits & operand for operand in data):
            yield from range(access_dwords(decoded))
        return
    each = access_dwords(decoded) // decoded.opcode.memory_form.offsets
    for location, operand in enumerate(data):
        first = operand & -operand
        for dword in range(each):
            if bits & first << dword:
                yield location * each + dword


def _loaded_registers(decoded: Decoded, dword: int) -> int:
    """The registers that have a dword that an instruction loads."""
    memory = decoded.memory
    assert memory is not None
    if memory.kind not in LOADING:
        return 0
    whole = decoded.opcode.memory_form.transpose or memory.space is Space.SCALAR
    if whole or memory.kind is MemoryKind.ATOMIC:
        return decoded.writes
    operand = data_operands(decoded)[0][0].bits
    return (operand & -operand) << dword & decoded.writes


def _written_on(decoded: Decoded, dword: int) -> Iterable[int]:
    """The dwords that an instruction stores with a dword that it loads."""
    memory = decoded.memory
    assert memory is not None
    if memory.kind in COPYING:
        return (dword,)
    updates = memory.kind is MemoryKind.ATOMIC and decoded.opcode.memory_form.operation != "swap"
    return range(access_dwords(decoded)) if updates else ()


__all__ = [
    "COPYING",
    "LOADING",
    "STORING",
    "AccessDword",
    "MemoryLinks",
    "NoMemory",
    "ValueFlow",
    "access_dwords",
]
