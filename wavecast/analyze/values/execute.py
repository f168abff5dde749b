"""One instruction applied to the registers of a wave.

`compile_step` turns a decoded instruction into a function of the wave's state, once; running it
binds the row's operands to values, evaluates the row's semantics, and writes the results under
EXEC. Rows without semantics, and forms whose modifiers are not modelled (SDWA, DPP, clamp), make
what they write unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wavecast.analyze.values.domain import (
    Scattered,
    Value,
    WaveOps,
    is_known,
    join,
    origin_of,
    split,
)
from wavecast.isa import semantics
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, Operand, OperandClass
from wavecast.isa.opcode import Access, OperandKind, OperandRole
from wavecast.isa.registers import (
    AGPR_BASE,
    AGPR_COUNT,
    EXEC,
    SPECIAL_REGISTERS,
    VGPR_BASE,
    special,
)
from wavecast.isa.semantics.integers import Unknown

EXEC_LOW = SPECIAL_REGISTERS["exec"][0]
_VECTOR_END = AGPR_BASE + AGPR_COUNT
_PLAIN_ENCODINGS = ("", "e32", "e64", "e96")
_HARMLESS = frozenset({"bitop3", "bound_ctrl", "row_mask", "bank_mask"})
_FLOAT_TYPES = ("f32",)


class Registers:
    """The registers of one wave, by their bit position (`wavecast.isa.registers`).

    Positions from `registers.SPECIAL_BASE` on that no register uses hold scratch dwords. `masked`
    keeps what a vector register held before it was written under an EXEC that is not known: once
    EXEC is known again, lanes may hold either.
    """

    __slots__ = ("masked", "ops", "values")

    def __init__(self, ops: WaveOps, size: int) -> None:
        self.ops = ops
        self.values: list[Value] = [Scattered("a register nothing has written")] * size
        self.masked: dict[int, Value] = {}

    def exec_changed(self) -> None:
        """Take over EXEC after an instruction wrote it."""
        ops = self.ops
        mask = self.values[EXEC_LOW]
        if ops.lanes == 64:
            mask = join(mask, self.values[EXEC_LOW + 1])
        ops.set_exec(mask if isinstance(mask, (int, Unknown)) else Unknown(0, "EXEC"))
        if self.masked and isinstance(ops.exec_mask, int):
            for position, old in self.masked.items():
                new = self.values[position]
                same = new is old or (is_known(new) and is_known(old) and np.array_equal(new, old))
                if not same:
                    self.values[position] = Scattered("lanes that may not have been active")
            self.masked.clear()

    def write_vector(self, position: int, value: Value) -> None:
        """Write a vector register in the active lanes."""
        ops = self.ops
        mask = ops.exec_mask
        if mask == ops.full_mask:
            self.values[position] = value
        elif isinstance(mask, int):
            if mask:
                self.values[position] = ops.select(ops.active, value, self.values[position], 32)
        else:
            self.masked.setdefault(position, self.values[position])
            self.values[position] = value


Step = Callable[[Registers, int], None]
Reader = Callable[[Registers], Value]
Writer = Callable[[Registers, Value], None]


def compile_step(decoded: Decoded, lanes: int) -> Step:
    """The effect of one instruction that is no memory access on the state of a wave.

    The step takes the registers and the instruction's index, which becomes the origin of values
    it makes unknown.
    """
    parts = [decoded] if decoded.second is None else [decoded, decoded.second]
    compiled = [_half(part, lanes) for part in parts]
    if any(item is None for item in compiled):
        return opaque(decoded)
    halves = [item for item in compiled if item is not None]
    changes_exec = bool(decoded.writes & EXEC)

    def step(state: Registers, _index: int) -> None:
        ops = state.ops
        results = [
            function(ops, *[read(state) for read in readers]) for function, readers, _ in halves
        ]
        for values, (_, _, writers) in zip(results, halves, strict=True):
            for value, write in zip(values, writers, strict=True):
                write(state, value)
        if changes_exec:
            state.exec_changed()

    return step


def is_modelled(decoded: Decoded) -> bool:
    """False for instructions whose results are taken as unknown whatever they read."""
    parts = [decoded] if decoded.second is None else [decoded, decoded.second]
    return all(
        semantics.of(part.opcode) is not None
        and part.encoding in _PLAIN_ENCODINGS
        and _HARMLESS.issuperset(part.modifiers)
        for part in parts
    )


def opaque(decoded: Decoded) -> Step:
    """An instruction whose results are not known."""
    vector, scalar = [], []
    for position in bits_of(decoded.writes):
        (vector if VGPR_BASE <= position < _VECTOR_END else scalar).append(position)
    changes_exec = bool(decoded.writes & EXEC)

    def step(state: Registers, index: int) -> None:
        for position in vector:
            state.write_vector(position, Scattered(index))
        for position in scalar:
            state.values[position] = Unknown(0, index)
        if changes_exec:
            state.exec_changed()

    return step


def _half(
    decoded: Decoded, lanes: int
) -> tuple[Callable[..., tuple[Any, ...]], list[Reader], list[Writer]] | None:
    meaning = semantics.of(decoded.opcode)
    if meaning is None or not is_modelled(decoded):
        return None
    readers: list[Reader] = []
    writers: list[Writer] = []
    vector = decoded.opcode.is_vector
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access in (Access.READ, Access.READ_WRITE):
            reader = operand_reader(operand, role, lanes)
            if reader is None:
                return None
            readers.append(reader)
        if role.access in (Access.WRITE, Access.READ_WRITE):
            writer = _writer(operand, role, lanes)
            if writer is None:
                return None
            writers.append(writer)
    for name in decoded.opcode.implicit_reads:
        if name != "exec" or not vector:
            readers.append(_special_reader(name, lanes, vector))
    writers += [_special_writer(name, lanes, vector) for name in decoded.opcode.implicit_writes]
    readers += [_constant(_modifier(decoded, name)) for name in meaning.modifiers]
    return meaning.function, readers, writers


def _modifier(decoded: Decoded, name: str) -> int:
    return int(decoded.modifiers.get(name) or "0", 0)


def _constant(value: int) -> Reader:
    return lambda _state: value


def operand_reader(operand: Operand, role: OperandRole, lanes: int) -> Reader | None:
    """How to read an operand at the width of its role; None for a form that is not modelled."""
    if operand.sign_extend:
        return None
    wide = role.dwords == 2
    if role.kind is OperandKind.LANE_MASK:
        return _mask_reader(operand, lanes)
    if operand.kind is OperandClass.CONSTANT and operand.value is not None:
        return _constant(operand.value & (0xFFFFFFFFFFFFFFFF if wide else 0xFFFFFFFF))
    if operand.text == "null":
        return _constant(0)
    if not operand.bits:
        return None
    first = (operand.bits & -operand.bits).bit_length() - 1
    if operand.half:
        return _half_reader(first, operand.half)
    reader = _pair_reader(first) if wide and operand.count == 2 else _register_reader(first)
    if operand.negate or operand.absolute:
        return _float_modified(reader, operand) if role.type in _FLOAT_TYPES else None
    return reader if role.dwords in (0, 1, 2) else None


def _register_reader(position: int) -> Reader:
    return lambda state: state.values[position]


def _pair_reader(position: int) -> Reader:
    return lambda state: join(state.values[position], state.values[position + 1])


def _half_reader(position: int, half: str) -> Reader:
    shift = 16 if half == "h" else 0

    def read(state: Registers) -> Value:
        ops = state.ops
        return ops.and_(ops.lshr(state.values[position], shift, 32), 0xFFFF, 32)

    return read


def _float_modified(reader: Reader, operand: Operand) -> Reader:
    absolute, negate = operand.absolute, operand.negate

    def read(state: Registers) -> Value:
        value = reader(state)
        if absolute:
            value = state.ops.and_(value, 0x7FFFFFFF, 32)
        return state.ops.xor(value, 0x80000000, 32) if negate else value

    return read


def _mask_reader(operand: Operand, lanes: int) -> Reader | None:
    if operand.kind is OperandClass.CONSTANT and operand.value is not None:
        mask = operand.value
        return lambda state: state.ops.lanes_of_mask(mask & state.ops.full_mask)
    if not operand.bits:
        return None
    first = (operand.bits & -operand.bits).bit_length() - 1
    read = _register_reader(first) if lanes == 32 else _pair_reader(first)
    return lambda state: state.ops.lanes_of_mask(read(state))


def special_position(name: str) -> int:
    """The bit position of (the low half of) a special register."""
    return special(name).bit_length() - SPECIAL_REGISTERS[name][1]


def _special_reader(name: str, lanes: int, vector: bool) -> Reader:
    first = special_position(name)
    if SPECIAL_REGISTERS[name][1] == 1:
        return _register_reader(first)
    read = _register_reader(first) if lanes == 32 else _pair_reader(first)
    return (lambda state: state.ops.lanes_of_mask(read(state))) if vector else read


def _special_writer(name: str, lanes: int, vector: bool) -> Writer:
    first = special_position(name)
    if SPECIAL_REGISTERS[name][1] == 1:
        return _scalar_writer(first, 1)
    return _mask_writer(first, lanes) if vector else _scalar_writer(first, lanes // 32)


def _writer(operand: Operand, role: OperandRole, lanes: int) -> Writer | None:
    if operand.text == "null":
        return lambda _state, _value: None
    if not operand.bits or operand.negate or operand.absolute:
        return None
    first = (operand.bits & -operand.bits).bit_length() - 1
    if role.kind is OperandKind.LANE_MASK:
        return _mask_writer(first, lanes)
    if operand.kind not in (OperandClass.VGPR, OperandClass.AGPR):
        return _scalar_writer(first, max(1, min(role.dwords, operand.bits.bit_count())))
    if operand.half:
        return _half_writer(first, operand.half)
    if role.dwords == 1:
        return lambda state, value: state.write_vector(first, value)
    return _vector_pair_writer(first) if role.dwords == 2 else None


def _scalar_writer(first: int, count: int) -> Writer:
    def write(state: Registers, value: Value) -> None:
        if count == 1:
            state.values[first] = _uniform(value)
            return
        low, high = split(_uniform(value))
        state.values[first] = low
        state.values[first + 1] = high

    return write


def _uniform(value: Value) -> Value:
    """What a scalar register can hold."""
    if isinstance(value, (int, Unknown)):
        return value
    if isinstance(value, np.ndarray) and value.size == 1:
        return int(value[0])
    return Unknown(0, origin_of(value))


def _mask_writer(first: int, lanes: int) -> Writer:
    write = _scalar_writer(first, lanes // 32)
    return lambda state, value: write(state, state.ops.mask_of_lanes(value))


def _vector_pair_writer(first: int) -> Writer:
    def write(state: Registers, value: Value) -> None:
        low, high = split(value)
        state.write_vector(first, low)
        state.write_vector(first + 1, high)

    return write


def _half_writer(position: int, half: str) -> Writer:
    shift, keep = (16, 0xFFFF) if half == "h" else (0, 0xFFFF0000)

    def write(state: Registers, value: Value) -> None:
        ops = state.ops
        kept = ops.and_(state.values[position], keep, 32)
        moved = ops.shl(ops.and_(value, 0xFFFF, 32), shift, 32)
        state.write_vector(position, ops.or_(kept, moved, 32))

    return write
