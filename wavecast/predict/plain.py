"""Plain values as bytes, for processes of this program.

The format is msgpack: None, booleans, numbers (numpy's scalars too), text, bytes, lists, maps with
text as keys, and numpy arrays of booleans and numbers. An array is the extension type 1: a msgpack
list of its dtype as numpy writes it (`<f4`), its shape, and its bytes in C order. Reading runs no
code of the sender.
"""

from __future__ import annotations

from typing import Any, Final

import msgpack
import numpy as np

from wavecast.errors import InputError

_ARRAY: Final = 1
_KINDS: Final = "biuf"
"""Kinds of numpy dtypes that may travel."""


def packed(value: object) -> bytes:
    """The bytes of a plain value. Raises TypeError for any other."""
    data = msgpack.packb(value, default=_extension, use_bin_type=True)
    assert data is not None
    return data


def unpacked(data: bytes) -> Any:
    """The value `packed` was given; lists and tuples come back as tuples, arrays writable.

    Raises InputError for bytes that are not a plain value.
    """
    try:
        return msgpack.unpackb(data, ext_hook=_array, use_list=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise InputError(f"damaged message between processes: {error}") from error


def _extension(value: object) -> object:
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        parts = value.dtype.str, value.shape, value.tobytes()
        return msgpack.ExtType(_ARRAY, packed(parts))
    if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a plain value")


def _array(code: int, data: bytes) -> np.ndarray:
    if code != _ARRAY:
        raise ValueError(f"unknown extension type {code}")
    dtype_text, shape, content = msgpack.unpackb(data, use_list=False)
    dtype = np.dtype(dtype_text)
    if dtype.kind not in _KINDS:
        raise ValueError(f"arrays of {dtype} do not travel")
    return np.frombuffer(content, dtype).reshape(shape).copy()


__all__ = ["packed", "unpacked"]
