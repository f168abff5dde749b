"""Which bits of a scalar result are undefined: semantics evaluated on values with shadows.

A value is a pair: the value, and a shadow of its width whose set bits are undefined. The rules are
those of MemorySanitizer (Stepanov and Serebryany, CGO 2015, section 3.3): exact for bitwise
operations, shifts, selects and equality; a carry makes all bits above undefined; everything else
is undefined as a whole when any bit of an operand is.
"""

# ruff: noqa: ARG002 - operations are passed widths whether or not an evaluator needs them
from __future__ import annotations

from typing import Any, NoReturn

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower.ops import LlvmOps
from wavecast.emulate.values import constant
from wavecast.isa.semantics.formats import FloatFormat
from wavecast.isa.semantics.machine import FloatMode
from wavecast.isa.semantics.ops import Direction, Ops

Pair = tuple[Any, Any]


class ShadowOps(Ops[Pair]):
    """Evaluates on pairs, by way of the operations that give values."""

    def __init__(self, values: LlvmOps) -> None:
        self.values = values
        self.builder = values.builder

    @property
    def machine(self) -> FloatMode:
        return self.values.machine

    def saturates(self) -> Pair:
        return self.values.saturates(), constant(0, 1)

    def const(self, value: int, bits: int) -> Pair:
        return constant(value, bits), constant(0, bits)

    def _whole(self, result: Any, *operands: Pair) -> Pair:
        """All bits undefined when any bit of an operand is."""
        builder = self.builder
        some: Any = constant(0, 1)
        for _, shadow in operands:
            some = builder.or_(some, builder.icmp_unsigned("!=", shadow, shadow.type(0)))
        return result, some if result.type.width == 1 else builder.sext(some, result.type)

    def _either(self, a: Pair, b: Pair) -> Any:
        return self.builder.or_(a[1], b[1])

    # integers

    def _propagate_carry(self, result: Any, a: Pair, b: Pair) -> Pair:
        """Undefined from the lowest undefined bit on."""
        shadow = self._either(a, b)
        return result, self.builder.or_(shadow, self.builder.neg(shadow))

    def add(self, a: Pair, b: Pair, bits: int) -> Pair:
        return self._propagate_carry(self.values.add(a[0], b[0], bits), a, b)

    def sub(self, a: Pair, b: Pair, bits: int) -> Pair:
        return self._propagate_carry(self.values.sub(a[0], b[0], bits), a, b)

    def mul(self, a: Pair, b: Pair, bits: int) -> Pair:
        return self._propagate_carry(self.values.mul(a[0], b[0], bits), a, b)

    def mul_high(self, a: Pair, b: Pair, bits: int) -> Pair:
        return self._whole(self.values.mul_high(a[0], b[0], bits), a, b)

    def and_(self, a: Pair, b: Pair, bits: int) -> Pair:
        builder = self.builder
        mine, other = builder.and_(a[1], builder.or_(b[0], b[1])), builder.and_(a[0], b[1])
        return self.values.and_(a[0], b[0], bits), builder.or_(mine, other)

    def or_(self, a: Pair, b: Pair, bits: int) -> Pair:
        builder = self.builder
        clear_a, clear_b = builder.not_(a[0]), builder.not_(b[0])
        mine, other = builder.and_(a[1], builder.or_(clear_b, b[1])), builder.and_(clear_a, b[1])
        return self.values.or_(a[0], b[0], bits), builder.or_(mine, other)

    def xor(self, a: Pair, b: Pair, bits: int) -> Pair:
        return self.values.xor(a[0], b[0], bits), self._either(a, b)

    def _shift(self, result: Any, shadow: Any, amount: Pair) -> Pair:
        _, all_of_it = self._whole(result, amount)
        return result, self.builder.or_(shadow, all_of_it)

    def shl(self, a: Pair, amount: Pair, bits: int) -> Pair:
        shadow = self.builder.shl(a[1], amount[0])
        return self._shift(self.values.shl(a[0], amount[0], bits), shadow, amount)

    def lshr(self, a: Pair, amount: Pair, bits: int) -> Pair:
        shadow = self.builder.lshr(a[1], amount[0])
        return self._shift(self.values.lshr(a[0], amount[0], bits), shadow, amount)

    def ashr(self, a: Pair, amount: Pair, bits: int) -> Pair:
        shadow = self.builder.ashr(a[1], amount[0])
        return self._shift(self.values.ashr(a[0], amount[0], bits), shadow, amount)

    def eq(self, a: Pair, b: Pair, bits: int) -> Pair:
        """Undefined unless bits that are defined on both sides differ already."""
        builder = self.builder
        shadow = self._either(a, b)
        differ: Any = builder.and_(builder.xor(a[0], b[0]), builder.not_(shadow))
        some = builder.icmp_unsigned("!=", shadow, shadow.type(0))
        open_ = builder.icmp_unsigned("==", differ, differ.type(0))
        return self.values.eq(a[0], b[0], bits), builder.and_(some, open_)

    def less_unsigned(self, a: Pair, b: Pair, bits: int) -> Pair:
        return self._whole(self.values.less_unsigned(a[0], b[0], bits), a, b)

    def less_signed(self, a: Pair, b: Pair, bits: int) -> Pair:
        return self._whole(self.values.less_signed(a[0], b[0], bits), a, b)

    def select(self, condition: Pair, a: Pair, b: Pair, bits: int) -> Pair:
        builder = self.builder
        selection = builder.select(condition[0], a[1], b[1])
        unknown = builder.or_(self._either(a, b), builder.xor(a[0], b[0]))
        shadow = builder.select(condition[1], unknown, selection)
        return self.values.select(condition[0], a[0], b[0], bits), shadow

    # widths and counts

    def zero_extend(self, a: Pair, bits: int, wider: int) -> Pair:
        values = self.values
        return values.zero_extend(a[0], bits, wider), values.zero_extend(a[1], bits, wider)

    def sign_extend(self, a: Pair, bits: int, wider: int) -> Pair:
        values = self.values
        return values.sign_extend(a[0], bits, wider), values.sign_extend(a[1], bits, wider)

    def truncate(self, a: Pair, bits: int, narrower: int) -> Pair:
        values = self.values
        return values.truncate(a[0], bits, narrower), values.truncate(a[1], bits, narrower)

    def popcount(self, a: Pair, bits: int) -> Pair:
        return self._whole(self.values.popcount(a[0], bits), a)

    def leading_zeros(self, a: Pair, bits: int) -> Pair:
        return self._whole(self.values.leading_zeros(a[0], bits), a)

    def trailing_zeros(self, a: Pair, bits: int) -> Pair:
        return self._whole(self.values.trailing_zeros(a[0], bits), a)

    def reverse_bits(self, a: Pair, bits: int) -> Pair:
        return self.values.reverse_bits(a[0], bits), self.values.reverse_bits(a[1], bits)

    # floating point

    def f_add(self, a: Pair, b: Pair, fmt: FloatFormat) -> Pair:
        return self._whole(self.values.f_add(a[0], b[0], fmt), a, b)

    def f_mul(self, a: Pair, b: Pair, fmt: FloatFormat) -> Pair:
        return self._whole(self.values.f_mul(a[0], b[0], fmt), a, b)

    def f_fma(self, a: Pair, b: Pair, c: Pair, fmt: FloatFormat) -> Pair:
        return self._whole(self.values.f_fma(a[0], b[0], c[0], fmt), a, b, c)

    def f_div(self, a: Pair, b: Pair, fmt: FloatFormat) -> Pair:
        return self._whole(self.values.f_div(a[0], b[0], fmt), a, b)

    def f_sqrt(self, a: Pair, fmt: FloatFormat) -> Pair:
        return self._whole(self.values.f_sqrt(a[0], fmt), a)

    def f_round(self, a: Pair, fmt: FloatFormat, direction: Direction) -> Pair:
        return self._whole(self.values.f_round(a[0], fmt, direction), a)

    def f_less(self, a: Pair, b: Pair, fmt: FloatFormat) -> Pair:
        return self._whole(self.values.f_less(a[0], b[0], fmt), a, b)

    def f_equal(self, a: Pair, b: Pair, fmt: FloatFormat) -> Pair:
        return self._whole(self.values.f_equal(a[0], b[0], fmt), a, b)

    def f_convert(self, a: Pair, source: FloatFormat, result: FloatFormat) -> Pair:
        return self._whole(self.values.f_convert(a[0], source, result), a)

    def f_from_int(self, a: Pair, bits: int, signed: bool, fmt: FloatFormat) -> Pair:
        return self._whole(self.values.f_from_int(a[0], bits, signed, fmt), a)

    def f_to_int(self, a: Pair, fmt: FloatFormat, bits: int, signed: bool) -> Pair:
        return self._whole(self.values.f_to_int(a[0], fmt, bits, signed), a)

    # scalar code sees no lanes

    def _no_lanes(self) -> NoReturn:
        raise Unsupported("lanes in scalar code")

    def lane(self) -> Pair:
        self._no_lanes()

    def first_active_lane(self, a: Pair) -> Pair:
        self._no_lanes()

    def read_lane(self, a: Pair, lane: Pair) -> Pair:
        self._no_lanes()

    def write_lane(self, old: Pair, value: Pair, lane: Pair) -> Pair:
        self._no_lanes()

    def gather(self, a: Pair, lane: Pair) -> Pair:
        self._no_lanes()

    def shuffle(self, a: Pair, lane: Pair) -> Pair:
        self._no_lanes()

    def lane_active(self, lane: Pair) -> Pair:
        self._no_lanes()

    def wave_lanes(self) -> int:
        return self.values.wave_lanes()


__all__ = ["Pair", "ShadowOps"]
