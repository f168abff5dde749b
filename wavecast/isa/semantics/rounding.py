"""Conversions between any two floating-point formats, written in the operations of `Ops`.

Values of formats below 32 bits are passed in 32 bits here, with zeros above.
"""

from __future__ import annotations

from typing import Literal, TypeVar

from wavecast.dtypes import SpecialValues
from wavecast.isa.semantics.formats import BF16, F16, F32, F64, FloatFormat
from wavecast.isa.semantics.ops import Ops

V = TypeVar("V")
Rounding = Literal["even", "zero"]


def widen(o: Ops[V], a: V, fmt: FloatFormat) -> V:
    """Any format up to 32 bits as F32, exactly; NaN is quieted."""
    if fmt is F32:
        return a
    if fmt is F16:
        return o.f_convert(o.truncate(a, 32, 16), F16, F32)
    if fmt is BF16:
        wide = o.shl(a, o.const(16, 32), 32)
        return o.select(o.f_is_nan(wide, F32), o.f_quieted(wide, F32), wide, 32)
    sign = o.shl(o.and_(a, o.const(fmt.sign, 32), 32), o.const(32 - fmt.bits, 32), 32)
    magnitude = o.and_(a, o.const(fmt.sign - 1, 32), 32)
    # read as binary32 with the bias of the small format, which one exact product repairs
    shifted = o.shl(magnitude, o.const(F32.fraction - fmt.fraction, 32), 32)
    scale = o.const((2 * F32.bias - fmt.bias) << F32.fraction, 32)
    value = _with_specials(o, o.f_mul(shifted, scale, F32), a, magnitude, fmt)
    return o.or_(value, sign, 32)


def _with_specials(o: Ops[V], value: V, a: V, magnitude: V, fmt: FloatFormat) -> V:
    """`value`, or what the special patterns of a small format are in F32, without the sign."""
    nan = o.const(F32.exponent_mask | F32.quiet, 32)
    if fmt.specials is SpecialValues.IEEE:
        infinity = o.const(fmt.exponent_mask, 32)
        value = o.select(o.eq(magnitude, infinity, 32), o.const(F32.exponent_mask, 32), value, 32)
        return o.select(o.less_unsigned(infinity, magnitude, 32), nan, value, 32)
    if fmt.specials is SpecialValues.ONE_NAN:
        return o.select(o.eq(magnitude, o.const(fmt.nan, 32), 32), nan, value, 32)
    if fmt.specials is SpecialValues.FNUZ:
        return o.select(o.eq(a, o.const(fmt.nan, 32), 32), nan, value, 32)
    return value


def narrow(o: Ops[V], a: V, fmt: FloatFormat, rounding: Rounding = "even") -> V:
    """F32 as any format up to 32 bits. Overflow is infinity (NaN where there is none, the largest
    number where there is neither), or the largest number if MODE.FP16_OVFL says so."""
    if fmt is F32:
        return a
    if fmt is F16 and rounding == "even":
        result = o.zero_extend(o.f_convert(a, F32, F16), 16, 32)
        return saturated_half(o, result, o.f_is_infinite(a, F32))
    sign, exponent, significand = _parts(o, a)
    significand_bits, count = _align_significand(o, exponent, significand, fmt)
    if rounding == "even":
        bit = o.const(1, 32)
        lowest = o.low_bits(o.lshr(significand_bits, count, 32), 1, 32)
        half = o.sub(o.shl(bit, o.sub(count, bit, 32), 32), bit, 32)
        significand_bits = o.add(significand_bits, o.add(half, lowest, 32), 32)
    return _assemble_float(o, a, sign, exponent, o.lshr(significand_bits, count, 32), fmt, rounding)


