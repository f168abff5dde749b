"""Which bits of its inputs each bit of a result depends on: semantics evaluated on dependencies.

A value knows its constant bits and, for every source, the mask of its bits that may change with
that source. A `Source` is a cell (half a vector register, or a scalar register; see `cells.py`) and
how the lane that reads it is related to the lane that is read.
"""

# ruff: noqa: ARG002 - operations are passed widths whether or not an evaluator needs them
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from wavecast.isa.semantics.formats import FloatFormat
from wavecast.isa.semantics.machine import FloatMode
from wavecast.isa.semantics.ops import Direction, Ops


class Reach(IntEnum):
    """The lanes of a source that one lane of the result depends on."""

    OWN = 0
    UNIFORM = 1
    """A scalar register, the same for every lane."""
    MASK = 2
    """A lane mask in scalar registers: the lane's own bit."""
    ANY = 3
    """Any lane of the wave."""
    ACTIVE = 4
    """Any lane in EXEC."""
    FIRST = 5
    """The first lane in EXEC."""
    CHOSEN = 6
    """The lane a scalar operand names."""
    PERMUTED = 7
    """The lane a fixed permutation names."""
    OLD = 8
    """Its own, of what the instruction replaces (only while a result is being made)."""


class UndefinedSource(NamedTuple):
    """A cell and how it is reached."""

    cell: int
    reach: Reach


@dataclass(frozen=True, slots=True)
class Bits:
    """A value: `value` in the bits of `known`, and what other bits depend on."""

    depends: dict[UndefinedSource, int]
    known: int = 0
    value: int = 0


def _ones(bits: int) -> int:
    return (1 << bits) - 1


def _upward(mask: int, bits: int) -> int:
    """The lowest set bit and all above."""
    return _ones(bits) & -(mask & -mask)


def _downward(mask: int) -> int:
    """The highest set bit and all below."""
    return _ones(mask.bit_length())


