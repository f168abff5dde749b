"""The small set of typed operations instruction semantics are written in.

Semantics call the methods of an `Ops` and never look at a value: what a value is belongs to the
evaluator. `IntegerOps` evaluates one value at a time, `LaneOps` one numpy array of lanes; a
compiler would return instructions of its own intermediate language from the same methods.

Every value has a width in bits that the semantics know and pass along: 1 for conditions, 16, 32 or
64. Integers are unsigned bit patterns; signedness belongs to the operation. Floating-point values
are the bit patterns of their format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

V = TypeVar("V")


class Ops(ABC, Generic[V]):
    """Typed operations over values of an evaluator. `bits` is the width of the operands."""

    # constants

    @abstractmethod
    def const(self, value: int, bits: int) -> V:
        """The same constant everywhere; taken modulo 2^bits."""

    # integer arithmetic, modulo 2^bits

    @abstractmethod
    def add(self, a: V, b: V, bits: int) -> V: ...

    @abstractmethod
    def sub(self, a: V, b: V, bits: int) -> V: ...

    @abstractmethod
    def mul(self, a: V, b: V, bits: int) -> V: ...

    @abstractmethod
    def mul_high(self, a: V, b: V, bits: int) -> V:
        """The upper half of the unsigned product."""

    @abstractmethod
    def and_(self, a: V, b: V, bits: int) -> V: ...

    @abstractmethod
    def or_(self, a: V, b: V, bits: int) -> V: ...

    @abstractmethod
    def xor(self, a: V, b: V, bits: int) -> V: ...

    # shifts; the amount has the width of the value and is below it

    @abstractmethod
    def shl(self, a: V, amount: V, bits: int) -> V: ...

    @abstractmethod
    def lshr(self, a: V, amount: V, bits: int) -> V: ...

    @abstractmethod
    def ashr(self, a: V, amount: V, bits: int) -> V: ...

    # comparisons give a condition (1 bit)

    @abstractmethod
    def eq(self, a: V, b: V, bits: int) -> V: ...

    @abstractmethod
    def less_unsigned(self, a: V, b: V, bits: int) -> V: ...

    @abstractmethod
    def less_signed(self, a: V, b: V, bits: int) -> V: ...

    @abstractmethod
    def select(self, condition: V, a: V, b: V, bits: int) -> V:
        """`a` where the condition holds, else `b`."""

    # widths

    @abstractmethod
    def zero_extend(self, a: V, bits: int, wider: int) -> V: ...

    @abstractmethod
    def sign_extend(self, a: V, bits: int, wider: int) -> V: ...

    @abstractmethod
    def truncate(self, a: V, bits: int, narrower: int) -> V: ...

    # bit counts

    @abstractmethod
    def popcount(self, a: V, bits: int) -> V: ...

    @abstractmethod
    def leading_zeros(self, a: V, bits: int) -> V:
        """`bits` for zero."""

    @abstractmethod
    def trailing_zeros(self, a: V, bits: int) -> V:
        """`bits` for zero."""

    @abstractmethod
    def reverse_bits(self, a: V, bits: int) -> V: ...

    # binary32 arithmetic on bit patterns, round to nearest even, denormals kept

    @abstractmethod
    def f32_add(self, a: V, b: V) -> V: ...

    @abstractmethod
    def f32_mul(self, a: V, b: V) -> V: ...

    @abstractmethod
    def f32_fma(self, a: V, b: V, c: V) -> V:
        """One rounding."""

    @abstractmethod
    def f32_reciprocal(self, a: V) -> V:
        """Hardware is within 1 ulp; evaluators may round correctly."""

    @abstractmethod
    def f32_round_to_zero(self, a: V) -> V:
        """The integral value next towards zero."""

    @abstractmethod
    def f32_floor(self, a: V) -> V: ...

    @abstractmethod
    def f32_less(self, a: V, b: V) -> V:
        """Ordered: false when either is NaN."""

    @abstractmethod
    def f32_equal(self, a: V, b: V) -> V:
        """Ordered: false when either is NaN."""

    @abstractmethod
    def f32_from_unsigned(self, a: V) -> V: ...

    @abstractmethod
    def f32_from_signed(self, a: V) -> V: ...

    @abstractmethod
    def f32_to_unsigned(self, a: V) -> V:
        """Towards zero; saturates, NaN gives 0."""

    @abstractmethod
    def f32_to_signed(self, a: V) -> V:
        """Towards zero; saturates, NaN gives 0."""

    # the wave

    @abstractmethod
    def lane(self) -> V:
        """The lane's own number (32 bits)."""

    @abstractmethod
    def first_active_lane(self, a: V) -> V:
        """The value of the lowest lane in EXEC, lane 0 when there is none; the same everywhere."""

    @abstractmethod
    def read_lane(self, a: V, lane: V) -> V:
        """The value of one lane, whatever EXEC says; the same everywhere. `lane` is uniform."""

    @abstractmethod
    def write_lane(self, old: V, value: V, lane: V) -> V:
        """`old` with one lane replaced by a uniform value, whatever EXEC says."""

    @abstractmethod
    def gather(self, a: V, lane: V) -> V:
        """The 32-bit value of lane `lane` (modulo the wave size), chosen by each lane; 0 where that
        lane is not in EXEC."""

    # what follows from the above

    def zero(self, bits: int) -> V:
        return self.const(0, bits)

    def ones(self, bits: int) -> V:
        return self.const(-1, bits)

    def not_(self, a: V, bits: int) -> V:
        return self.xor(a, self.ones(bits), bits)

    def negate(self, a: V, bits: int) -> V:
        return self.sub(self.zero(bits), a, bits)

    def and_not(self, a: V, b: V, bits: int) -> V:
        return self.and_(a, self.not_(b, bits), bits)

    def nonzero(self, a: V, bits: int) -> V:
        return self.not_(self.eq(a, self.zero(bits), bits), 1)

    def less(self, a: V, b: V, bits: int, signed: bool) -> V:
        return (self.less_signed if signed else self.less_unsigned)(a, b, bits)

    def minimum(self, a: V, b: V, bits: int, signed: bool) -> V:
        return self.select(self.less(a, b, bits, signed), a, b, bits)

    def maximum(self, a: V, b: V, bits: int, signed: bool) -> V:
        return self.select(self.less(a, b, bits, signed), b, a, bits)

    def low_bits(self, a: V, count: int, bits: int) -> V:
        """The lowest `count` bits of `a`."""
        return self.and_(a, self.const((1 << count) - 1, bits), bits)

    def extend(self, a: V, bits: int, wider: int, signed: bool) -> V:
        return (self.sign_extend if signed else self.zero_extend)(a, bits, wider)

    def low_half(self, a: V) -> V:
        """Bits 15:0 of a 32-bit value, still 32 bits wide."""
        return self.low_bits(a, 16, 32)

    def high_half(self, a: V) -> V:
        """Bits 31:16 of a 32-bit value, moved down."""
        return self.lshr(a, self.const(16, 32), 32)

    def bit_mask(self, width: V, bits: int) -> V:
        """`width` low ones; `width` is below `bits`."""
        one = self.const(1, bits)
        return self.sub(self.shl(one, width, bits), one, bits)

    def join(self, low: V, high: V) -> V:
        """Two 32-bit values as one of 64 bits."""
        wide = self.shl(self.zero_extend(high, 32, 64), self.const(32, 64), 64)
        return self.or_(self.zero_extend(low, 32, 64), wide, 64)