def narrow_stochastically(o: Ops[V], a: V, random: V, fmt: FloatFormat) -> V:
    """F32 as a smaller format: the top bits of `random` are added below the last kept bit, then
    the rest is cut off.

    The guides leave open what happens to results that are denormal; here the significand is moved
    to its place first and loses what falls off, as AMD's published host functions do it.
    """
    dropped = F32.fraction - fmt.fraction
    sign, exponent, significand = _parts(o, a)
    significand_bits, count = _align_significand(o, exponent, significand, fmt)
    window = o.lshr(significand_bits, o.sub(count, o.const(dropped, 32), 32), 32)
    noise = o.lshr(random, o.const(32 - dropped, 32), 32)
    magnitude = o.lshr(o.add(window, noise, 32), o.const(dropped, 32), 32)
    return _assemble_float(o, a, sign, exponent, magnitude, fmt, "even")


def _parts(o: Ops[V], a: V) -> tuple[V, V, V]:
    """Sign bit (in place), biased exponent (1 for denormals) and significand of an F32."""
    sign = o.and_(a, o.const(F32.sign, 32), 32)
    field = o.lshr(o.f_absolute(a, F32), o.const(F32.fraction, 32), 32)
    fraction = o.low_bits(a, F32.fraction, 32)
    denormal = o.eq(field, o.zero(32), 32)
    leading = o.or_(fraction, o.const(1 << F32.fraction, 32), 32)
    significand = o.select(denormal, fraction, leading, 32)
    return sign, o.select(denormal, o.const(1, 32), field, 32), significand


def _align_significand(o: Ops[V], exponent: V, significand: V, fmt: FloatFormat) -> tuple[V, V]:
    """The significand and how far it moves right to the last place of `fmt`, at most 31."""
    # below the smallest normal exponent the last place no longer follows the value
    least = o.const(F32.bias - fmt.bias + 1, 32)
    short = o.select(o.less_signed(exponent, least, 32), o.sub(least, exponent, 32), o.zero(32), 32)
    count = o.add(short, o.const(F32.fraction - fmt.fraction, 32), 32)
    return significand, o.minimum(count, o.const(31, 32), 32, signed=False)


def _assemble_float(
    o: Ops[V], a: V, sign: V, exponent: V, significand: V, fmt: FloatFormat, rounding: Rounding
) -> V:
    """Sign, exponent and rounded significand as a pattern of `fmt`; specials and overflow."""
    least = o.const(F32.bias - fmt.bias + 1, 32)
    above = o.sub(exponent, least, 32)
    above = o.select(o.less_signed(above, o.zero(32), 32), o.zero(32), above, 32)
    # the leading one of a normal significand counts as one exponent step
    magnitude = o.add(significand, o.shl(above, o.const(fmt.fraction, 32), 32), 32)
    large = o.less_unsigned(o.const(fmt.largest, 32), magnitude, 32)
    magnitude = o.select(large, _overflow(o, fmt, rounding), magnitude, 32)
    infinite = o.f_is_infinite(a, F32)
    magnitude = o.select(infinite, _infinity(o, fmt), magnitude, 32)
    small_sign = o.lshr(sign, o.const(32 - fmt.bits, 32), 32)
    result = o.or_(magnitude, small_sign, 32)
    if fmt.specials is SpecialValues.FNUZ:
        # -0 would be NaN; so is what overflowed, which has no sign
        result = o.select(o.eq(magnitude, o.zero(32), 32), o.zero(32), result, 32)
        wrong = o.eq(magnitude, o.const(fmt.nan, 32), 32)
        result = o.select(wrong, o.const(fmt.nan, 32), result, 32)
    return o.select(o.f_is_nan(a, F32), _nan(o, a, small_sign, fmt), result, 32)


def _overflow(o: Ops[V], fmt: FloatFormat, rounding: Rounding) -> V:
    largest = o.const(fmt.largest, 32)
    if rounding == "zero" or fmt.specials is SpecialValues.NONE:
        return largest
    beyond = fmt.exponent_mask if fmt.specials is SpecialValues.IEEE else fmt.nan
    if fmt is BF16:
        return o.const(beyond, 32)
    return o.select(o.saturates(), largest, o.const(beyond, 32), 32)


def _infinity(o: Ops[V], fmt: FloatFormat) -> V:
    """What an infinite operand becomes; 16-bit formats keep it whatever MODE says."""
    if fmt.bits == 16:
        return o.const(fmt.exponent_mask, 32)
    return _overflow(o, fmt, "even")


