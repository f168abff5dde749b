"""RDNA 4: scalar registers that vector instructions have read and something writes again.

A vector instruction that reads an SGPR makes the hardware keep a copy of the pair; a later write
is not seen by reads until the write has been waited for with `s_wait_alu` or a memory instruction
that does the same. Source: LLVM AMDGPUWaitSGPRHazards.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wavecast.analyze.sync.hazards.code import HazardCode
from wavecast.analyze.sync.hazards.traits import SALU, SMEM, VALU, VMEM, WAIT_ALU, alu_wait
from wavecast.analyze.sync.violation import Violation
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import Control, OperandAccess
from wavecast.isa.registers import SGPRS, TTMP_BASE, TTMP_COUNT, VCC, span

_TRACKED_FILES: Final = SGPRS | span(TTMP_BASE, 0, TTMP_COUNT) | VCC
# bound once: looking an enum member up costs ten times what comparing it does
_INDIRECT = Control.INDIRECT
_CALL = Control.CALL
_READ = OperandAccess.READ
_WRITE = OperandAccess.WRITE


_State = tuple[int, int, int]
"""Registers whose pair a vector instruction has read; those a scalar, and those a vector
instruction has written since without being waited for."""
_START: Final[_State] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Access:
    """The scalar operands of one instruction, each with its pair; `read` is all it reads and
    `pairs` the pairs of that."""

    read: int
    pairs: int
    uses: tuple[tuple[int, int], ...]
    definitions: tuple[tuple[int, int], ...]


def check(code: HazardCode) -> Iterator[Violation]:
    """Reads of scalar registers that may see the value before the last write."""
    if not code.has & VALU:
        return
    solver = _Solver(code)
    for block, state in zip(code.program.blocks, solver.solve(), strict=True):
        if state is None:
            continue
        for index in solver.steps[block.index]:
            late = solver.late(state, index)
            if late:
                yield _violation(code, index, late, state)
            state = solver.after(state, index)


class _Solver:
    def __init__(self, code: HazardCode) -> None:
        self.code = code
        cache: dict[Decoded, _Access | None] = {}
        self.accesses: list[_Access | None] = []
        for instruction in code.program.instructions:
            decoded = instruction.decoded
            if decoded not in cache:
                cache[decoded] = _access(decoded)
            self.accesses.append(cache[decoded])
        matters = [
            bool(
                (flags & (VALU | SALU) and access is not None)
                or flags & (SMEM | WAIT_ALU)
                or (flags & VMEM and self._clears(index))
            )
            for index, (flags, access) in enumerate(zip(code.flags, self.accesses, strict=True))
        ]
        self.steps = [
            [index for index in range(block.start, block.stop) if matters[index]]
            for block in code.program.blocks
        ]
        """Per block the instructions that change the state or depend on it."""

    def solve(self) -> list[_State | None]:
        """The state at the start of every block, None where no path leads."""
        program = self.code.program
        entries: list[_State | None] = [None] * len(program.blocks)
        entries[program.reverse_postorder[0]] = _START
        position = {block: number for number, block in enumerate(program.reverse_postorder)}
        dirty = {program.reverse_postorder[0]}
        while dirty:
            block = min(dirty, key=position.__getitem__)
            dirty.discard(block)
            state = entries[block]
            assert state is not None
            for index in self.steps[block]:
                state = self.after(state, index)
            for successor in program.blocks[block].successors:
                before = entries[successor]
                joined = state if before is None else _join(before, state)
                if joined != before:
                    entries[successor] = joined
                    dirty.add(successor)
        return entries

    def late(self, state: _State, index: int) -> int:
        """Registers instruction `index` reads although a write of them may not be seen yet."""
        _, scalar, vector = state
        access = self.accesses[index]
        if access is None or not scalar | vector:
            return 0
        flags = self.code.flags[index]
        if flags & VALU:
            return access.read & (scalar | vector)
        return access.read & scalar if flags & SALU else 0

    def after(self, state: _State, index: int) -> _State:
        """The state behind instruction `index`; what it read too early counts as waited for."""
        read, scalar, vector = state
        flags = self.code.flags[index]
        if not flags & (VALU | SALU) or flags & WAIT_ALU:
            if not scalar | vector:
                return state
            if flags & WAIT_ALU:
                return self._apply_waits(state, self.code.decoded_at(index))
            return read, 0, 0
        access = self.accesses[index]
        assert access is not None
        if not (scalar or vector or access.definitions) and access.pairs & read == access.pairs:
            return state
        is_vector = flags & VALU
        late = self.late(state, index)
        if late & scalar:
            scalar = 0
        if late & vector:
            vector &= VCC if late & ~VCC else ~VCC
        for bits, pair in access.uses:
            if not read & pair:
                if is_vector:
                    read |= pair
            elif vector and not is_vector:
                # a scalar instruction that reads waits for the vector instructions itself
                vector &= ~VCC if bits & VCC else VCC
        for bits, pair in access.definitions:
            if read & pair:
                if is_vector:
                    vector |= bits
                    scalar &= ~(bits & VCC)
                else:
                    scalar |= bits
                    vector &= ~(bits & VCC)
        return read, scalar, vector

    def _apply_waits(self, state: _State, decoded: Decoded) -> _State:
        read, scalar, vector = state
        if alu_wait(decoded, "sa_sdst") == 0:
            scalar = 0
        if alu_wait(decoded, "va_sdst") == 0:
            vector &= VCC
        if alu_wait(decoded, "va_vcc") == 0:
            vector &= ~VCC
        return read, scalar, vector

    def _clears(self, index: int) -> bool:
        """Buffer instructions wait; flat, global and scratch ones do not."""
        return self.code.decoded_at(index).opcode.form == "MUBUF"


def _join(state: _State, other: _State) -> _State:
    return state[0] | other[0], state[1] | other[1], state[2] | other[2]


def _access(decoded: Decoded) -> _Access | None:
    if not (decoded.reads & _TRACKED_FILES or decoded.writes & _TRACKED_FILES):
        return None
    if decoded.opcode.control is _INDIRECT or decoded.opcode.control is _CALL:
        return None
    uses: list[tuple[int, int]] = []
    definitions: list[tuple[int, int]] = []
    implicit_reads, implicit_writes = decoded.reads & VCC, decoded.writes & VCC
    for part in (decoded, decoded.second):
        if part is None:
            continue
        for operand, role in zip(part.operands, part.roles, strict=True):
            bits = operand.bits & _TRACKED_FILES
            if not bits:
                continue
            if role.access is not _WRITE:
                uses.append((bits, _first_pair(bits)))
                implicit_reads &= ~bits
            if role.access is not _READ:
                definitions.append((bits, _first_pair(bits)))
                implicit_writes &= ~bits
    if implicit_reads:
        uses.append((implicit_reads, _first_pair(implicit_reads)))
    if implicit_writes:
        definitions.append((implicit_writes, _first_pair(implicit_writes)))
    if not uses and not definitions:
        return None
    read = pairs = 0
    for bits, pair in uses:
        read |= bits
        pairs |= pair
    return _Access(read, pairs, tuple(uses), tuple(definitions))


def _first_pair(bits: int) -> int:
    """The aligned pair the first register belongs to. Each file starts at an even bit."""
    first = (bits & -bits).bit_length() - 1
    return 3 << (first & ~1)


def _violation(code: HazardCode, index: int, late: int, state: _State) -> Violation:
    vector = "va_vcc" if late & VCC else "va_sdst"
    counter = "sa_sdst" if late & state[1] else vector
    flag = SALU if counter == "sa_sdst" else VALU
    writers: list[int] = []

    def step(_: int, position: int) -> int | None:
        if code.flags[position] & flag and code.traits[position].writes & late:
            writers.append(position)
            return None
        return 0

    code.paths_back(index, 0, step)
    return code.is_unordered(
        index, writers[0], late & code.traits[writers[0]].writes, counter,
        f"s_wait_alu depctr_{counter}(0)",
        "a vector instruction read the register before it was written",
    )  # fmt: skip


__all__ = ["check"]
