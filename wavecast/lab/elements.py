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
    samples = np.random.default_rng(seed).standard_normal(count, dtype=np.float32)
    if encoding.bits == 64:
        return samples.astype(np.float64).view(np.uint8)
    if encoding.bits == 32:
        return samples.view(np.uint8)
    code_values = values_of(encoding)
    order = np.argsort(np.where(np.isfinite(code_values), code_values, np.inf), kind="stable")
    words = order[np.searchsorted(code_values[order], np.clip(samples, -2.0, 2.0))]
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
    values = sign * scaled * 2.0 ** (np.where(normal, exponent, 1) - float(encoding.bias))
    top = exponent == (1 << encoding.exponent) - 1
    if encoding.specials is SpecialValues.IEEE:
        values = np.where(top & (fraction == 0), sign * np.inf, np.where(top, np.nan, values))
    elif encoding.specials is SpecialValues.ONE_NAN:
        largest = fraction == (1 << encoding.mantissa) - 1
        values = np.where(top & largest, np.nan, values)
    else:
        values = np.where(words == 1 << (encoding.bits - 1), np.nan, values)
    return values


__all__ = ["epsilon", "numbers", "random", "values_of"]
