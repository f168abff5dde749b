"""8-bit float formats that functions of a HIP file convert from and to by arithmetic on bits.

Such a function names no format. What it is follows from what it gives: it is compiled in a separate
kernel and executed for every byte, or for the value of every byte, and compared with the four
formats. NaNs and infinities, which conversions often leave out, do not count.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from wavecast.compile import hip
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.dtypes import Dtype, SpecialValues, Variant, lookup
from wavecast.emulate import engine
from wavecast.emulate.native import native_kernel
from wavecast.errors import WavecastError

_BYTE: Final = r"unsigned\s+char|u?int8_t|__hip_fp8_storage_t"
_ALIAS = re.compile(rf"\btypedef\s+(?:{_BYTE})\s+(\w+)\s*;|\busing\s+(\w+)\s*=\s*(?:{_BYTE})\s*;")
_FUNCTION = re.compile(
    r"__device__(?P<result>[\w\s]*?)\s(?P<name>\w+)\s*\(\s*(?P<parameter>[\w\s]*?)\s*\b\w+\s*\)\s*\{"
)
_WORDS: Final = frozenset({"unsigned", "unsigned int", "uint32_t"})
"""What a function may take a byte as."""
_QUALIFIERS: Final = frozenset({"const", "static", "inline", "__forceinline__", "constexpr"})
_CODES: Final = 256
_MOST: Final = 32
"""Functions of one file that are tried."""
_INSTRUCTIONS: Final = 1 << 20
_MAIN = re.compile(r"\bmain\s*\(")
_FORMATS: Final = ("float8_e4m3fn", "float8_e5m2")


def software_formats(code: CodeObject, names: Collection[str]) -> Iterator[Dtype]:
    """The formats of those of the functions `names` of a kernel's file that convert 8-bit floats.
    A function of several formats, or of none, has none."""
    if any(name in names for name in _converters(code.source_text)):
        formats = _formats(code.source_text, code.target)
        yield from (dtype for name, dtype in formats.items() if name in names)


@lru_cache(maxsize=8)
def _formats(text: str, target: str) -> Mapping[str, Dtype]:
    converters = _converters(text)
    if len(converters) > _MOST:
        return {}
    formats: dict[str, Dtype] = {}
    try:
        source = _probe_text(text, converters)
        codes = hip.compile(source, target, program=bool(_MAIN.search(text)))
        probes = {code.kernel: code for code in codes}
        for name, reads in converters.items():
            matches = _reads if reads else _writes
            same = [dtype for dtype in _all_formats() if matches(probes[_probe_name(name)], dtype)]
            if len(same) == 1:
                formats[name] = same[0]
    except WavecastError:  # the file needs options of its build, or a function does not end
        return {}
    return formats


def _reads(probe: CodeObject, dtype: Dtype) -> bool:
    """Whether a function makes of every byte its value."""
    right = values(dtype)
    numbers = np.isfinite(right)
    return np.array_equal(_run(probe, np.arange(_CODES))[numbers], right[numbers])


def _writes(probe: CodeObject, dtype: Dtype) -> bool:
    """Whether a function makes of every value its byte."""
    given = values(dtype)
    numbers = np.isfinite(given) & (given != 0)
    made = _run(probe, np.where(numbers, given, 0))
    return np.array_equal(made[numbers], np.arange(_CODES)[numbers])


def _converters(text: str) -> Mapping[str, bool]:
    """Functions from a byte to a float (true), or the other way."""
    aliases = {name for pair in _ALIAS.findall(text) for name in pair if name}
    converters: dict[str, bool] = {}
    for function in _FUNCTION.finditer(text):
        types = [_type(function[part]) for part in ("parameter", "result")]
        bytes_ = [
            bool(re.fullmatch(_BYTE, name)) or name in aliases or name in _WORDS for name in types
        ]
        if sorted(bytes_) == [False, True] and "float" in types:
            converters[function["name"]] = bytes_[0]
    return converters


def _type(words: str) -> str:
    return " ".join(word for word in words.split() if word not in _QUALIFIERS)


def _probe_name(name: str) -> str:
    return f"wavecast_probe_{name}"


def _probe_text(text: str, converters: Mapping[str, bool]) -> str:
    kernels = (
        f'extern "C" __global__ void {_probe_name(name)}(const float *in, float *out) '
        f"{{ out[threadIdx.x] = (unsigned char)({name}(in[threadIdx.x])); }}"
        if not reads
        else f'extern "C" __global__ void {_probe_name(name)}(const float *in, float *out) '
        f"{{ out[threadIdx.x] = {name}((unsigned char)in[threadIdx.x]); }}"
        for name, reads in converters.items()
    )
    return "\n".join((text, *kernels, ""))


def _run(code: CodeObject, given: np.ndarray) -> np.ndarray:
    """What a probe leaves of 256 floats."""
    given = np.ascontiguousarray(given, np.float32)
    out = np.zeros(_CODES, np.float32)
    arrays = (given, out)
    segment = struct.pack("<QQ", *(array.ctypes.data for array in arrays))
    ranges = [(array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays]
    launch = Launch(code, (1, 1, 1), (_CODES, 1, 1), kernarg=segment.ljust(_CODES, b"\0"))
    engine.run(native_kernel(code), launch, sorted(ranges), budget=_INSTRUCTIONS)
    return out


def _all_formats() -> Iterator[Dtype]:
    for name in _FORMATS:
        yield from (lookup(name).in_variant(variant) for variant in (Variant.OCP, Variant.FNUZ))


@lru_cache(maxsize=8)
def values(dtype: Dtype) -> np.ndarray:
    """The value of every byte in a format: 256 float32, NaN and infinities as such."""
    encoding = dtype.encoding
    assert encoding is not None
    codes = np.arange(_CODES)
    mantissa = codes & (1 << encoding.mantissa) - 1
    exponent = codes >> encoding.mantissa & (1 << encoding.exponent) - 1
    fraction = np.where(exponent > 0, mantissa + (1 << encoding.mantissa), mantissa)
    scale = np.maximum(exponent, 1) - encoding.bias - encoding.mantissa
    table = np.ldexp(fraction.astype(np.float32), scale)
    table = np.where(codes >> 7 & 1, -table, table).astype(np.float32)
    match encoding.specials:
        case SpecialValues.FNUZ:
            table[0x80] = np.nan
        case SpecialValues.ONE_NAN:
            table[[0x7F, 0xFF]] = np.nan
        case _:
            table[exponent == (1 << encoding.exponent) - 1] = np.nan
    return table


__all__ = ["software_formats", "values"]
