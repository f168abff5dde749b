"""Bytes of an element by its type's name."""

from __future__ import annotations

from typing import Final

from wavecast.errors import UnknownName

BYTES: Final = {
    "fp64": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int64": 8.0,
    "int32": 4.0,
    "int16": 2.0,
    "int8": 1.0,
    "bool": 1.0,
    "complex64": 8.0,
    "complex128": 16.0,
}


def element_bytes(dtype: str) -> float:
    """Raises UnknownName."""
    if dtype not in BYTES:
        raise UnknownName("element type", dtype, BYTES)
    return BYTES[dtype]


__all__ = ["BYTES", "element_bytes"]
