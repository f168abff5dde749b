"""Floating-point arithmetic of instructions: any of F16, BF16, F32 and F64, with MODE applied.

`Float(fmt)` holds the operations of one format. Values are as wide as registers: 32 bits for F16
and BF16 (the upper half of operands is ignored, that of results zero) and F32, 64 for F64.
MODE.FP_DENORM applies to operands and results of every method; 16-bit formats are computed in F32
or F64 with one rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from wavecast.isa.semantics.formats import BF16, F16, F32, F64, FloatFormat
from wavecast.isa.semantics.ops import Direction, Ops
from wavecast.isa.semantics.rounding import (
    double_to_single_odd,
    narrow,
    saturated_half,
    sum_to_odd,
    to_double,
    widen,
)

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Float:
    """Operations of instructions on one format."""

    fmt: FloatFormat

    @property
    def bits(self) -> int:
        """Register width of a value: 32 or 64."""
        return max(self.fmt.bits, 32)

    @property
    def half(self) -> bool:
        """Computed in a wider format."""
        return self.fmt.bits == 16

    def const(self, o: Ops[V], pattern: int) -> V:
        """A bit pattern of the format."""
        return o.const(pattern, self.bits)

    def operand(self, o: Ops[V], a: V) -> V:
        """An operand as MODE lets it in; the upper half of 16-bit ones cleared."""
        if not self.half:
            return o.flush_input(a, self.fmt)
        return o.zero_extend(o.flush_input(o.truncate(a, 32, 16), self.fmt), 16, 32)

    def result(self, o: Ops[V], a: V) -> V:
        """A result as MODE lets it out."""
        if not self.half:
            return o.flush_result(a, self.fmt)
        return o.zero_extend(o.flush_result(o.truncate(a, 32, 16), self.fmt), 16, 32)

    def is_nan(self, o: Ops[V], a: V) -> V:
        """A condition; `a` as `operand` gives it."""
        infinity = self.const(o, self.fmt.exponent_mask)
        return o.less_unsigned(infinity, self.absolute(o, a), self.bits)

    def is_infinite(self, o: Ops[V], a: V) -> V:
        return o.eq(self.absolute(o, a), self.const(o, self.fmt.exponent_mask), self.bits)

    def is_zero(self, o: Ops[V], a: V) -> V:
        return o.eq(self.absolute(o, a), o.zero(self.bits), self.bits)

    def make_quiet(self, o: Ops[V], a: V) -> V:
        return o.or_(a, self.const(o, self.fmt.quiet), self.bits)

    def negate(self, o: Ops[V], a: V) -> V:
        return o.xor(a, self.const(o, self.fmt.sign), self.bits)

    def absolute(self, o: Ops[V], a: V) -> V:
        return o.and_(a, self.const(o, self.fmt.sign - 1), self.bits)

    def add(self, o: Ops[V], a: V, b: V) -> V:
        return self._compute(o, lambda fmt, x, y: o.f_add(x, y, fmt), a, b)

    def subtract(self, o: Ops[V], a: V, b: V) -> V:
        return self.add(o, a, self.negate(o, b))

    def multiply(self, o: Ops[V], a: V, b: V) -> V:
        return self._compute(o, lambda fmt, x, y: o.f_mul(x, y, fmt), a, b)

    def square_root(self, o: Ops[V], a: V) -> V:
        return self._compute(o, lambda fmt, x: o.f_sqrt(x, fmt), a)

    def round(self, o: Ops[V], a: V, direction: Direction) -> V:
        return self._compute(o, lambda fmt, x: o.f_round(x, fmt, direction), a)

    def fma(self, o: Ops[V], a: V, b: V, c: V) -> V:
        """a * b + c, rounded once."""
        if not self.half:
            return self._compute(o, lambda fmt, x, y, z: o.f_fma(x, y, z, fmt), a, b, c)
        operands = [self.operand(o, value) for value in (a, b, c)]
        x, y, z = (to_double(o, value, self.fmt) for value in operands)
        # a product of two 11-bit significands is exact in F64
        total = double_to_single_odd(o, sum_to_odd(o, o.f_mul(x, y, F64), z))
        return self._finish(o, narrow(o, total, self.fmt), operands)

    def less(self, o: Ops[V], a: V, b: V) -> V:
        """A condition, false when either is NaN."""
        return self._relate(o, o.f_less, a, b)

    def equal(self, o: Ops[V], a: V, b: V) -> V:
        """A condition, false when either is NaN."""
        return self._relate(o, o.f_equal, a, b)

    def _relate(self, o: Ops[V], relation: Callable[[V, V, FloatFormat], V], a: V, b: V) -> V:
        a, b = self.operand(o, a), self.operand(o, b)
        if self.half:
            return relation(widen(o, a, self.fmt), widen(o, b, self.fmt), F32)
        return relation(a, b, self.fmt)

    def _compute(self, o: Ops[V], compute: Callable[..., V], *values: V) -> V:
        """One operation; 16-bit formats in F32, whose second rounding is harmless for sums,
        products, quotients and square roots (Figueroa 1995: 24 >= 2 * 11 + 2)."""
        operands = [self.operand(o, value) for value in values]
        if not self.half:
            return self.result(o, compute(self.fmt, *operands))
        wide = compute(F32, *(widen(o, value, self.fmt) for value in operands))
        if self.fmt is BF16:
            return self.result(o, narrow(o, wide, BF16))
        return self._finish(o, o.zero_extend(o.f_convert(wide, F32, F16), 16, 32), operands)

    def _finish(self, o: Ops[V], rounded: V, operands: list[V]) -> V:
        """Overflow as MODE.FP16_OVFL has it, then denormals."""
        if self.fmt is not F16:
            return self.result(o, rounded)
        infinite = o.const(0, 1)
        for value in operands:
            infinite = o.or_(infinite, self.is_infinite(o, value), 1)
        return self.result(o, saturated_half(o, rounded, infinite))


HALF, BRAIN, SINGLE, DOUBLE = Float(F16), Float(BF16), Float(F32), Float(F64)
FLOATS_BY_NAME = {item.fmt.name: item for item in (HALF, BRAIN, SINGLE, DOUBLE)}
