"""Number formats of operands: bytes per element, and the dtype the matrix pipes multiply."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.errors import UnknownName, UsageError

SCALINGS = ("none", "token", "block", "mx")
"""No scales or one per tensor; one per row of A and column of B; one per 1x128 of A and 128x128 of
B (fp32, applied to every 128 of K by vector instructions); one per 1x32 (in the matrix pipes)."""


@dataclass(frozen=True, slots=True)
class Format:
    """`size` bytes per element, `scale` bytes of block scales per element, `multiplied` the dtype
    of the matrix products, `narrow_reads`: elements reach the registers by 12-byte LDS reads."""

    size: float
    multiplied: str
    scale: float = 0.0
    narrow_reads: bool = False


FORMATS = {
    "fp64": Format(8.0, "fp64"),
    "fp32": Format(4.0, "fp32"),
    "xf32": Format(4.0, "xf32"),
    "fp16": Format(2.0, "fp16"),
    "bf16": Format(2.0, "bf16"),
    "fp8": Format(1.0, "fp8"),
    "int8": Format(1.0, "int8"),
    "mxfp8": Format(1.0, "fp8", 1 / 32),
    "mxfp6": Format(0.75, "fp6", 1 / 32, narrow_reads=True),
    "mxfp4": Format(0.5, "fp4", 1 / 32),
}
WEIGHTS = {"int4": Format(0.5, ""), "nvfp4": Format(0.5, "", 1 / 16)}
"""Formats only weights have: the vector pipes widen them to the activations' format."""

OUTPUTS = {
    "fp64": 8.0,
    "fp32": 4.0,
    "int32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
}

_ALIASES = {
    "f64": "fp64",
    "double": "fp64",
    "float64": "fp64",
    "f32": "fp32",
    "float32": "fp32",
    "tf32": "xf32",
    "f16": "fp16",
    "half": "fp16",
    "float16": "fp16",
    "bfloat16": "bf16",
    "f8": "fp8",
    "bf8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e4m3fn": "fp8",
    "fp8_e4m3fnuz": "fp8",
    "fp8_e5m2": "fp8",
    "fp8_e5m2fnuz": "fp8",
    "e4m3": "fp8",
    "e5m2": "fp8",
    "i8": "int8",
    "float8_e4m3fn": "fp8",
    "float8_e4m3fnuz": "fp8",
    "mxfp8_e4m3": "mxfp8",
    "bf8fp8": "fp8",
    "fp8bf8": "fp8",
    "fp4": "mxfp4",
    "fp6": "mxfp6",
    "i4": "int4",
}


def canonical(dtype: str) -> str:
    """The name of a format here."""
    name = dtype.lower()
    return _ALIASES.get(name, name)


def activation(dtype: str) -> Format:
    """A format of both operands, or of A. Raises UnknownName."""
    if dtype not in FORMATS:
        raise UnknownName("matrix data type", dtype, FORMATS)
    return FORMATS[dtype]


def weight(dtype: str, of: str) -> Format:
    """A format of B beside A in the format `of`. Raises UnknownName, UsageError if it is wider."""
    known = {**FORMATS, **WEIGHTS}
    if dtype not in known:
        raise UnknownName("weight data type", dtype, known)
    if known[dtype].size > activation(of).size:
        raise UsageError(f"gemm: no library multiplies {of} by wider {dtype}")
    return known[dtype]


def default_output(dtype: str) -> str:
    """What a library returns unless told otherwise."""
    return {"fp64": "fp64", "fp32": "fp32", "xf32": "fp32", "fp16": "fp16"}.get(dtype, "bf16")


def default_scaling(dtype: str) -> str:
    """The scales usual for a format."""
    return "mx" if dtype.startswith("mx") else "none"


__all__ = [
    "FORMATS",
    "OUTPUTS",
    "SCALINGS",
    "Format",
    "activation",
    "canonical",
    "default_output",
    "default_scaling",
    "weight",
]
