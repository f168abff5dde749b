"""Number formats of operands: bytes per element, and the dtype the matrix pipes multiply."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wavecast import dtypes
from wavecast.errors import UnknownName, UsageError

SCALINGS = ("none", "token", "block", "mx")
"""No scales or one per tensor; one per row of A and column of B; one per 1x128 of A and 128x128 of
B (fp32, applied to every 128 of K by vector instructions); one per 1x32 (in the matrix pipes)."""


@dataclass(frozen=True, slots=True)
class GemmFormat:
    """`size` bytes per element, `scale` bytes of block scales per element, `multiplied` the dtype
    of the matrix products, `narrow_reads`: elements reach the registers by 12-byte LDS reads."""

    size: float
    multiplied: str
    scale: float = 0.0
    narrow_reads: bool = False


def _format(name: str, *, narrow_reads: bool = False) -> GemmFormat:
    dtype = dtypes.lookup(name)
    return GemmFormat(dtype.bytes, dtype.rate, dtype.scale_bytes, narrow_reads)


FORMATS = {
    **{name: _format(name) for name in ("fp64", "fp32", "xf32", "fp16", "bf16", "fp8", "int8")},
    "mxfp8": _format("mxfp8"),
    "mxfp6": _format("mxfp6", narrow_reads=True),
    "mxfp4": _format("mxfp4"),
}
WEIGHTS = {name: replace(_format(name), multiplied="") for name in ("int4", "nvfp4")}
"""Formats only weights have: the vector pipes widen them to the activations' format."""

OUTPUTS = {
    name: dtypes.element_bytes(name)
    for name in ("fp64", "fp32", "int32", "fp16", "bf16", "fp8", "int8")
}

_ALIASES = {"tf32": "xf32", "bf8fp8": "fp8", "fp8bf8": "fp8", "fp4": "mxfp4", "fp6": "mxfp6"}
"""Names that mean another format: libraries multiply fp4 and fp6 only with block scales."""


def canonical(dtype: str) -> str:
    """The name of a format; a name of another kind in lower case."""
    name = dtypes.lookup(dtype).short if dtypes.is_dtype(dtype) else dtype.lower()
    return _ALIASES.get(name, name)


def activation(dtype: str) -> GemmFormat:
    """A format of both operands, or of A. Raises UnknownName."""
    if dtype not in FORMATS:
        raise UnknownName("matrix data type", dtype, FORMATS)
    return FORMATS[dtype]


def weight(dtype: str, of: str) -> GemmFormat:
    """The format of B if A has the format `of`. Raises UnknownName, UsageError if it is wider."""
    formats = {**FORMATS, **WEIGHTS}
    if dtype not in formats:
        raise UnknownName("weight data type", dtype, formats)
    if formats[dtype].size > activation(of).size:
        raise UsageError(f"gemm: no library multiplies {of} by wider {dtype}")
    return formats[dtype]


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
    "GemmFormat",
    "activation",
    "canonical",
    "default_output",
    "default_scaling",
    "weight",
]
