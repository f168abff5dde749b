"""Types of kernel parameters as HIP, CUDA and OpenCL sources write them, and what fits them.

Names of dtypes are those numpy and PyTorch share: `float32`, `bfloat16`, `float8_e4m3fn`.
"""

from __future__ import annotations

import re
from typing import Final

from wavecast.dtypes import Family, Spelling, element_bytes, is_dtype, lookup

_VECTORS_OF_HALVES: Final = {
    **dict.fromkeys(("__half2", "half2"), "float16"),
    **dict.fromkeys(("__hip_bfloat162", "__nv_bfloat162", "nv_bfloat162"), "bfloat16"),
}
_VECTOR = re.compile(
    r"(u?(?:char|short|int|long|longlong)|float|double)([1-4]|8|16)"
)  # HIP has up to four elements, OpenCL up to sixteen


def scalar_dtype(type_name: str) -> str:
    """The dtype of a type that is one number; "" for any other, or one that is not known."""
    name = type_name.removeprefix("std::")
    return lookup(name, Spelling.CXX).name if is_dtype(name, Spelling.CXX) else ""


def element_dtype(type_name: str) -> str:
    """The dtype of what a pointer type points at, vectors by their elements; "" when not known."""
    if not type_name.endswith("*"):
        return ""
    name = type_name[:-1].removeprefix("std::")
    vector = _VECTOR.fullmatch(name)
    return _VECTORS_OF_HALVES.get(name) or scalar_dtype(vector[1] if vector else name)


def vector_type(type_name: str) -> tuple[str, int]:
    """The dtype and the number of the elements of a vector type; `("", 0)` for any other."""
    name = type_name.removeprefix("std::")
    if name == "dim3":
        return "uint32", 3
    if name in _VECTORS_OF_HALVES:
        return _VECTORS_OF_HALVES[name], 2
    match = _VECTOR.fullmatch(name)
    return (scalar_dtype(match[1]), int(match[2])) if match else ("", 0)


def itemsize(dtype: str) -> int:
    """Bytes of one element; 0 for a name that is not a dtype."""
    return int(element_bytes(dtype)) if is_dtype(dtype) else 0


def fits(dtype: str, element: str) -> bool:
    """Whether an array of `dtype` is what a pointer to `element` means.

    The sign of integers does not matter, bytes may hold anything, complex numbers are pairs, and
    floats that numpy has no type for may come as the integers of their size.
    """
    if element in (dtype, _part(dtype), "int8", "uint8"):
        return True
    if itemsize(dtype) != itemsize(element) or not _is_integer(dtype):
        return False
    return _is_integer(element) or itemsize(element) <= 2


def _part(dtype: str) -> str:
    """The dtype of the real and the imaginary part of a complex dtype, itself for any other."""
    info = lookup(dtype) if is_dtype(dtype) else None
    return info.element if info is not None and info.family is Family.COMPLEX else dtype


def _is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint")) or dtype == "bool"
