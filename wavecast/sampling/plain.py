"""Plain values with arrays as bytes, for processes of this program.

Next to what `packing` takes: scalars of numpy, and its arrays of booleans and numbers. An array is
msgpack's extension type 1: a list of its dtype as numpy writes it (`<f4`), its shape, and its bytes
in C order.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np

from wavecast.errors import InputError
from wavecast.packing import pack, unpack

_ARRAY: Final = 1
_KINDS: Final = "biuf"
"""Kinds of numpy dtypes that may travel."""


def to_bytes(value: object) -> bytes:
    """The bytes of a plain value. Raises TypeError for any other."""
    return pack(value, _extension)


def from_bytes(data: bytes) -> Any:
    """The value `packed` was given; lists and tuples come back as tuples, arrays writable.

    Raises InputError for bytes that are not a plain value.
    """
    try:
        return unpack(data, _array)
    except (ValueError, TypeError) as error:
        raise InputError(f"damaged message between processes: {error}") from error


def _extension(value: object) -> object:
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        parts = value.dtype.str, value.shape, value.tobytes()
        return msgspec.msgpack.Ext(_ARRAY, pack(parts))
    if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a plain value")


def _array(code: int, data: memoryview) -> np.ndarray:
    if code != _ARRAY:
        raise ValueError(f"unknown extension type {code}")
    dtype_text, shape, content = unpack(data)
    dtype = np.dtype(dtype_text)
    if dtype.kind not in _KINDS:
        raise ValueError(f"arrays of {dtype} do not travel")
    return np.frombuffer(content, dtype).reshape(shape).copy()


__all__ = ["from_bytes", "to_bytes"]
