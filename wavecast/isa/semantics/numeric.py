"""Floating-point arithmetic on arrays of bit patterns, exact as `Ops` asks for it.

numpy gives correctly rounded sums, products, quotients and square roots; what it leaves to the host
(which NaN comes out) and what it lacks (a fused multiply-add) is settled here.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import Any

import numpy as np

from wavecast.isa.semantics.formats import F16, F32, F64, FloatFormat
from wavecast.isa.semantics.ops import Direction

Array = np.ndarray

_FLOATS: dict[FloatFormat, type] = {F16: np.float16, F32: np.float32, F64: np.float64}
_PATTERNS: dict[int, type] = {16: np.uint16, 32: np.uint32, 64: np.uint64}
_ROUNDINGS: dict[Direction, Callable[..., Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "even": np.rint,
}


def _quietly(function: Callable[..., Array]) -> Callable[..., Array]:
    """Overflow, signalling NaN and division by zero give the IEEE result, without a warning."""

    @wraps(function)
    def evaluate(*arguments: Any) -> Array:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return evaluate


def _float(a: Array, fmt: FloatFormat) -> Array:
    return a.view(_FLOATS[fmt])


def _pattern(value: Array, fmt: FloatFormat) -> Array:
    return np.asarray(value, dtype=_FLOATS[fmt]).view(_PATTERNS[fmt.bits])


def is_nan(a: Array, fmt: FloatFormat) -> Array:
    """Where a bit pattern is a NaN."""
    kind = _PATTERNS[fmt.bits]
    return (a & kind(fmt.sign - 1)) > kind(fmt.exponent_mask)


def _first_nan(result: Array, operands: tuple[Array, ...], fmt: FloatFormat) -> Array:
    """The result with every NaN replaced by the first NaN operand, quieted, or the default one."""
    wrong = is_nan(result, fmt)
    if not wrong.any():
        return result
    kind = _PATTERNS[fmt.bits]
    nan: Any = kind(fmt.nan)
    for operand in reversed(operands):
        nan = np.where(is_nan(operand, fmt), operand | kind(fmt.quiet), nan)
    return np.where(wrong, nan, result)


@_quietly
def add(a: Array, b: Array, fmt: FloatFormat) -> Array:
    return _first_nan(_pattern(_float(a, fmt) + _float(b, fmt), fmt), (a, b), fmt)


@_quietly
def multiply(a: Array, b: Array, fmt: FloatFormat) -> Array:
    return _first_nan(_pattern(_float(a, fmt) * _float(b, fmt), fmt), (a, b), fmt)


@_quietly
def divide(a: Array, b: Array, fmt: FloatFormat) -> Array:
    return _first_nan(_pattern(_float(a, fmt) / _float(b, fmt), fmt), (a, b), fmt)


@_quietly
def square_root(a: Array, fmt: FloatFormat) -> Array:
    return _first_nan(_pattern(np.sqrt(_float(a, fmt)), fmt), (a,), fmt)


@_quietly
def round_to_integral(a: Array, fmt: FloatFormat, direction: Direction) -> Array:
    return _first_nan(_pattern(_ROUNDINGS[direction](_float(a, fmt)), fmt), (a,), fmt)


@_quietly
def less(a: Array, b: Array, fmt: FloatFormat) -> Array:
    return _float(a, fmt) < _float(b, fmt)


@_quietly
def equal(a: Array, b: Array, fmt: FloatFormat) -> Array:
    return _float(a, fmt) == _float(b, fmt)


@_quietly
def multiply_add(a: Array, b: Array, c: Array, fmt: FloatFormat) -> Array:
    if fmt is F32:
        wide = [_float(x, F32).astype(np.float64) for x in (a, b, c)]
        # a product of two 24-bit fractions is exact in binary64
        total = _sum_to_odd(wide[0] * wide[1], wide[2])
        result = _pattern(total.astype(np.float32), F32)
    else:
        lanes = np.broadcast_arrays(a, b, c)
        values = [_fma(*map(float, lane)) for lane in zip(*map(_doubles, lanes), strict=True)]
        result = _pattern(np.array(values), F64)
    return _first_nan(result, (a, b, c), fmt)


def _doubles(a: Array) -> Array:
    return np.ascontiguousarray(a).view(np.float64)


def _fma(a: float, b: float, c: float) -> float:
    plain = a * b + c
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        # an infinite operand decides, but a product that overflows must not
        return a * b + c if not np.isfinite(a) or not np.isfinite(b) else c
    if a == 0 or b == 0:
        return plain
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        # +0 unless both the product and c are zeros below, which the case above took
        return 0.0
    try:
        rounded = float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
    return rounded if rounded else (0.0 if exact > 0 else -0.0)


def _sum_to_odd(a: Array, b: Array) -> Array:
    """a + b in binary64 rounded to odd, so that rounding to binary32 afterwards rounds once.

    The error of the sum is exact (Knuth's TwoSum); where there is one, the last bit of the result
    is made odd (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    bits = total.view(np.int64).copy()
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    towards_zero = (error < 0) == (total > 0)
    bits[inexact & towards_zero] -= 1
    bits[inexact & ~towards_zero] += 1
    return bits.view(np.float64)


@_quietly
def convert(a: Array, source: FloatFormat, result: FloatFormat) -> Array:
    """Between two of F16, F32 and F64."""
    converted = _pattern(_float(a, source).astype(_FLOATS[result]), result)
    wrong = is_nan(a, source)
    if not wrong.any():
        return converted
    shift = source.fraction - result.fraction
    payload = a.astype(np.uint64) & np.uint64((1 << source.fraction) - 1)
    result_payload = payload >> np.uint64(shift) if shift > 0 else payload << np.uint64(-shift)
    sign = np.where((a & _PATTERNS[source.bits](source.sign)) != 0, np.uint64(result.sign), 0)
    nan = sign.astype(np.uint64) | np.uint64(result.exponent_mask | result.quiet) | result_payload
    return np.where(wrong, nan.astype(_PATTERNS[result.bits]), converted)


def from_integer(a: Array, bits: int, signed: bool, fmt: FloatFormat) -> Array:
    kind = _PATTERNS[bits]
    value = a.view(np.dtype(kind).str.replace("u", "i")) if signed else a
    return _pattern(value.astype(_FLOATS[fmt]), fmt)


@_quietly
def to_integer(a: Array, fmt: FloatFormat, bits: int, signed: bool) -> Array:
    value = np.trunc(_float(a, fmt).astype(np.float64))
    value = np.where(is_nan(a, fmt), 0.0, value)
    if signed:
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        clipped = np.clip(value, low, high).astype(np.int64).astype(np.uint64)
    else:
        clipped = np.clip(value, 0, (1 << bits) - 1).astype(np.uint64)
    return clipped.astype(_PATTERNS[bits])
