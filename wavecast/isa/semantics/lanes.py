"""Evaluator over numpy arrays: one element per lane of a wave.

Conditions are `bool` arrays, 16-bit values `uint16`, 32-bit ones `uint32`, 64-bit ones `uint64`.
Arrays of one element stand for a value that is the same in every lane.
"""

# ruff: noqa: ARG002 (operations are passed widths whether or not an evaluator needs them)
from __future__ import annotations

from functools import cache

import numpy as np

from wavecast.isa.semantics import numeric
from wavecast.isa.semantics.formats import FloatFormat
from wavecast.isa.semantics.machine import FloatMode
from wavecast.isa.semantics.ops import Direction, Ops

Lanes = np.ndarray

UNSIGNED = {1: np.bool_, 16: np.uint16, 32: np.uint32, 64: np.uint64}
SIGNED = {1: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


@cache
def constant(value: int, bits: int) -> Lanes:
    """One read-only element; `value` is taken modulo 2^bits."""
    array = np.array([value & ((1 << bits) - 1)], dtype=UNSIGNED[bits])
    array.setflags(write=False)
    return array


class LaneOps(Ops[Lanes]):
    """Operations on the lanes of one wave. `active` is EXEC as one boolean per lane."""

    def __init__(
        self, lanes: int, active: Lanes | None = None, machine: FloatMode | None = None
    ) -> None:
        self.lanes = lanes
        self._machine = machine or FloatMode()
        self.active = np.ones(lanes, dtype=np.bool_) if active is None else active

    def const(self, value: int, bits: int) -> Lanes:
        return constant(value, bits)

    def add(self, a: Lanes, b: Lanes, bits: int) -> Lanes:
        return a + b

    def sub(self, a: Lanes, b: Lanes, bits: int) -> Lanes:
        return a - b

    def mul(self, a: Lanes, b: Lanes, bits: int) -> Lanes:
        return a * b

    def mul_high(self, a: Lanes, b: Lanes, bits: int) -> Lanes:
        if bits == 32:
            wide = a.astype(np.uint64) * b.astype(np.uint64)
            return (wide >> np.uint64(32)).astype(np.uint32)
        low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
        a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
        middle = a1 * b0 + (a0 * b0 >> half)
        carry = a0 * b1 + (middle & low)
        return a1 * b1 + (middle >> half) + (carry >> half)

    def and_(self, a: Lanes, b: Lanes, bits: int) -> Lanes:
        return a & b

    def or_(self, a: Lanes, b: Lanes, bits: int) -> Lanes:
        return a | b

    def xor(self, a: Lanes, b: Lanes, bits: int) -> Lanes:
        return a ^ b

    def shl(self, a: Lanes, amount: Lanes, bits: int) -> Lanes:
        return a << amount

    def lshr(self, a: Lanes, amount: Lanes, bits: int) -> Lanes:
        return a >> amount

    def ashr(self, a: Lanes, amount: Lanes, bits: int) -> Lanes:
        signed = SIGNED[bits]
        return (a.view(signed) >> amount.astype(signed)).view(UNSIGNED[bits])

    def eq(self, a: Lanes, b: Lanes, bits: int) -> Lanes:
        return a == b

    def less_unsigned(self, a: Lanes, b: Lanes, bits: int) -> Lanes:
        return a < b

    def less_signed(self, a: Lanes, b: Lanes, bits: int) -> Lanes:
        return a.view(SIGNED[bits]) < b.view(SIGNED[bits])

    def select(self, condition: Lanes, a: Lanes, b: Lanes, bits: int) -> Lanes:
        return np.where(condition, a, b)

    def zero_extend(self, a: Lanes, bits: int, wider: int) -> Lanes:
        return a.astype(UNSIGNED[wider])

    def sign_extend(self, a: Lanes, bits: int, wider: int) -> Lanes:
        if bits == 1:
            return np.where(a, self.ones(wider), self.zero(wider))
        return a.view(SIGNED[bits]).astype(SIGNED[wider]).view(UNSIGNED[wider])

    def truncate(self, a: Lanes, bits: int, narrower: int) -> Lanes:
        if narrower == 1:
            return (a & np.array(1, a.dtype)) != 0
        return a.astype(UNSIGNED[narrower])

    def popcount(self, a: Lanes, bits: int) -> Lanes:
        octets = np.ascontiguousarray(a).view(np.uint8).reshape(a.size, -1)
        return np.unpackbits(octets, axis=1).sum(axis=1).astype(UNSIGNED[bits])

    def leading_zeros(self, a: Lanes, bits: int) -> Lanes:
        return self.trailing_zeros(self.reverse_bits(a, bits), bits)

    def trailing_zeros(self, a: Lanes, bits: int) -> Lanes:
        below = (a & (~a + np.array(1, a.dtype))) - np.array(1, a.dtype)
        return self.popcount(below, bits)

    def reverse_bits(self, a: Lanes, bits: int) -> Lanes:
        octets = np.ascontiguousarray(a).view(np.uint8).reshape(a.size, -1)
        flipped = np.packbits(np.unpackbits(octets, axis=1, bitorder="little"), axis=1)
        return np.ascontiguousarray(flipped[:, ::-1]).view(UNSIGNED[bits]).reshape(-1)

    def f_add(self, a: Lanes, b: Lanes, fmt: FloatFormat) -> Lanes:
        return numeric.add(a, b, fmt)

    def f_mul(self, a: Lanes, b: Lanes, fmt: FloatFormat) -> Lanes:
        return numeric.multiply(a, b, fmt)

    def f_fma(self, a: Lanes, b: Lanes, c: Lanes, fmt: FloatFormat) -> Lanes:
        return numeric.multiply_add(a, b, c, fmt)

    def f_div(self, a: Lanes, b: Lanes, fmt: FloatFormat) -> Lanes:
        return numeric.divide(a, b, fmt)

    def f_sqrt(self, a: Lanes, fmt: FloatFormat) -> Lanes:
        return numeric.square_root(a, fmt)

    def f_round(self, a: Lanes, fmt: FloatFormat, direction: Direction) -> Lanes:
        return numeric.round_to_integral(a, fmt, direction)

    def f_less(self, a: Lanes, b: Lanes, fmt: FloatFormat) -> Lanes:
        return numeric.less(a, b, fmt)

    def f_equal(self, a: Lanes, b: Lanes, fmt: FloatFormat) -> Lanes:
        return numeric.equal(a, b, fmt)

    def f_convert(self, a: Lanes, source: FloatFormat, result: FloatFormat) -> Lanes:
        return numeric.convert(a, source, result)

    def f_from_int(self, a: Lanes, bits: int, signed: bool, fmt: FloatFormat) -> Lanes:
        return numeric.from_integer(a, bits, signed, fmt)

    def f_to_int(self, a: Lanes, fmt: FloatFormat, bits: int, signed: bool) -> Lanes:
        return numeric.to_integer(a, fmt, bits, signed)

    @property
    def machine(self) -> FloatMode:
        return self._machine

    def lane(self) -> Lanes:
        return np.arange(self.lanes, dtype=np.uint32)

    def first_active_lane(self, a: Lanes) -> Lanes:
        if a.size == 1:
            return a
        position = int(np.argmax(self.active))
        return a[position : position + 1]

    def read_lane(self, a: Lanes, lane: Lanes) -> Lanes:
        if a.size == 1:
            return a
        position = int(lane[0]) % self.lanes
        return a[position : position + 1]

    def write_lane(self, old: Lanes, value: Lanes, lane: Lanes) -> Lanes:
        result = np.broadcast_to(old, (self.lanes,)).copy()
        result[int(lane[0]) % self.lanes] = value[0]
        return result

    def gather(self, a: Lanes, lane: Lanes) -> Lanes:
        source = lane % np.uint32(self.lanes)
        values = np.broadcast_to(a, (self.lanes,))[source]
        return np.where(self.active[source], values, np.uint32(0))

    def shuffle(self, a: Lanes, lane: Lanes) -> Lanes:
        return np.broadcast_to(a, (self.lanes,))[lane]

    def lane_active(self, lane: Lanes) -> Lanes:
        return self.active[lane]

    def wave_lanes(self) -> int:
        return self.lanes
