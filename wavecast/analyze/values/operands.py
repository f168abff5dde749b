"""Operands as values: how to read each at the width of its role, and how to write it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from wavecast.analyze.values.domain import join, split
from wavecast.analyze.values.kinds import Value
from wavecast.analyze.values.sdwa import merge_destination, select_source
from wavecast.analyze.values.state import RegisterState
from wavecast.isa.instruction import Operand, OperandClass
from wavecast.isa.opcode import OperandKind, OperandRole
from wavecast.isa.registers import SPECIAL_REGISTERS, special

# bound once: looking an enum member up costs ten times what comparing it does
_LANE_MASK = OperandKind.LANE_MASK
_CONSTANT = OperandClass.CONSTANT
_VGPR = OperandClass.VGPR
_VECTORS = (OperandClass.VGPR, OperandClass.AGPR)

_FLOAT_TYPES = ("f32",)

Reader = Callable[[RegisterState], Value]
Writer = Callable[[RegisterState, Value], None]


_of_few = lru_cache(maxsize=4096)
"""For readers and writers of registers and small constants: there are few, and they are shared."""


@_of_few
def constant_reader(value: int) -> Reader:
    """A value that is the same everywhere."""
    return lambda _state: value


def operand_reader(operand: Operand, role: OperandRole, lanes: int) -> Reader | None:
    """How to read an operand at the width of its role; None for a form that is not modelled."""
    wide = role.dwords == 2
    if role.kind is _LANE_MASK:
        return _mask_reader(operand, lanes)
    if operand.kind is _CONSTANT and operand.value is not None:
        return constant_reader(operand.value & (0xFFFFFFFFFFFFFFFF if wide else 0xFFFFFFFF))
    if operand.text == "null":
        return constant_reader(0)
    if not operand.bits:
        return None
    first = (operand.bits & -operand.bits).bit_length() - 1
    if operand.half:
        return _half_reader(first, operand.half)
    reader = _pair_reader(first) if wide and operand.count == 2 else _register_reader(first)
    if operand.negate or operand.absolute:
        return _float_modified(reader, operand) if role.type in _FLOAT_TYPES else None
    return reader if role.dwords in (0, 1, 2) else None


def part_reader(reader: Reader, selector: str, signed: bool) -> Reader:
    """A reader of the byte or word of a register that an SDWA source selects."""
    return lambda state: select_source(state.ops, reader(state), selector, signed)


def part_writer(operand: Operand, selector: str, unused: str) -> Writer | None:
    """A writer of the byte or word of a vector register that an SDWA destination selects."""
    if operand.kind is not _VGPR or operand.count != 1:
        return None
    first = (operand.bits & -operand.bits).bit_length() - 1

    def write(state: RegisterState, value: Value) -> None:
        old = state.values[first]
        state.write_vector(first, merge_destination(state.ops, old, value, selector, unused))

    return write


@_of_few
def _register_reader(position: int) -> Reader:
    return lambda state: state.values[position]


@_of_few
def _pair_reader(position: int) -> Reader:
    return lambda state: join(state.values[position], state.values[position + 1])


def _half_reader(position: int, half: str) -> Reader:
    shift = 16 if half == "h" else 0

    def read(state: RegisterState) -> Value:
        ops = state.ops
        return ops.and_(ops.lshr(state.values[position], shift, 32), 0xFFFF, 32)

    return read


def _float_modified(reader: Reader, operand: Operand) -> Reader:
    absolute, negate = operand.absolute, operand.negate

    def read(state: RegisterState) -> Value:
        value = reader(state)
        if absolute:
            value = state.ops.and_(value, 0x7FFFFFFF, 32)
        return state.ops.xor(value, 0x80000000, 32) if negate else value

    return read


def _mask_reader(operand: Operand, lanes: int) -> Reader | None:
    if operand.kind is _CONSTANT and operand.value is not None:
        mask = operand.value
        return lambda state: state.ops.lanes_of_mask(mask & state.ops.full_mask)
    if not operand.bits:
        return None
    first = (operand.bits & -operand.bits).bit_length() - 1
    read = _register_reader(first) if lanes == 32 else _pair_reader(first)
    return lambda state: state.ops.lanes_of_mask(read(state))


@_of_few
def special_position(name: str) -> int:
    """The bit position of (the low half of) a special register."""
    return special(name).bit_length() - SPECIAL_REGISTERS[name][1]


@_of_few
def special_reader(name: str, lanes: int, vector: bool) -> Reader:
    """How to read an implicit register; `vector` rows see lane masks as conditions."""
    first = special_position(name)
    if SPECIAL_REGISTERS[name][1] == 1:
        return _register_reader(first)
    read = _register_reader(first) if lanes == 32 else _pair_reader(first)
    return (lambda state: state.ops.lanes_of_mask(read(state))) if vector else read


@_of_few
def special_writer(name: str, lanes: int, vector: bool) -> Writer:
    """How to write an implicit register."""
    first = special_position(name)
    if SPECIAL_REGISTERS[name][1] == 1:
        return _scalar_writer(first, 1)
    return _mask_writer(first, lanes) if vector else _scalar_writer(first, lanes // 32)


def operand_writer(operand: Operand, role: OperandRole, lanes: int) -> Writer | None:
    """How to write an operand; None for a form that is not modelled."""
    if operand.text == "null":
        return lambda _state, _value: None
    if not operand.bits or operand.negate or operand.absolute:
        return None
    first = (operand.bits & -operand.bits).bit_length() - 1
    if role.kind is _LANE_MASK:
        return _mask_writer(first, lanes)
    if operand.kind not in _VECTORS:
        return _scalar_writer(first, max(1, min(role.dwords, operand.bits.bit_count())))
    if operand.half:
        return _half_writer(first, operand.half)
    if role.dwords == 1:
        return _vector_writer(first)
    return _vector_pair_writer(first) if role.dwords == 2 else None


@_of_few
def _scalar_writer(first: int, count: int) -> Writer:
    def write(state: RegisterState, value: Value) -> None:
        if type(value) is not int:
            value = state.ops.in_scalar(value)
        if count == 1:
            state.values[first] = value
            return
        low, high = split(value)
        state.values[first] = low
        state.values[first + 1] = high

    return write


def _mask_writer(first: int, lanes: int) -> Writer:
    write = _scalar_writer(first, lanes // 32)
    return lambda state, value: write(state, state.ops.mask_of_lanes(value))


@_of_few
def _vector_writer(first: int) -> Writer:
    return lambda state, value: state.write_vector(first, value)


@_of_few
def _vector_pair_writer(first: int) -> Writer:
    def write(state: RegisterState, value: Value) -> None:
        low, high = split(value)
        state.write_vector(first, low)
        state.write_vector(first + 1, high)

    return write


def _half_writer(position: int, half: str) -> Writer:
    shift, keep = (16, 0xFFFF) if half == "h" else (0, 0xFFFF0000)

    def write(state: RegisterState, value: Value) -> None:
        ops = state.ops
        other_half = ops.and_(state.values[position], keep, 32)
        field = ops.shl(ops.and_(value, 0xFFFF, 32), shift, 32)
        state.write_vector(position, ops.or_(other_half, field, 32))

    return write