class InfluenceOps(Ops[Bits]):
    """Evaluates on dependencies. `all_active`: EXEC is known to hold every lane of the wave."""

    def __init__(self, machine: FloatMode, lanes: int, *, all_active: bool = False) -> None:
        self._machine = machine
        self.lanes = lanes
        self.all_active = all_active
        self.writes_lane = False
        """Whether a row replaced one lane of a register."""

    @property
    def machine(self) -> FloatMode:
        return self._machine

    def const(self, value: int, bits: int) -> Bits:
        return Bits({}, _ones(bits), value & _ones(bits))

    def mix(self, bits: int, *values: Bits) -> Bits:
        """Every bit depends on all that the values depend on."""
        return Bits({source: _ones(bits) for value in values for source in value.depends})

    def _map_masks(
        self, move: Callable[[int], int], *values: Bits, known_bits: int = 0, value: int = 0
    ) -> Bits:
        """Dependencies of several values merged, their masks moved; none in known bits."""
        dependencies: dict[UndefinedSource, int] = {}
        for each in values:
            for source, mask in each.depends.items():
                new_mask = move(mask) & ~known_bits
                if new_mask:
                    dependencies[source] = dependencies.get(source, 0) | new_mask
        return Bits(dependencies, known_bits, value)

    # integers

    def add(self, a: Bits, b: Bits, bits: int) -> Bits:
        return self._propagate_carry(a, b, bits, a.value + b.value)

    def sub(self, a: Bits, b: Bits, bits: int) -> Bits:
        return self._propagate_carry(a, b, bits, a.value - b.value)

    def mul(self, a: Bits, b: Bits, bits: int) -> Bits:
        return self._propagate_carry(a, b, bits, a.value * b.value)

    def _propagate_carry(self, a: Bits, b: Bits, bits: int, result: int) -> Bits:
        if a.known == b.known == _ones(bits):
            return self.const(result, bits)
        return self._map_masks(lambda mask: _upward(mask, bits), a, b)

    def mul_high(self, a: Bits, b: Bits, bits: int) -> Bits:
        return self.mix(bits, a, b)

    def and_(self, a: Bits, b: Bits, bits: int) -> Bits:
        zeros = (a.known & ~a.value) | (b.known & ~b.value)
        known_bits = zeros | (a.known & b.known)
        return self._map_masks(
            lambda mask: mask, a, b, known_bits=known_bits, value=a.value & b.value & known_bits
        )

    def or_(self, a: Bits, b: Bits, bits: int) -> Bits:
        ones = (a.known & a.value) | (b.known & b.value)
        known_bits = ones | (a.known & b.known)
        return self._map_masks(
            lambda mask: mask, a, b, known_bits=known_bits, value=(a.value | b.value) & known_bits
        )

    def xor(self, a: Bits, b: Bits, bits: int) -> Bits:
        known_bits = a.known & b.known
        return self._map_masks(
            lambda mask: mask, a, b, known_bits=known_bits, value=(a.value ^ b.value) & known_bits
        )

    def shl(self, a: Bits, amount: Bits, bits: int) -> Bits:
        if amount.known == _ones(bits):
            by = amount.value
            filled = a.known << by | _ones(by)
            return self._shift(a, lambda mask: mask << by, filled, a.value << by, bits)
        smear = self._map_masks(lambda mask: _upward(mask, bits), a)
        return self._with_dependencies(smear, amount, bits)

    def lshr(self, a: Bits, amount: Bits, bits: int) -> Bits:
        if amount.known == _ones(bits):
            by = amount.value
            filled = a.known >> by | _ones(bits) & ~(_ones(bits) >> by)
            return self._shift(a, lambda mask: mask >> by, filled, a.value >> by, bits)
        return self._with_dependencies(self._map_masks(_downward, a), amount, bits)

    def ashr(self, a: Bits, amount: Bits, bits: int) -> Bits:
        sign = 1 << (bits - 1)
        if amount.known == _ones(bits):
            by = amount.value
            top = _ones(bits) & ~(_ones(bits) >> by)

            def move(mask: int) -> int:
                return mask >> by | (top if mask & sign else 0)

            return self._shift(a, move, move(a.known), move(a.value), bits)
        smear = self._map_masks(
            lambda mask: _ones(bits) if mask & sign else _downward(mask), a
        )  # fmt: skip
        return self._with_dependencies(smear, amount, bits)

    def _shift(
        self, a: Bits, move: Callable[[int], int], known_bits: int, value: int, bits: int
    ) -> Bits:
        known_bits &= _ones(bits)
        return self._map_masks(
            lambda mask: move(mask) & _ones(bits),
            a,
            known_bits=known_bits,
            value=value & known_bits,
        )

    def _with_dependencies(self, value: Bits, by: Bits, bits: int) -> Bits:
        """`value`, and every bit depends on what `by` does."""
        return self._map_masks(lambda mask: mask, value, self.mix(bits, by))

    def eq(self, a: Bits, b: Bits, bits: int) -> Bits:
        both = a.known & b.known
        if (a.value ^ b.value) & both:
            return self.const(0, 1)
        if both == _ones(bits):
            return self.const(1, 1)
        return self.mix(1, a, b)

    def less_unsigned(self, a: Bits, b: Bits, bits: int) -> Bits:
        if a.known == b.known == _ones(bits):
            return self.const(int(a.value < b.value), 1)
        return self.mix(1, a, b)

    def less_signed(self, a: Bits, b: Bits, bits: int) -> Bits:
        sign = self.const(1 << (bits - 1), bits)
        return self.less_unsigned(self.xor(a, sign, bits), self.xor(b, sign, bits), bits)

    def select(self, condition: Bits, a: Bits, b: Bits, bits: int) -> Bits:
        if condition.known & 1:
            return a if condition.value & 1 else b
        known_bits = a.known & b.known & ~(a.value ^ b.value)
        merged = self._map_masks(
            lambda mask: mask, a, b, self.mix(bits, condition), known_bits=known_bits
        )
        return Bits(merged.depends, known_bits, a.value & known_bits)

    # widths and counts

    def zero_extend(self, a: Bits, bits: int, wider: int) -> Bits:
        return Bits(a.depends, a.known | _ones(wider) & ~_ones(bits), a.value)

    def sign_extend(self, a: Bits, bits: int, wider: int) -> Bits:
        sign, top = 1 << (bits - 1), _ones(wider) & ~_ones(bits)

        def move(mask: int) -> int:
            return mask | (top if mask & sign else 0)

        return self._map_masks(move, a, known_bits=move(a.known), value=move(a.value))

    def truncate(self, a: Bits, bits: int, narrower: int) -> Bits:
        low_bits = _ones(narrower)
        return self._map_masks(
            lambda mask: mask & low_bits, a, known_bits=a.known & low_bits, value=a.value & low_bits
        )  # fmt: skip

    def popcount(self, a: Bits, bits: int) -> Bits:
        return self.mix(bits, a)

    def leading_zeros(self, a: Bits, bits: int) -> Bits:
        return self.mix(bits, a)

    def trailing_zeros(self, a: Bits, bits: int) -> Bits:
        return self.mix(bits, a)

    def reverse_bits(self, a: Bits, bits: int) -> Bits:
        def move(mask: int) -> int:
            return int(f"{mask:0{bits}b}"[::-1], 2)

        return self._map_masks(move, a, known_bits=move(a.known), value=move(a.value))

    # floating point: every bit of a result depends on the whole of its operands

    def f_add(self, a: Bits, b: Bits, fmt: FloatFormat) -> Bits:
        return self.mix(fmt.bits, a, b)

    def f_mul(self, a: Bits, b: Bits, fmt: FloatFormat) -> Bits:
        return self.mix(fmt.bits, a, b)

    def f_fma(self, a: Bits, b: Bits, c: Bits, fmt: FloatFormat) -> Bits:
        return self.mix(fmt.bits, a, b, c)

    def f_div(self, a: Bits, b: Bits, fmt: FloatFormat) -> Bits:
        return self.mix(fmt.bits, a, b)

    def f_sqrt(self, a: Bits, fmt: FloatFormat) -> Bits:
        return self.mix(fmt.bits, a)

    def f_round(self, a: Bits, fmt: FloatFormat, direction: Direction) -> Bits:
        return self.mix(fmt.bits, a)

    def f_less(self, a: Bits, b: Bits, fmt: FloatFormat) -> Bits:
        return self.mix(1, a, b)

    def f_equal(self, a: Bits, b: Bits, fmt: FloatFormat) -> Bits:
        return self.mix(1, a, b)

    def f_convert(self, a: Bits, source: FloatFormat, result: FloatFormat) -> Bits:
        return self.mix(result.bits, a)

    def f_from_int(self, a: Bits, bits: int, signed: bool, fmt: FloatFormat) -> Bits:
        return self.mix(fmt.bits, a)

    def f_to_int(self, a: Bits, fmt: FloatFormat, bits: int, signed: bool) -> Bits:
        return self.mix(bits, a)

    # the wave

    def lane(self) -> Bits:
        """Five or six bits that depend on nothing that could be undefined."""
        return Bits({}, _ones(32) & ~(self.lanes - 1), 0)

    def first_active_lane(self, a: Bits) -> Bits:
        return self._from(a, Reach.FIRST)

    def read_lane(self, a: Bits, lane: Bits) -> Bits:
        return self._with_dependencies(self._from(a, Reach.CHOSEN), lane, 32)

    def write_lane(self, old: Bits, value: Bits, lane: Bits) -> Bits:
        """What the lane that is written depends on; the others stay as they are."""
        self.writes_lane = True
        return self._with_dependencies(value, lane, 32)

    def gather(self, a: Bits, lane: Bits) -> Bits:
        return self._with_dependencies(self._from(a, Reach.ACTIVE), lane, 32)

    def shuffle(self, a: Bits, lane: Bits) -> Bits:
        return self._with_dependencies(self._from(a, Reach.ANY), lane, 32)

    def lane_active(self, lane: Bits) -> Bits:
        return self.const(1, 1) if self.all_active else self.mix(1, lane)

    def wave_lanes(self) -> int:
        return self.lanes

    def _from(self, a: Bits, reach: Reach) -> Bits:
        """The value in other lanes."""
        dependencies: dict[UndefinedSource, int] = {}
        for source, mask in a.depends.items():
            vector = source.reach in (Reach.OWN, Reach.OLD)
            new_source = UndefinedSource(source.cell, reach) if vector else source
            dependencies[new_source] = dependencies.get(new_source, 0) | mask
        return Bits(dependencies, a.known, a.value)


__all__ = ["Bits", "InfluenceOps", "Reach", "UndefinedSource"]
