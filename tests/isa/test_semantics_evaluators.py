"""The evaluators agree with each other, and with Python's own arithmetic."""

from __future__ import annotations

import inspect
import math
import struct
from collections.abc import Callable
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.targets import thorough_beyond
from wavecast.isa import semantics, table
from wavecast.isa.opcode import Control, Opcode, OperandAccess, OperandKind
from wavecast.isa.semantics import IntegerOps, LaneOps, Unknown
from wavecast.isa.semantics.formats import F32

INTEGERS = IntegerOps()
LANES = LaneOps(4)
DTYPES = {1: np.bool_, 16: np.uint16, 32: np.uint32, 64: np.uint64}

BINARY = ["add", "sub", "mul", "and_", "or_", "xor"]
RELATIONS = ["eq", "less_unsigned", "less_signed"]
UNARY = ["popcount", "leading_zeros", "trailing_zeros", "reverse_bits"]


def _values(bits: int) -> st.SearchStrategy[int]:
    edges = [0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1]
    return st.one_of(st.sampled_from(edges), st.integers(0, (1 << bits) - 1))


def _lanes(value: int, bits: int) -> np.ndarray:
    return np.full(4, value, dtype=DTYPES[bits])


def _same(bits: int, name: str, *values: int) -> None:
    one = getattr(INTEGERS, name)(*values, bits)
    many = getattr(LANES, name)(*(_lanes(value, bits) for value in values), bits)
    assert {int(value) for value in many} == {one}, (name, values)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([32, 64]))
def test_lanes_and_integers_agree(data: st.DataObject, bits: int) -> None:
    a, b = data.draw(_values(bits)), data.draw(_values(bits))
    for name in (*BINARY, *RELATIONS, "mul_high"):
        _same(bits, name, a, b)
    amount = data.draw(st.integers(0, bits - 1))
    for name in ("shl", "lshr", "ashr"):
        _same(bits, name, a, amount)
    for name in UNARY:
        _same(bits, name, a)


@settings(max_examples=60, deadline=None)
@given(_values(32))
def test_widths_agree(value: int) -> None:
    for signed in (False, True):
        one = INTEGERS.extend(value, 32, 64, signed)
        assert int(LANES.extend(_lanes(value, 32), 32, 64, signed)[0]) == one
    for narrower in (1, 16):
        one = INTEGERS.truncate(value, 32, narrower)
        assert int(LANES.truncate(_lanes(value, 32), 32, narrower)[0]) == one


def _bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


@settings(max_examples=200, deadline=None)
@given(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3)
def test_fma_rounds_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    found = INTEGERS.f_fma(_bits(a), _bits(b), _bits(c), F32)
    assert isinstance(found, int)
    value = struct.unpack("<f", struct.pack("<I", found))[0]
    if math.isinf(value):
        assert abs(exact) >= Fraction(2**24 - 1, 1) * Fraction(2) ** 104
        return
    error = abs(Fraction(value) - exact)
    for step in (-1, 1):
        neighbour = struct.unpack("<f", struct.pack("<I", (found + step) & 0xFFFFFFFF))[0]
        if math.isfinite(neighbour):
            assert error <= abs(Fraction(neighbour) - exact)


@pytest.mark.parametrize("value", [0.0, 1.0, 3.7, -2.5, 4294967040.0, 1e20, -1e20, math.nan])
def test_conversion_to_integer_saturates(value: float) -> None:
    clipped = 0 if math.isnan(value) else int(max(min(value, 2**32 - 1), 0))
    assert INTEGERS.f_to_int(_bits(value), F32, 32, False) == clipped
    signed = 0 if math.isnan(value) else int(max(min(value, 2**31 - 1), -(2**31)))
    assert INTEGERS.f_to_int(_bits(value), F32, 32, True) == signed & 0xFFFFFFFF


def _takes(function: Callable[..., object], inputs: int) -> bool:
    """Whether a function can be called with the operations and so many inputs."""
    try:
        inspect.signature(function).bind(*[None] * (inputs + 1))
    except TypeError:
        return False
    return True


def _split(value: int, bits: int) -> object:
    """A value by the convention for wide operands: beyond 64 bits a tuple of dwords."""
    if bits <= 64:
        return value
    return tuple(value >> place & 0xFFFFFFFF for place in range(0, bits, 32))


def _spread(value: int, bits: int) -> object:
    found = _split(value, bits)
    if isinstance(found, tuple):
        return tuple(_lanes(word, 32) for word in found)
    return _lanes(value, bits)


