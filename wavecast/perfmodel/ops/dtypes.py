"""Bytes of an element of the dtypes that operations of rows and elements are predicted for."""

from __future__ import annotations

from typing import Final

from wavecast import dtypes
from wavecast.errors import UnknownName

KNOWN: Final = (
    *("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int64", "int32", "int16", "int8", "bool"),
    *("complex64", "complex128"),
)

OF_MATRICES: Final = tuple(
    dict.fromkeys(
        dtype.short for dtype in dtypes.DTYPES.values() if dtype.rate and not dtype.element
    )
)
"""The dtypes of matrix instructions by their short names, without block-scaled ones."""


def element_bytes(dtype: str) -> float:
    """Raises UnknownName."""
    if dtype not in KNOWN:
        raise UnknownName("element type", dtype, KNOWN)
    return dtypes.element_bytes(dtype)


__all__ = ["KNOWN", "OF_MATRICES", "element_bytes"]
