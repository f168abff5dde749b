"""Elements of a tensor as numbers, and random ones, by dtype."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from wavecast.dtypes import Dtype, Encoding, SpecialValues

Array = np.ndarray[Any, Any]


def numbers(data: Array, dtype: Dtype) -> Array:
    """Bytes (u8) as float64 values of a floating-point dtype of 8, 16, 32 or 64 bits."""
    encoding = dtype.encoding
    assert encoding is not None
    if encoding.bits <= 16:
        words = data.view(np.uint8 if encoding.bits == 8 else np.uint16)
        return values_of(encoding)[words]
    return data.view(np.float32 if encoding.bits == 32 else np.float64).astype(np.float64)


def random(count: int, dtype: Dtype, seed: int) -> Array:
    """Bytes (u8) of `count` normally distributed elements of a floating-point dtype; narrow formats
    get the nearest number below 2 in absolute value."""
    encoding = dtype.encoding
    assert encoding is not None
    made = np.random.default_rng(seed).standard_normal(count, dtype=np.float32)
    if encoding.bits == 64:
        return made.astype(np.float64).view(np.uint8)
    if encoding.bits == 32:
        return made.view(np.uint8)
    known = values_of(encoding)
    order = np.argsort(np.where(np.isfinite(known), known, np.inf), kind="stable")
    words = order[np.searchsorted(known[order], np.clip(made, -2.0, 2.0))]
    return words.astype(np.uint8 if encoding.bits == 8 else np.uint16).view(np.uint8)


def epsilon(dtype: Dtype) -> float:
    """The distance from 1 to the next number."""
    assert dtype.encoding is not None
    return 2.0**-dtype.encoding.mantissa


@cache
def values_of(encoding: Encoding) -> Array:
    """The number of every word of a format of up to 16 bits, f64[2**bits]."""
    words = np.arange(1 << encoding.bits)
    fraction = words & ((1 << encoding.mantissa) - 1)
    exponent = (words >> encoding.mantissa) & ((1 << encoding.exponent) - 1)
    sign = np.where(words >> (encoding.bits - 1), -1.0, 1.0)
    normal = exponent > 0
    scaled = np.where(normal, 1.0, 0.0) + fraction / 2.0**encoding.mantissa
    found = sign * scaled * 2.0 ** (np.where(normal, exponent, 1) - float(encoding.bias))
    top = exponent == (1 << encoding.exponent) - 1
    if encoding.specials is SpecialValues.IEEE:
        found = np.where(top & (fraction == 0), sign * np.inf, np.where(top, np.nan, found))
    elif encoding.specials is SpecialValues.ONE_NAN:
        largest = fraction == (1 << encoding.mantissa) - 1
        found = np.where(top & largest, np.nan, found)
    else:
        found = np.where(words == 1 << (encoding.bits - 1), np.nan, found)
    return found


__all__ = ["epsilon", "numbers", "random", "values_of"]
