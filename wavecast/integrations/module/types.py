"""Types of kernel parameters as HIP and OpenCL sources write them, and what fits them.

Names of dtypes are those numpy and PyTorch share: `float32`, `bfloat16`, `float8_e4m3fn`.
"""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = {
    "bool": "bool",
    "int8": "char|signed char|int8_t",
    "uint8": "unsigned char|uchar|uint8_t",
    "int16": "short|short int|int16_t",
    "uint16": "unsigned short|unsigned short int|ushort|uint16_t",
    "int32": "int|signed|signed int|int32_t",
    "uint32": "unsigned|unsigned int|uint|uint32_t",
    "int64": "long|long int|long long|long long int|longlong|int64_t|ssize_t|ptrdiff_t|intptr_t",
    "uint64": "unsigned long|unsigned long int|unsigned long long|unsigned long long int|ulong|"
    "ulonglong|uint64_t|size_t|uintptr_t",
    "float16": "_Float16|__half|half|__fp16",
    "bfloat16": "__bf16|__hip_bfloat16|hip_bfloat16",
    "float32": "float",
    "float64": "double",
    "float8_e4m3fn": "__hip_fp8_e4m3",
    "float8_e5m2": "__hip_fp8_e5m2",
    "float8_e4m3fnuz": "__hip_fp8_e4m3_fnuz",
    "float8_e5m2fnuz": "__hip_fp8_e5m2_fnuz",
}
_DTYPE_OF: Final = {name: dtype for dtype, names in _NAMES.items() for name in names.split("|")}
_HIP_VECTORS: Final = {"__half2": "float16", "__hip_bfloat162": "bfloat16"}
_VECTOR = re.compile(
    r"(u?(?:char|short|int|long|longlong)|float|double)(?:[1-4]|8|16)"
)  # HIP has up to four elements, OpenCL up to sixteen

_BITS = re.compile(r"(?:float|bfloat|int|uint|complex)(\d+)")
_COMPLEX: Final = {"complex64": "float32", "complex128": "float64"}


def scalar_dtype(type_name: str) -> str:
    """The dtype of a type that is one number; "" for any other, or one that is not known."""
    return _DTYPE_OF.get(type_name.removeprefix("std::"), "")


def element_dtype(type_name: str) -> str:
    """The dtype of what a pointer type points at, vectors by their elements; "" when not known."""
    if not type_name.endswith("*"):
        return ""
    name = type_name[:-1].removeprefix("std::")
    vector = _VECTOR.fullmatch(name)
    return _HIP_VECTORS.get(name) or _DTYPE_OF.get(vector[1] if vector else name, "")


def itemsize(dtype: str) -> int:
    """Bytes of one element; 0 for a dtype without a width in its name."""
    if dtype == "bool":
        return 1
    match = _BITS.match(dtype)
    return int(match[1]) // 8 if match else 0


def fits(dtype: str, element: str) -> bool:
    """Whether an array of `dtype` is what a pointer to `element` means.

    The sign of integers does not matter, bytes may hold anything, complex numbers are pairs, and
    floats that numpy has no type for may come as the integers of their size.
    """
    if dtype == element or element in ("int8", "uint8") or _COMPLEX.get(dtype) == element:
        return True
    if itemsize(dtype) != itemsize(element) or not _is_integer(dtype):
        return False
    return _is_integer(element) or itemsize(element) <= 2


def _is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint")) or dtype == "bool"
