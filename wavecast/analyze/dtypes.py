"""From element types of the opcode table to the names of a device's peak rates."""

from __future__ import annotations

from wavecast.dtypes import is_dtype, lookup


def dtype_of(element: str) -> str:
    """The dtype a rate is published for: `bf8` and `fp8` are both `fp8`, `u8` is `int8`.

    A name of no dtype, such as `f8f6f4`, is returned unchanged.
    """
    if not is_dtype(element):
        return element
    dtype = lookup(element)
    return dtype.rate if dtype.is_integer else dtype.short


def widest(first: str, second: str) -> str:
    """The wider of the two dtypes of a multiplication, which decides its rate."""
    return max(first, second, key=lambda name: lookup(name).bits if is_dtype(name) else 0)