def _flat(outputs: tuple[object, ...]) -> list[object]:
    return [word for item in outputs for word in (item if isinstance(item, tuple) else (item,))]


def _input_widths(opcode: Opcode) -> list[int]:
    """Bits of every input, by the convention of `wavecast.isa.semantics`."""
    flags = {"scc": 1, "vcc": 1}
    read = [
        o
        for o in opcode.operands
        if o.access in (OperandAccess.READ, OperandAccess.READ_WRITE)
        and o.kind is not OperandKind.LABEL
    ]
    wide = 64 if any("f64" in operand.type for operand in opcode.operands) else 32
    literal = OperandKind.IMMEDIATE
    widths = [
        1 if o.kind is OperandKind.LANE_MASK
        else wide if o.kind is literal
        else 32 * (o.dwords or 1)
        for o in read
    ]  # fmt: skip
    for name in opcode.implicit_reads:
        if opcode.control is Control.CONDITIONAL:
            widths.append(1 if name == "scc" else 64)
        elif name == "exec" and not opcode.is_vector:
            widths.append(widths[0])
        elif name in flags:
            widths.append(1)
    return widths + [32] * len(semantics.registry()[opcode.name].modifiers)


ROWS = [row for row in table.rows() if row.name in semantics.registry()]


def test_every_entry_has_a_row_of_its_shape() -> None:
    assert {row.name for row in ROWS} == set(semantics.registry())
    for row in ROWS:
        meaning = semantics.of(row)
        assert meaning is not None
        widths = _input_widths(row)
        assert _takes(meaning.function, len(widths)), row.name
        written = [
            o for o in row.operands if o.access in (OperandAccess.WRITE, OperandAccess.READ_WRITE)
        ]
        outputs = meaning.evaluate(INTEGERS, *(_split(0, bits) for bits in widths))
        results = len(written) + len(row.implicit_writes) + (row.control is Control.CONDITIONAL)
        assert len(outputs) == results, row.name


@pytest.mark.parametrize("seed", thorough_beyond(range(2), range(6)))
def test_every_row_gives_the_same_result_on_both_evaluators(seed: int) -> None:
    random = Random(seed)
    for row in ROWS:
        meaning = semantics.registry()[row.name]
        if "lane" in row.name or "mbcnt" in row.name or row.name.startswith("ds_"):
            continue
        widths = _input_widths(row)
        ones = [
            random.getrandbits(bits) >> random.choice([0, 0, bits // 2, max(bits - 3, 0)])
            for bits in widths
        ]
        found = meaning.evaluate(INTEGERS, *map(_split, ones, widths))
        lanes = meaning.evaluate(LANES, *map(_spread, ones, widths))
        first = [int(np.asarray(value).reshape(-1)[0]) for value in _flat(lanes)]
        assert first == _flat(found), (row.name, ones)


def test_unknown_values_spread_unless_decided() -> None:
    unknown = Unknown(3, "x")
    assert INTEGERS.add(unknown, 8, 32) == Unknown(3, "x")
    assert INTEGERS.add(unknown, 1, 32) == Unknown(0, "x")
    assert INTEGERS.shl(unknown, 4, 32) == Unknown(7, "x")
    assert INTEGERS.and_(unknown, 7, 32) == 0
    assert INTEGERS.and_(unknown, 15, 32) == Unknown(3, "x")
    assert INTEGERS.mul(unknown, 0, 32) == 0
    assert INTEGERS.or_(unknown, 0xFFFFFFFF, 32) == 0xFFFFFFFF
    assert INTEGERS.select(unknown, 5, 5, 32) == 5
    assert INTEGERS.select(1, 4, unknown, 32) == 4
    assert INTEGERS.f_mul(unknown, 0, F32) == Unknown(0, "x")


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 12), _values(32), _values(32), st.sampled_from(["add", "sub", "mul", "and_",
       "or_", "xor", "shl", "lshr"]))  # fmt: skip
def test_low_zero_bits_of_unknowns_hold_for_every_value(
    zeros: int, value: int, other: int, name: str
) -> None:
    """Whatever the unknown is, the concrete result has at least the zeros that were promised."""
    concrete = value >> zeros << zeros
    other = other % 32 if name in ("shl", "lshr") else other
    found = getattr(INTEGERS, name)(Unknown(zeros), other, 32)
    exact = getattr(INTEGERS, name)(concrete, other, 32)
    if isinstance(found, Unknown):
        assert exact & ((1 << found.zeros) - 1) == 0
    else:
        assert exact == found
