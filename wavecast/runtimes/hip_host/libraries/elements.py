"""Types of elements of library calls: how they are stored, and what numpy computes with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from wavecast.dtypes import Encoding, SpecialValues, lookup
from wavecast.emulate.errors import Unsupported


@dataclass(frozen=True, slots=True)
class Element:
    """`stored` in memory, computed as `computed`: the same where numpy has the type, else the bits
    of `encoding`."""

    stored: np.dtype
    computed: np.dtype
    encoding: str = ""

    def load(self, values: np.ndarray) -> np.ndarray:
        """Values to compute with, of stored ones."""
        if self.encoding == "bfloat16":
            return (values.astype(np.uint32) << 16).view(np.float32)
        if self.encoding:
            return _table(self.encoding)[values]
        return values.astype(self.computed, copy=False)

    def store(self, to: np.ndarray, values: np.ndarray) -> None:
        """Write values, rounded to the nearest, into an array of stored ones."""
        if self.encoding == "bfloat16":
            bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
            rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
            to[...] = np.where(bits << 1 > 0xFF000000, bits >> 16 | 0x40, rounded)
        elif self.encoding:
            to[...] = _nearest(self.encoding, np.asarray(values, np.float32))
        elif self.stored.kind in "iu" and np.asarray(values).dtype.kind == "f":
            to[...] = np.rint(values)
        else:
            to[...] = values

    @property
    def name(self) -> str:
        """`float32`, `bfloat16`."""
        return self.encoding or self.stored.name

    @property
    def real(self) -> Element:
        """The type of the parts of a complex number."""
        parts = {"c8": "f4", "c16": "f8"}.get(self.stored.str[1:])
        return _plain(parts) if parts else self


def _plain(stored: str, computed: str = "") -> Element:
    return Element(np.dtype(stored), np.dtype(computed or stored))


BY_PREFIX: Final = {
    "H": _plain("f2", "f4"),
    "Bf": Element(np.dtype("u2"), np.dtype("f4"), "bfloat16"),
    "S": _plain("f4"),
    "D": _plain("f8"),
    "C": _plain("c8"),
    "Z": _plain("c16"),
}
"""By the letter in the names of BLAS functions."""

_BY_TYPE: Final = {
    0: BY_PREFIX["S"], 1: BY_PREFIX["D"], 2: BY_PREFIX["H"], 3: _plain("i1", "i4"),
    4: BY_PREFIX["C"], 5: BY_PREFIX["Z"], 8: _plain("u1", "i4"), 10: _plain("i4"),
    12: _plain("u4"), 14: BY_PREFIX["Bf"],
    28: Element(np.dtype("u1"), np.dtype("f4"), "float8_e4m3fn"),
    29: Element(np.dtype("u1"), np.dtype("f4"), "float8_e5m2"),
    1000: Element(np.dtype("u1"), np.dtype("f4"), "float8_e4m3fnuz"),
    1001: Element(np.dtype("u1"), np.dtype("f4"), "float8_e5m2fnuz"),
}  # fmt: skip
"""By `hipDataType` (`wavecast/library_types.h`)."""


def of_type(number: int) -> Element:
    """The element of a `hipDataType`. Raises Unsupported for packed and unknown ones."""
    element = _BY_TYPE.get(number)
    if element is None:
        raise Unsupported(f"libraries do not compute with hipDataType {number} here")
    return element


@cache
def _table(name: str) -> np.ndarray:
    """The values of all 8-bit patterns, float32[256]."""
    encoding = lookup(name).encoding
    assert encoding is not None
    return np.array([_value(encoding, bits) for bits in range(256)], np.float32)


def _value(encoding: Encoding, bits: int) -> float:
    sign = -1.0 if bits >> 7 else 1.0
    exponent = bits >> encoding.mantissa & (1 << encoding.exponent) - 1
    fraction = bits & (1 << encoding.mantissa) - 1
    if encoding.specials is SpecialValues.FNUZ and bits == 0x80:
        return float("nan")
    if encoding.specials is SpecialValues.ONE_NAN and bits & 0x7F == 0x7F:
        return float("nan")
    if encoding.specials is SpecialValues.IEEE and exponent == (1 << encoding.exponent) - 1:
        return float("nan") if fraction else sign * float("inf")
    if not exponent:
        return sign * fraction * 2.0 ** (1 - encoding.bias - encoding.mantissa)
    return sign * (1 + fraction / (1 << encoding.mantissa)) * 2.0 ** (exponent - encoding.bias)


def _nearest(name: str, values: np.ndarray) -> np.ndarray:
    """The patterns of the nearest values, ties to even; larger ones become the largest."""
    table = _table(name)
    positive = np.flatnonzero(np.isfinite(table[:128]))
    sizes = table[positive]
    size = np.minimum(np.abs(values), sizes[-1])
    above = np.clip(np.searchsorted(sizes, size), 1, len(sizes) - 1)
    below = above - 1
    to_below, to_above = size - sizes[below], sizes[above] - size
    up = (to_above < to_below) | ((to_above == to_below) & (positive[above] % 2 == 0))
    bits = positive[np.where(up, above, below)]
    bits = np.where(np.signbit(values) & ((bits > 0) | ~np.isnan(table[0x80])), bits | 0x80, bits)
    nan = np.flatnonzero(np.isnan(table))[0]
    return np.where(np.isnan(values), nan, bits).astype(np.uint8)


__all__ = ["BY_PREFIX", "Element", "of_type"]
