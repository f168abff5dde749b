"""The small set of typed operations instruction semantics are written in.

Semantics call the methods of an `Ops` and never look at a value: what a value is belongs to the
evaluator. `IntegerOps` evaluates one value at a time, `LaneOps` one numpy array of lanes; a
compiler would return instructions of its intermediate language from the same methods.

Every value has a width in bits that the semantics know and pass along: 1 for conditions, 16, 32 or
64. Integers are unsigned bit patterns; signedness belongs to the operation. Floating-point values
are the bit patterns of their format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Literal, TypeVar

from wavecast.isa.semantics.formats import F32, FloatFormat
from wavecast.isa.semantics.machine import Denormals, FloatMode

V = TypeVar("V")
Direction = Literal["floor", "ceil", "trunc", "even"]


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

    # Floating point. `fmt` is F32 or F64: other formats are converted to and from these by rows
    # themselves (`rounding`), in the operations above and below.
    #
    # Results are rounded to nearest, ties to even; denormals are kept on both sides: rows apply
    # `flush_input` and `flush_result` where MODE counts. Zeros keep their sign as IEEE 754 has it.
    # An operand that is NaN gives that NaN with its quiet bit set, the first such operand if there
    # are several; an invalid operation (inf - inf, 0 * inf, 0 / 0, square root below zero) gives
    # `fmt.nan`. Native code may leave sign and payload of a NaN to its host.

    @abstractmethod
    def f_add(self, a: V, b: V, fmt: FloatFormat) -> V: ...

    @abstractmethod
    def f_mul(self, a: V, b: V, fmt: FloatFormat) -> V: ...

    @abstractmethod
    def f_fma(self, a: V, b: V, c: V, fmt: FloatFormat) -> V:
        """a * b + c, rounded once."""

    @abstractmethod
    def f_div(self, a: V, b: V, fmt: FloatFormat) -> V: ...

    @abstractmethod
    def f_sqrt(self, a: V, fmt: FloatFormat) -> V:
        """Correctly rounded; the square root of -0 is -0."""

    @abstractmethod
    def f_round(self, a: V, fmt: FloatFormat, direction: Direction) -> V:
        """The integral value below ("floor"), above ("ceil"), towards zero ("trunc"), or nearest
        with ties to even ("even"). Keeps the sign of zero and of values that round to it."""

    @abstractmethod
    def f_less(self, a: V, b: V, fmt: FloatFormat) -> V:
        """A condition, false when either is NaN; -0 is not less than +0."""

    @abstractmethod
    def f_equal(self, a: V, b: V, fmt: FloatFormat) -> V:
        """A condition, false when either is NaN; -0 equals +0."""

    @abstractmethod
    def f_convert(self, a: V, source: FloatFormat, result: FloatFormat) -> V:
        """F16 to F32, F32 to F16, F32 to F64, or F64 to F32.

        Overflow gives infinity; denormals of both formats are kept. A NaN is quieted and keeps its
        sign and the upper bits of its payload."""

    @abstractmethod
    def f_from_int(self, a: V, bits: int, signed: bool, fmt: FloatFormat) -> V:
        """An integer of 32 bits as F32 or F64, rounded to nearest even."""

    @abstractmethod
    def f_to_int(self, a: V, fmt: FloatFormat, bits: int, signed: bool) -> V:
        """Towards zero, to an integer of 32 bits; saturates, NaN gives 0."""

    # MODE

    @property
    def machine(self) -> FloatMode:
        """Target and mode the instruction runs on; known when it is translated."""
        return FloatMode()

    def saturates(self) -> V:
        """MODE.FP16_OVFL as a condition. Programs change it as they run, so an evaluator that does
        not know it ahead returns a value."""
        return self.const(int(self.machine.fp16_overflow), 1)

    def flush_input(self, a: V, fmt: FloatFormat) -> V:
        """An operand with denormals made zeros of their sign if MODE says so; F16, F32 or F64."""
        return a if self._denormals(fmt).inputs else self.without_denormals(a, fmt)

    def flush_result(self, a: V, fmt: FloatFormat) -> V:
        """A result with denormals made zeros of their sign if MODE says so; F16, F32 or F64."""
        return a if self._denormals(fmt).results else self.without_denormals(a, fmt)

    def _denormals(self, fmt: FloatFormat) -> Denormals:
        machine = self.machine
        return machine.denormals_f32 if fmt is F32 else machine.denormals_f16_f64

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

    @abstractmethod
    def shuffle(self, a: V, lane: V) -> V:
        """The 32-bit value of lane `lane`, chosen by each lane, whatever EXEC says. `lane` is below
        the wave size."""

    @abstractmethod
    def lane_active(self, lane: V) -> V:
        """Whether lane `lane` (32 bits, below the wave size) is in EXEC; a condition."""

    @abstractmethod
    def wave_lanes(self) -> int:
        """Lanes of a wave, 32 or 64; known when the instruction is translated."""

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
        bit = self.const(1, bits)
        return self.sub(self.shl(bit, width, bits), bit, bits)

    def join(self, low: V, high: V) -> V:
        """Two 32-bit values as one of 64 bits."""
        wide = self.shl(self.zero_extend(high, 32, 64), self.const(32, 64), 64)
        return self.or_(self.zero_extend(low, 32, 64), wide, 64)

    # floating point as bits; any format whose width the evaluator has

    def without_denormals(self, a: V, fmt: FloatFormat) -> V:
        """Denormals become zeros of their sign."""
        bits = fmt.bits
        exponent = self.and_(a, self.const(fmt.exponent_mask, bits), bits)
        zero = self.and_(a, self.const(fmt.sign, bits), bits)
        return self.select(self.eq(exponent, self.zero(bits), bits), zero, a, bits)

    def f_negate(self, a: V, fmt: FloatFormat) -> V:
        """The sign bit flipped, also of NaN."""
        return self.xor(a, self.const(fmt.sign, fmt.bits), fmt.bits)

    def f_absolute(self, a: V, fmt: FloatFormat) -> V:
        """The sign bit cleared, also of NaN."""
        return self.and_(a, self.const(fmt.sign - 1, fmt.bits), fmt.bits)

    def f_is_nan(self, a: V, fmt: FloatFormat) -> V:
        """A condition. The format has IEEE specials."""
        infinity = self.const(fmt.exponent_mask, fmt.bits)
        return self.less_unsigned(infinity, self.f_absolute(a, fmt), fmt.bits)

    def f_quieted(self, a: V, fmt: FloatFormat) -> V:
        """A NaN with its quiet bit set."""
        return self.or_(a, self.const(fmt.quiet, fmt.bits), fmt.bits)

    def f_is_zero(self, a: V, fmt: FloatFormat) -> V:
        """A condition, for zeros of both signs."""
        return self.eq(self.f_absolute(a, fmt), self.zero(fmt.bits), fmt.bits)

    def f_is_infinite(self, a: V, fmt: FloatFormat) -> V:
        """A condition, for infinities of both signs."""
        infinity = self.const(fmt.exponent_mask, fmt.bits)
        return self.eq(self.f_absolute(a, fmt), infinity, fmt.bits)