def _nan(o: Ops[V], a: V, sign: V, fmt: FloatFormat) -> V:
    if fmt.specials is SpecialValues.FNUZ:
        return o.const(fmt.nan, 32)
    if fmt.specials is SpecialValues.IEEE:
        payload = o.low_bits(a, F32.fraction, 32)
        payload = o.lshr(payload, o.const(F32.fraction - fmt.fraction, 32), 32)
        quiet = o.const(fmt.exponent_mask | fmt.quiet, 32)
        return o.or_(sign, o.or_(payload, quiet, 32), 32)
    # formats without NaN: the guides give no result; the largest number keeps the sign
    pattern = fmt.nan if fmt.specials is SpecialValues.ONE_NAN else fmt.largest
    return o.or_(sign, o.const(pattern, 32), 32)


def saturated_half(o: Ops[V], result: V, keeps_infinity: V) -> V:
    """An F16 result (32 bits wide) with infinity made 65504 if MODE.FP16_OVFL says so, except
    where an operand was infinite."""
    magnitude = o.low_bits(result, 15, 32)
    overflow = o.eq(magnitude, o.const(F16.exponent_mask, 32), 32)
    clamps = o.and_(o.and_(overflow, o.not_(keeps_infinity, 1), 1), o.saturates(), 1)
    # the pattern before infinity is the largest number
    return o.select(clamps, o.sub(result, o.const(1, 32), 32), result, 32)


def double_to_single_odd(o: Ops[V], a: V) -> V:
    """F64 as F32 rounded to odd: rounding the result once more, to a format at least two bits
    narrower, rounds once overall (Boldo and Melquiond 2008)."""
    near = o.f_convert(a, F64, F32)
    back = o.f_convert(near, F32, F64)
    exact = o.or_(o.f_equal(back, a, F64), o.f_is_nan(a, F64), 1)
    odd = o.truncate(near, 32, 1)
    settled = o.or_(exact, odd, 1)
    beyond = o.f_less(o.f_absolute(a, F64), o.f_absolute(back, F64), F64)
    ulp = o.const(1, 32)
    neighbour = o.select(beyond, o.sub(near, ulp, 32), o.add(near, ulp, 32), 32)
    return o.select(settled, near, neighbour, 32)


def sum_to_odd(o: Ops[V], a: V, b: V) -> V:
    """a + b in F64 rounded to odd: the error of the sum is exact (Knuth's TwoSum) and decides."""
    total = o.f_add(a, b, F64)
    part = o.f_add(total, o.f_negate(a, F64), F64)
    rest = o.f_add(a, o.f_negate(o.f_add(total, o.f_negate(part, F64), F64), F64), F64)
    error = o.f_add(rest, o.f_add(b, o.f_negate(part, F64), F64), F64)
    zero = o.zero(64)
    below, above = o.f_less(error, zero, F64), o.f_less(zero, error, F64)
    inexact = o.and_(o.or_(below, above, 1), o.not_(o.truncate(total, 64, 1), 1), 1)
    inexact = o.and_(inexact, o.not_(o.f_is_infinite(total, F64), 1), 1)
    positive = o.f_less(zero, total, F64)
    towards_zero = o.not_(o.xor(below, positive, 1), 1)
    ulp = o.const(1, 64)
    neighbour = o.select(towards_zero, o.sub(total, ulp, 64), o.add(total, ulp, 64), 64)
    return o.select(inexact, neighbour, total, 64)


def from_double(o: Ops[V], a: V, fmt: FloatFormat) -> V:
    """F64 as F16, BF16, F32 or F64 with one rounding; 16-bit results are 32 bits wide."""
    if fmt is F64:
        return a
    if fmt is F32:
        return o.f_convert(a, F64, F32)
    return narrow(o, double_to_single_odd(o, a), fmt)


def to_double(o: Ops[V], a: V, fmt: FloatFormat) -> V:
    """F16, BF16 (32 bits wide), F32 or F64 as F64."""
    return a if fmt is F64 else o.f_convert(widen(o, a, fmt), F32, F64)
