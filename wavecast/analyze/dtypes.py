"""Names of element types: from those of the opcode table to those of a device's peak rates."""

from __future__ import annotations

from typing import Final

_DTYPES: Final = {
    "f64": "fp64",
    "f32": "fp32",
    "xf32": "xf32",
    "tf32": "tf32",
    "f16": "fp16",
    "bf16": "bf16",
    "fp8": "fp8",
    "bf8": "fp8",
    "f8": "fp8",
    "fp6": "fp6",
    "bf6": "fp6",
    "f6": "fp6",
    "fp4": "fp4",
    "f4": "fp4",
    "i8": "int8",
    "u8": "int8",
    "iu8": "int8",
    "i4": "int4",
    "u4": "int4",
    "iu4": "int4",
    "i32": "int32",
    "u32": "int32",
}


def dtype_of(element: str) -> str:
    """The dtype a rate is published for: `bf8` and `fp8` are both `fp8`, `f16` is `fp16`.

    A name that is no element type of the table is returned as it is.
    """
    return _DTYPES.get(element, element)


def widest(first: str, second: str) -> str:
    """Of two dtypes of one multiplication the one that decides its rate, the wider."""
    return max(first, second, key=_bits)


def _bits(dtype: str) -> int:
    digits = "".join(ch for ch in dtype if ch.isdigit())
    return int(digits) if digits else 0
