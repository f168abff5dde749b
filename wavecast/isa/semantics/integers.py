"""Evaluator over Python integers, with unknown values.

A value is an `int` (a bit pattern) or an `Unknown`. An operation with an unknown operand gives an
unknown result unless the other operand decides it (`x & 0`, `x * 0`, `x | ~0`). What is kept of an
unknown value is how many of its low bits are zero, so that the low bits of `tile * 128 + 5` can
still be told.
"""

# ruff: noqa: ARG002 (operations are passed widths whether or not an evaluator needs them)
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavecast.isa.semantics import numeric
from wavecast.isa.semantics.formats import FloatFormat
from wavecast.isa.semantics.lanes import UNSIGNED
from wavecast.isa.semantics.machine import FloatMode
from wavecast.isa.semantics.ops import Direction, Ops


@dataclass(slots=True, unsafe_hash=True)
class Unknown:
    """A value that is not known, the same in every lane.

    Immutable by convention: not a frozen class because evaluators make one per operation.

    `zeros` is how many of its low bits are known to be zero. `origin` is what made it unknown, for
    messages: whatever the code that created it chose.
    """

    zeros: int = 0
    origin: object = None


Integer = int | Unknown


def trailing_zeros(value: int, bits: int) -> int:
    """Low zero bits of a bit pattern; `bits` for zero."""
    return (value & -value).bit_length() - 1 if value else bits


