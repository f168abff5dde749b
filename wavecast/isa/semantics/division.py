"""Semantics of rows that take numbers apart or put quotients together: division, ldexp, frexp.

Compilers divide with `div_scale` (moves operands out of the range where a step would lose bits),
`rcp`, steps of `fma`, `div_fmas` (undoes the scaling) and `div_fixup` (special cases). Sources: the
guides named in `floats`, and tests on RDNA3 hardware reported elsewhere where the guides cannot be
right: `div_scale` returns its first operand unscaled where nothing applies, judges the quotient by
its exponents and sets VCC with NaN; `div_fmas` scales by 2^64 up or down, not by 2^32; `div_fixup`
takes a NaN quotient for overflow. Two readings follow from the quotient having to be right: the
reciprocal of an F32 denominator is judged in F32, and a denominator whose reciprocal and quotient
are both denormal is scaled down, not up.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.arithmetic import DOUBLE, HALF, SINGLE, Float
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.formats import F32, F64
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.rounding import from_double, sum_to_odd, to_double

V = TypeVar("V")


def _field(o: Ops[V], f: Float, a: V) -> V:
    """The biased exponent field as 32 bits."""
    field = o.lshr(f.absolute(o, a), f.const(o, f.fmt.fraction), f.bits)
    return field if f.bits == 32 else o.truncate(field, 64, 32)


def load_exponent(f: Float) -> Function:
    """a * 2^n, rounded once. `n` is a signed 32-bit operand, of 16 bits for F16."""

    def evaluate(o: Ops[V], a: V, n: V) -> tuple[V]:
        if f.half:
            n = o.sign_extend(o.truncate(n, 32, 16), 16, 32)
        scaled = _ldexp(o, f, f.operand(o, a), n)
        return (f.result(o, scaled),)

    return evaluate


def _ldexp(o: Ops[V], f: Float, a: V, n: V) -> V:
    if f is DOUBLE:
        return _scaled_double(o, a, n)
    # 2^-300 to 2^300 covers every result of F32, and F64 holds the product exactly
    power = _power_of_two(o, _clamp(o, n, 300))
    return from_double(o, o.f_mul(to_double(o, a, f.fmt), power, F64), f.fmt)


def _scaled_double(o: Ops[V], a: V, n: V) -> V:
    """Steps of 2^969 downwards stop 53 places above the denormals, so only the last one rounds."""
    n = _clamp(o, n, 2200)
    for _ in range(2):
        high = o.less_signed(o.const(1023, 32), n, 32)
        low = o.less_signed(n, o.const(-1022, 32), 32)
        step = o.select(high, o.const(1023, 32), o.zero(32), 32)
        step = o.select(low, o.const(-969, 32), step, 32)
        a = o.f_mul(a, _power_of_two(o, step), F64)
        n = o.sub(n, step, 32)
    return o.f_mul(a, _power_of_two(o, _clamp(o, n, 1022)), F64)


def _clamp(o: Ops[V], n: V, limit: int) -> V:
    n = o.minimum(n, o.const(limit, 32), 32, signed=True)
    return o.maximum(n, o.const(-limit, 32), 32, signed=True)


def _power_of_two(o: Ops[V], n: V) -> V:
    """2^n as F64; n from -1022 to 1023."""
    field = o.zero_extend(o.add(n, o.const(F64.bias, 32), 32), 32, 64)
    return o.shl(field, o.const(F64.fraction, 64), 64)


def mantissa(f: Float) -> Function:
    """The value between 1/2 and 1 of a = m * 2^e; infinities, NaN and zeros as they are."""

    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        a = f.operand(o, a)
        special = o.or_(f.is_nan(o, a), f.is_infinite(o, a), 1)
        plain = o.or_(special, f.is_zero(o, a), 1)
        normal, _ = _normalise(o, f, a)
        mask = f.const(o, f.fmt.sign | ((1 << f.fmt.fraction) - 1))
        half = f.const(o, f.fmt.one - (1 << f.fmt.fraction))
        fraction = o.or_(o.and_(normal, mask, f.bits), half, f.bits)
        quiet = o.select(f.is_nan(o, a), f.make_quiet(o, a), a, f.bits)
        return (o.select(plain, quiet, fraction, f.bits),)

    return evaluate


def exponent(f: Float) -> Function:
    """The exponent e of a = m * 2^e with m from 1/2 to 1; 0 for infinities, NaN and zeros."""

    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        a = f.operand(o, a)
        special = o.or_(f.is_nan(o, a), f.is_infinite(o, a), 1)
        plain = o.or_(special, f.is_zero(o, a), 1)
        normal, shift = _normalise(o, f, a)
        bias = o.add(o.const(f.fmt.bias - 1, 32), shift, 32)
        unbiased_exponent = o.select(plain, o.zero(32), o.sub(_field(o, f, normal), bias, 32), 32)
        return (o.low_half(unbiased_exponent) if f.half else unbiased_exponent,)

    return evaluate


def _normalise(o: Ops[V], f: Float, a: V) -> tuple[V, V]:
    """The value with denormals multiplied into the normal range, and by which power of two."""
    shifted = f.fmt.fraction + 1
    low = f.const(o, 1 << f.fmt.fraction)
    denormal = o.less_unsigned(f.absolute(o, a), low, f.bits)
    grown = _ldexp(o, f, a, o.const(shifted, 32))
    shift = o.select(denormal, o.const(shifted, 32), o.zero(32), 32)
    return o.select(denormal, grown, a, f.bits), shift


def scale(f: Float) -> Function:
    """Inputs: the operand to scale, denominator, numerator. The condition says that `div_fmas` must
    scale the quotient; it is also set where the result is NaN, as hardware has it."""
    far, tiny, power = (96, 23, 64) if f is SINGLE else (768, 53, 128)

    def evaluate(o: Ops[V], a: V, denominator: V, numerator: V) -> tuple[V, V]:
        bits = f.bits
        a, denominator, numerator = (f.operand(o, x) for x in (a, denominator, numerator))
        up, down = _ldexp(o, f, a, o.const(power, 32)), _ldexp(o, f, a, o.const(-power, 32))
        of_denominator = f.equal(o, a, denominator)
        denominator_up = o.select(of_denominator, up, a, bits)
        denominator_down = o.select(of_denominator, down, a, bits)
        numerator_up = o.select(f.equal(o, a, numerator), up, a, bits)
        top, bottom = _field(o, f, numerator), _field(o, f, denominator)
        gap = o.sub(top, bottom, 32)
        overflows = o.not_(o.less_signed(gap, o.const(far, 32), 32), 1)
        vanishes = o.less_signed(gap, o.const(2 - f.fmt.bias, 32), 32)
        inverse_vanishes = _is_denormal(o, f, o.f_div(f.const(o, f.fmt.one), denominator, f.fmt))
        zero = o.or_(f.is_zero(o, numerator), f.is_zero(o, denominator), 1)
        never, always = o.const(0, 1), o.const(1, 1)
        # in order of precedence: condition, result, flag
        cases = (
            (zero, f.const(o, f.fmt.nan), always),
            (overflows, denominator_up, always),
            (_is_denormal(o, f, denominator), up, never),
            (o.and_(inverse_vanishes, vanishes, 1), denominator_down, always),
            (inverse_vanishes, down, never),
            (vanishes, numerator_up, always),
            (o.not_(o.less_signed(o.const(tiny, 32), top, 32), 1), up, never),
        )
        result, flag = a, never
        for condition, value, scales in reversed(cases):
            result = o.select(condition, value, result, bits)
            flag = o.select(condition, scales, flag, 1)
        return result, flag

    return evaluate


def _is_denormal(o: Ops[V], f: Float, a: V) -> V:
    low = f.const(o, 1 << f.fmt.fraction)
    below = o.less_unsigned(f.absolute(o, a), low, f.bits)
    return o.and_(below, o.not_(f.is_zero(o, a), 1), 1)


def scaled_multiply_add(f: Float) -> Function:
    """a * b + c; where the lane's bit of VCC is set multiplied by 2^64 (2^128 for F64) if c is 2 or
    more, by the inverse if less, and rounded once."""
    power = 64 if f is SINGLE else 128
    scaled = _scaled_single if f is SINGLE else _scaled_fma_double

    def evaluate(o: Ops[V], a: V, b: V, c: V, scales: V) -> tuple[V]:
        total = f.fma(o, a, b, c)
        grows = o.less_signed(o.const(f.fmt.bias, 32), _field(o, f, c), 32)
        steps = o.select(grows, o.const(power, 32), o.const(-power, 32), 32)
        operands = [f.operand(o, value) for value in (a, b, c)]
        scaled_total = f.result(o, scaled(o, operands, _power_of_two(o, steps)))
        return (o.select(scales, scaled_total, total, f.bits),)

    return evaluate


def _scaled_single(o: Ops[V], operands: list[V], power: V) -> V:
    """(a * b + c) * power in F64, where only the sum and the conversion back round."""
    a, b, c = (to_double(o, value, F32) for value in operands)
    return o.f_convert(o.f_mul(sum_to_odd(o, o.f_mul(a, b, F64), c), power, F64), F64, F32)


def _scaled_fma_double(o: Ops[V], operands: list[V], power: V) -> V:
    """(a * b + c) * power, rounded once as long as a * b is small compared to c, as in a division.

    Where the product is denormal, the sum is rounded to odd first: its error is what is left of
    a * b after the change of c, which subtracts exactly.
    """
    a, b, c = operands
    total = o.f_fma(a, b, c, F64)
    plain = o.f_mul(total, power, F64)
    rest = o.f_fma(a, b, o.f_add(c, o.f_negate(total, F64), F64), F64)
    zero, ulp = o.zero(64), o.const(1, 64)
    below, above = o.f_less(rest, zero, F64), o.f_less(zero, rest, F64)
    inexact = o.and_(o.or_(below, above, 1), o.not_(o.truncate(total, 64, 1), 1), 1)
    inwards = o.not_(o.xor(below, o.f_less(zero, total, F64), 1), 1)
    neighbour = o.select(inwards, o.sub(total, ulp, 64), o.add(total, ulp, 64), 64)
    odd = o.f_mul(o.select(inexact, neighbour, total, 64), power, F64)
    low = o.less_unsigned(o.f_absolute(plain, F64), o.const(2 << F64.fraction, 64), 64)
    return o.select(low, odd, plain, 64)


def fix_up(f: Float) -> Function:
    """Inputs: quotient, denominator, numerator. The quotient with its sign set from the operands,
    and IEEE results where one is zero, infinite or NaN; a quotient too small is 0, one that is NaN
    stands for overflow."""
    deepest = {SINGLE: -150, DOUBLE: -1075}.get(f)

    def evaluate(o: Ops[V], quotient: V, denominator: V, numerator: V) -> tuple[V]:
        bits = f.bits
        if f.half:
            quotient, denominator, numerator = map(o.low_half, (quotient, denominator, numerator))
        sign = o.and_(o.xor(denominator, numerator, bits), f.const(o, f.fmt.sign), bits)
        infinity = f.const(o, f.fmt.exponent_mask)
        size = f.absolute(o, quotient)
        if deepest is not None:
            gap = o.sub(_field(o, f, numerator), _field(o, f, denominator), 32)
            underflows = o.less_signed(gap, o.const(deepest, 32), 32)
            size = o.select(underflows, o.zero(bits), size, bits)
        size = o.select(f.is_nan(o, quotient), infinity, size, bits)
        zero_below, zero_above = f.is_zero(o, denominator), f.is_zero(o, numerator)
        infinite_below = f.is_infinite(o, denominator)
        infinite_above = f.is_infinite(o, numerator)
        size = o.select(o.or_(infinite_below, zero_above, 1), o.zero(bits), size, bits)
        size = o.select(o.or_(zero_below, infinite_above, 1), infinity, size, bits)
        result = o.or_(size, sign, bits)
        both_zero = o.and_(zero_below, zero_above, 1)
        invalid = o.or_(both_zero, o.and_(infinite_below, infinite_above, 1), 1)
        result = o.select(invalid, f.const(o, f.fmt.nan), result, bits)
        for value in (denominator, numerator):
            result = o.select(f.is_nan(o, value), f.make_quiet(o, value), result, bits)
        return (result,)

    return evaluate


def reduction_segment(o: Ops[V], a: V, segment: V) -> tuple[V]:
    """53 bits of 2/pi as F64, for reducing large angles: those from bit 53 * segment on, further
    for exponents above 1077, scaled to their place."""
    field = _field(o, DOUBLE, a)
    beyond = o.sub(field, o.const(1077, 32), 32)
    zero = o.zero(32)
    beyond = o.select(o.less_signed(beyond, zero, 32), zero, beyond, 32)
    first = o.mul(o.low_bits(segment, 5, 32), o.const(53, 32), 32)
    first = o.add(first, beyond, 32)
    whole = o.lshr(_bits_of_two_over_pi(o, first), o.const(11, 64), 64)
    high = o.f_from_int(o.truncate(o.lshr(whole, o.const(32, 64), 64), 64, 32), 32, False, F64)
    low = o.f_from_int(o.truncate(whole, 64, 32), 32, False, F64)
    total = o.f_add(o.f_mul(high, o.const((F64.bias + 32) << 52, 64), F64), low, F64)
    scale = o.sub(o.const(-53, 32), first, 32)
    large = o.not_(o.less_signed(field, o.const(1968, 32), 32), 1)
    scale = o.select(large, o.add(scale, o.const(128, 32), 32), scale, 32)
    return (_scaled_double(o, total, scale),)


def _bits_of_two_over_pi(o: Ops[V], first: V) -> V:
    """64 bits of the fraction of 2/pi from bit `first` on; zeros after 1201 bits."""
    index = o.lshr(first, o.const(6, 32), 32)
    upper, lower = o.zero(64), o.zero(64)
    for number, word in enumerate(_TWO_OVER_PI):
        upper = o.select(o.eq(index, o.const(number, 32), 32), o.const(word, 64), upper, 64)
        after = o.eq(index, o.const(number - 1, 32), 32)
        lower = o.select(after, o.const(word, 64), lower, 64)
    count = o.zero_extend(o.low_bits(first, 6, 32), 32, 64)
    # the second shift is in two parts: it may be 64
    rest = o.lshr(o.lshr(lower, o.const(1, 64), 64), o.xor(count, o.const(63, 64), 64), 64)
    return o.or_(o.shl(upper, count, 64), rest, 64)


def _two_over_pi(bits: int) -> int:
    """The first `bits` of the fraction of 2/pi, by Machin's formula in integers."""
    guard = bits + 64

    def inverse_tangent(n: int) -> int:
        power = total = (1 << guard) // n
        k, sign = 1, -1
        while power:
            power //= n * n
            k += 2
            total += sign * (power // k)
            sign = -sign
        return total

    pi = 4 * (4 * inverse_tangent(5) - inverse_tangent(239))
    return (2 << (2 * guard)) // pi >> (guard - bits)


_KNOWN_BITS = 1201
_WORDS = 19
_TWO_OVER_PI = tuple(
    (_two_over_pi(_KNOWN_BITS) << (64 * _WORDS - _KNOWN_BITS)) >> (64 * (_WORDS - 1 - k))
    & 0xFFFFFFFFFFFFFFFF
    for k in range(_WORDS)
)


DIVISION: dict[str, Function] = {
    "v_trig_preop_f64": reduction_segment,
    "v_ldexp_f16": load_exponent(HALF),
    "v_ldexp_f32": load_exponent(SINGLE),
    "v_ldexp_f64": load_exponent(DOUBLE),
    "v_frexp_mant_f16": mantissa(HALF),
    "v_frexp_mant_f32": mantissa(SINGLE),
    "v_frexp_mant_f64": mantissa(DOUBLE),
    "v_frexp_exp_i16_f16": exponent(HALF),
    "v_frexp_exp_i32_f32": exponent(SINGLE),
    "v_frexp_exp_i32_f64": exponent(DOUBLE),
    "v_div_scale_f32": scale(SINGLE),
    "v_div_scale_f64": scale(DOUBLE),
    "v_div_fmas_f32": scaled_multiply_add(SINGLE),
    "v_div_fmas_f64": scaled_multiply_add(DOUBLE),
    "v_div_fixup_f16": fix_up(HALF),
    "v_div_fixup_legacy_f16": fix_up(HALF),
    "v_div_fixup_f32": fix_up(SINGLE),
    "v_div_fixup_f64": fix_up(DOUBLE),
}
"""Row name -> semantics."""