def to_signed(value: int, bits: int) -> int:
    """A bit pattern as a two's complement number."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _zeros(value: Integer, bits: int) -> int:
    return value.zeros if isinstance(value, Unknown) else trailing_zeros(value, bits)


def _unknown(zeros: int, *values: Integer) -> Unknown:
    """An unknown value made from others; what made the first unknown one made this one so."""
    for value in values:
        if type(value) is Unknown:
            return Unknown(zeros, value.origin)
    return Unknown(zeros)


class IntegerOps(Ops[Integer]):
    """Operations on one value of a wave. `lane` and lane accesses see a wave of one lane."""

    def __init__(self, machine: FloatMode | None = None) -> None:
        self._machine = machine or FloatMode()

    def const(self, value: int, bits: int) -> Integer:
        return value & ((1 << bits) - 1)

    def add(self, a: Integer, b: Integer, bits: int) -> Integer:
        if isinstance(a, int) and isinstance(b, int):
            return (a + b) & ((1 << bits) - 1)
        if a == 0:
            return b
        if b == 0:
            return a
        return _unknown(min(_zeros(a, bits), _zeros(b, bits)), a, b)

    def sub(self, a: Integer, b: Integer, bits: int) -> Integer:
        if isinstance(a, int) and isinstance(b, int):
            return (a - b) & ((1 << bits) - 1)
        if b == 0:
            return a
        return _unknown(min(_zeros(a, bits), _zeros(b, bits)), a, b)

    def mul(self, a: Integer, b: Integer, bits: int) -> Integer:
        if isinstance(a, int) and isinstance(b, int):
            return (a * b) & ((1 << bits) - 1)
        if a == 0 or b == 0:
            return 0
        return _unknown(min(bits, _zeros(a, bits) + _zeros(b, bits)), a, b)

    def mul_high(self, a: Integer, b: Integer, bits: int) -> Integer:
        if isinstance(a, int) and isinstance(b, int):
            return (a * b) >> bits
        if a == 0 or b == 0:
            return 0
        return _unknown(0, a, b)

    def and_(self, a: Integer, b: Integer, bits: int) -> Integer:
        if isinstance(a, int) and isinstance(b, int):
            return a & b
        constant, other = (a, b) if isinstance(a, int) else (b, a)
        if isinstance(constant, Unknown) or isinstance(other, int):
            return _unknown(max(_zeros(a, bits), _zeros(b, bits)), a, b)
        if constant == (1 << bits) - 1:
            return other
        if constant >> other.zeros == 0:
            return 0
        return _unknown(max(other.zeros, trailing_zeros(constant, bits)), other)

    def or_(self, a: Integer, b: Integer, bits: int) -> Integer:
        if isinstance(a, int) and isinstance(b, int):
            return a | b
        full = (1 << bits) - 1
        if a == full or b == full:
            return full
        return self.add(a, b, bits) if a == 0 or b == 0 else self._common_zeros(a, b, bits)

    def xor(self, a: Integer, b: Integer, bits: int) -> Integer:
        if isinstance(a, int) and isinstance(b, int):
            return a ^ b
        return self.add(a, b, bits) if a == 0 or b == 0 else self._common_zeros(a, b, bits)

    def _common_zeros(self, a: Integer, b: Integer, bits: int) -> Integer:
        return _unknown(min(_zeros(a, bits), _zeros(b, bits)), a, b)

    def shl(self, a: Integer, amount: Integer, bits: int) -> Integer:
        if isinstance(amount, Unknown):
            return 0 if a == 0 else _unknown(_zeros(a, bits), a, amount)
        if isinstance(a, int):
            return (a << amount) & ((1 << bits) - 1)
        return Unknown(min(bits, a.zeros + amount), a.origin)

    def lshr(self, a: Integer, amount: Integer, bits: int) -> Integer:
        if isinstance(amount, Unknown):
            return 0 if a == 0 else _unknown(0, a, amount)
        if isinstance(a, int):
            return a >> amount
        return Unknown(max(0, a.zeros - amount), a.origin)

    def ashr(self, a: Integer, amount: Integer, bits: int) -> Integer:
        if isinstance(amount, int) and isinstance(a, int):
            return (to_signed(a, bits) >> amount) & ((1 << bits) - 1)
        return self.lshr(a, amount, bits)

    def eq(self, a: Integer, b: Integer, bits: int) -> Integer:
        if isinstance(a, int) and isinstance(b, int):
            return int(a == b)
        return _unknown(0, a, b)

    def less_unsigned(self, a: Integer, b: Integer, bits: int) -> Integer:
        if isinstance(a, int) and isinstance(b, int):
            return int(a < b)
        return 0 if b == 0 else _unknown(0, a, b)

    def less_signed(self, a: Integer, b: Integer, bits: int) -> Integer:
        if isinstance(a, int) and isinstance(b, int):
            return int(to_signed(a, bits) < to_signed(b, bits))
        return _unknown(0, a, b)

    def select(self, condition: Integer, a: Integer, b: Integer, bits: int) -> Integer:
        if isinstance(condition, int):
            return a if condition else b
        if a == b:
            return a
        return _unknown(min(_zeros(a, bits), _zeros(b, bits)), condition)

    def zero_extend(self, a: Integer, bits: int, wider: int) -> Integer:
        return a

    def sign_extend(self, a: Integer, bits: int, wider: int) -> Integer:
        if isinstance(a, Unknown):
            return a
        return to_signed(a, bits) & ((1 << wider) - 1)

    def truncate(self, a: Integer, bits: int, narrower: int) -> Integer:
        if isinstance(a, Unknown):
            return 0 if a.zeros >= narrower else a
        return a & ((1 << narrower) - 1)

    def popcount(self, a: Integer, bits: int) -> Integer:
        return a.bit_count() if isinstance(a, int) else _unknown(0, a)

    def leading_zeros(self, a: Integer, bits: int) -> Integer:
        return bits - a.bit_length() if isinstance(a, int) else _unknown(0, a)

    def trailing_zeros(self, a: Integer, bits: int) -> Integer:
        return trailing_zeros(a, bits) if isinstance(a, int) else _unknown(0, a)

    def reverse_bits(self, a: Integer, bits: int) -> Integer:
        return int(f"{a:0{bits}b}"[::-1], 2) if isinstance(a, int) else _unknown(0, a)

    def f_add(self, a: Integer, b: Integer, fmt: FloatFormat) -> Integer:
        return _numeric(numeric.add, (a, b), fmt.bits, fmt)

    def f_mul(self, a: Integer, b: Integer, fmt: FloatFormat) -> Integer:
        return _numeric(numeric.multiply, (a, b), fmt.bits, fmt)

    def f_fma(self, a: Integer, b: Integer, c: Integer, fmt: FloatFormat) -> Integer:
        return _numeric(numeric.multiply_add, (a, b, c), fmt.bits, fmt)

    def f_div(self, a: Integer, b: Integer, fmt: FloatFormat) -> Integer:
        return _numeric(numeric.divide, (a, b), fmt.bits, fmt)

    def f_sqrt(self, a: Integer, fmt: FloatFormat) -> Integer:
        return _numeric(numeric.square_root, (a,), fmt.bits, fmt)

    def f_round(self, a: Integer, fmt: FloatFormat, direction: Direction) -> Integer:
        return _numeric(numeric.round_to_integral, (a,), fmt.bits, fmt, direction)

    def f_less(self, a: Integer, b: Integer, fmt: FloatFormat) -> Integer:
        return _numeric(numeric.less, (a, b), fmt.bits, fmt)

    def f_equal(self, a: Integer, b: Integer, fmt: FloatFormat) -> Integer:
        return _numeric(numeric.equal, (a, b), fmt.bits, fmt)

    def f_convert(self, a: Integer, source: FloatFormat, result: FloatFormat) -> Integer:
        return _numeric(numeric.convert, (a,), source.bits, source, result)

    def f_from_int(self, a: Integer, bits: int, signed: bool, fmt: FloatFormat) -> Integer:
        return _numeric(numeric.from_integer, (a,), bits, bits, signed, fmt)

    def f_to_int(self, a: Integer, fmt: FloatFormat, bits: int, signed: bool) -> Integer:
        return _numeric(numeric.to_integer, (a,), fmt.bits, fmt, bits, signed)

    @property
    def machine(self) -> FloatMode:
        return self._machine

    def lane(self) -> Integer:
        return 0

    def first_active_lane(self, a: Integer) -> Integer:
        return a

    def read_lane(self, a: Integer, lane: Integer) -> Integer:
        return a

    def write_lane(self, old: Integer, value: Integer, lane: Integer) -> Integer:
        return value

    def gather(self, a: Integer, lane: Integer) -> Integer:
        return a

    def shuffle(self, a: Integer, lane: Integer) -> Integer:
        return a

    def lane_active(self, lane: Integer) -> Integer:
        return 1

    def wave_lanes(self) -> int:
        return 1


def _numeric(
    operation: Callable[..., np.ndarray], values: tuple[Integer, ...], bits: int, *rest: Any
) -> Integer:
    """Floating point has one definition: the one over arrays."""
    arrays = []
    for value in values:
        if isinstance(value, Unknown):
            return _unknown(0, *values)
        arrays.append(np.array([value], dtype=UNSIGNED[bits]))
    return int(operation(*arrays, *rest)[0])
