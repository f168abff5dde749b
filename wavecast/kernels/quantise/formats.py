"""Narrow number formats: what they hold, and the codes of float32 values on any GPU.

Codes are found by integer arithmetic that rounds to nearest, ties to even, as PyTorch's casts do;
targets that have conversion instructions for a format use those.
"""

import math
from dataclasses import replace
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.dtypes import Encoding, lookup
from wavecast.kernels import checks, describe
from wavecast.kernels.describe import Demand, Device, Problem, Settings, coefficient

FP8: Final = {
    torch.float8_e4m3fn: "e4m3fn",
    torch.float8_e4m3fnuz: "e4m3fnuz",
    torch.float8_e5m2: "e5m2",
    torch.float8_e5m2fnuz: "e5m2fnuz",
}
"""The fp8 formats by dtype."""

_HALVED: Final = {"e4m3fn": "e4m3fnuz", "e5m2": "e5m2fnuz"}
"""Formats whose codes are those of half the values in another, but for NaN and the sign of zero."""

LEAST: Final = 2.0**-100
"""The least absolute maximum a scale is made of, so that no scale is zero or denormal."""


def encoding(name: str) -> Encoding:
    """The bits of a format: `e2m1`, or the name of one of 8 bits."""
    bits = lookup("float4_e2m1fn" if name == "e2m1" else f"float8_{name}").encoding
    assert bits is not None
    return bits


def largest_power(name: str) -> int:
    """The exponent of the greatest power of two in a format."""
    return int(math.log2(encoding(name).largest))


def native(name: str, device: Device) -> bool:
    """Whether a device has instructions that convert float32 to a format."""
    return f"float8_{name}" in device.capabilities.fp8_conversion


def conversion(name: str, device: Device) -> str:
    """How a device's instructions convert float32 to a format: `whole`, `half` by those for the
    format that has the same codes for half the values, "" not at all."""
    if native(name, device):
        return "whole"
    return "half" if native(_HALVED.get(name, ""), device) else ""


def constants(name: str, device: Device) -> dict[str, Any]:
    """What the kernels take to find codes of a format on a device."""
    bits = {"MANTISSA": encoding(name).mantissa, "BIAS": encoding(name).bias}
    return {"KIND": name, **bits, "MOST": most_of(name), "NATIVE": conversion(name, device)}


def most_of(kind: str) -> float:
    """The greatest value of a format, or of `int8`."""
    return 127.0 if kind == "int8" else encoding(kind).largest


def rounding(kind: str, device: Device) -> dict[str, Any]:
    """`constants` of an fp8 format, or what the same kernels take for `int8`."""
    if kind == "int8":
        return {"KIND": kind, "MANTISSA": 0, "BIAS": 0, "MOST": most_of(kind), "NATIVE": "whole"}
    return constants(kind, device)


def operations(kind: str, device: Device) -> float:
    """Vector instructions that find the code of an element in a format, or in `int8`."""
    method = "whole" if kind == "int8" else conversion(kind, device) or "none"
    return coefficient("ranking", f"codes_instructions_{method}").of(device)


def fp8_name(operator: str, dtype: torch.dtype) -> str:
    """The format of an fp8 dtype. Raises ArgumentError for another dtype."""
    names = ", ".join(str(fp8_dtype).removeprefix("torch.") for fp8_dtype in FP8)
    dtype_name = str(dtype).removeprefix("torch.")
    checks.require(dtype in FP8, operator, f"no fp8 dtype {dtype_name}; it takes {names}")
    return FP8[dtype]


def codes_kernel(function: Any, *, gaps: bool = True, **fields: Any) -> describe.KernelSpec:
    """A `KernelSpec.streaming` that finds codes of `problem["kind"]`, whose texts also know
    `codes`, the vector instructions for an element's.

    It takes longer where lanes have more than 16 bytes of input (`gaps`): Triton then gives each
    lane 16 codes in a row, and its loads of 16 bytes leave gaps that others fill.
    """

    def slowdown(kernel: Any, problem: Problem, settings: Settings, device: Device) -> float:
        lane = kernel.elements / (settings["num_warps"] * device.wave_lanes)
        if lane * problem["bytes"] <= 16:
            return 1.0
        return coefficient("ranking", "codes_gapped_loads").of(device)

    def demand(problem: Problem, settings: Settings, device: Device) -> Demand:
        codes = operations(problem["kind"], device)
        return stream.demand({**problem, "codes": codes}, settings, device)

    stream = describe.KernelSpec.streaming(function, slowed=slowdown if gaps else None, **fields)
    return replace(stream, demand=demand)


@triton.jit
def codes_of(
    value, KIND: tl.constexpr, MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """The codes (uint8) of float32 values, saturated at `MOST`; NaN stays NaN. NATIVE: see
    `conversion`."""
    if NATIVE == "half":
        clamped = tl.minimum(tl.maximum(value * 0.5, -0.5 * MOST), 0.5 * MOST)
        if KIND == "e4m3fn":
            code = clamped.to(tl.float8e4b8).to(tl.uint8, bitcast=True)
        else:
            code = clamped.to(tl.float8e5b16).to(tl.uint8, bitcast=True)
        sign = (value.to(tl.uint32, bitcast=True) >> 24) & 0x80
        code = (tl.where(value == value, code.to(tl.uint32), 0x7F) | sign).to(tl.uint8)
    elif NATIVE == "whole":
        clamped = tl.minimum(tl.maximum(value, -MOST), MOST)
        clamped = tl.where(value != value, value, clamped)
        if KIND == "e4m3fn":
            code = clamped.to(tl.float8e4nv).to(tl.uint8, bitcast=True)
        elif KIND == "e4m3fnuz":
            code = clamped.to(tl.float8e4b8).to(tl.uint8, bitcast=True)
        elif KIND == "e5m2":
            code = clamped.to(tl.float8e5).to(tl.uint8, bitcast=True)
        else:
            code = clamped.to(tl.float8e5b16).to(tl.uint8, bitcast=True)
    else:
        SHIFT: tl.constexpr = 23 - MANTISSA
        LOWEST: tl.constexpr = (128 - BIAS) << 23
        MAGIC: tl.constexpr = (151 - BIAS - MANTISSA) << 23
        TOP: tl.constexpr = 3 if KIND == "e2m1" else 7  # pyright: ignore[reportAssignmentType]
        bits = value.to(tl.uint32, bitcast=True)
        sign = (bits >> 31) << TOP
        size = bits & 0x7FFFFFFF
        most = tl.full((1,), MOST, tl.float32).to(tl.uint32, bitcast=True)
        clamped = tl.minimum(size, most)
        normal = (
            clamped - ((127 - BIAS) << 23) + ((1 << (SHIFT - 1)) - 1) + ((clamped >> SHIFT) & 1)  # pyright: ignore[reportOperatorIssue]
        ) >> SHIFT
        magic = tl.full((1,), MAGIC, tl.uint32).to(tl.float32, bitcast=True)
        small = (clamped.to(tl.float32, bitcast=True) + magic).to(tl.uint32, bitcast=True) - MAGIC
        code = tl.where(clamped < LOWEST, small, normal)
        if KIND == "e4m3fnuz" or KIND == "e5m2fnuz":
            code = tl.where(code == 0, 0, code | sign)
            code = tl.where(size > 0x7F800000, 0x80, code)
        elif KIND == "e2m1":
            code = code | sign
        else:
            code = tl.where(size > 0x7F800000, 0x7F, code) | sign
        code = code.to(tl.uint8)
    return code


@triton.jit
def fp8_of(value, kind: tl.constexpr, MOST: tl.constexpr, NATIVE: tl.constexpr):
    """float32 values in the fp8 dtype `kind`, as `codes_of` finds them."""
    if kind == tl.float8e4nv:
        code = codes_of(value, "e4m3fn", 3, 7, MOST, NATIVE)  # pyright: ignore[reportArgumentType]
    elif kind == tl.float8e4b8:
        code = codes_of(value, "e4m3fnuz", 3, 8, MOST, NATIVE)  # pyright: ignore[reportArgumentType]
    elif kind == tl.float8e5:
        code = codes_of(value, "e5m2", 2, 15, MOST, NATIVE)  # pyright: ignore[reportArgumentType]
    else:
        code = codes_of(value, "e5m2fnuz", 2, 16, MOST, NATIVE)  # pyright: ignore[reportArgumentType]
    return code.to(kind, bitcast=True)


@triton.jit
def values_of(code, KIND: tl.constexpr):
    """The float32 values of fp8 codes (uint8), with NaN and infinities, which Triton's conversions
    by arithmetic lose. Their lower 16 bits are 0."""
    SHIFT: tl.constexpr = 20 if KIND == "e4m3fn" or KIND == "e4m3fnuz" else 21  # pyright: ignore[reportAssignmentType]
    if KIND == "e4m3fn":
        POWER: tl.constexpr = 247 << 23  # pyright: ignore[reportAssignmentType]
    elif KIND == "e4m3fnuz":
        POWER: tl.constexpr = 246 << 23  # pyright: ignore[reportAssignmentType]
    elif KIND == "e5m2":
        POWER: tl.constexpr = 239 << 23  # pyright: ignore[reportAssignmentType]
    else:
        POWER: tl.constexpr = 238 << 23  # pyright: ignore[reportAssignmentType]
    wide = code.to(tl.uint32)
    size = wide & 0x7F
    power = tl.full((1,) * len(code.shape), POWER, tl.uint32).to(tl.float32, bitcast=True)
    bits = ((size << SHIFT).to(tl.float32, bitcast=True) * power).to(tl.uint32, bitcast=True)
    if KIND == "e4m3fn":
        bits = tl.where(size == 0x7F, 0x7FC00000, bits)
    elif KIND == "e5m2":
        bits = tl.where(size >= 0x7C, (size << SHIFT) | 0x7F800000, bits)
    bits = bits | ((wide & 0x80) << 24)
    if KIND == "e4m3fnuz" or KIND == "e5m2fnuz":
        bits = tl.where(wide == 0x80, 0x7FC00000, bits)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def half_of(value):
    """float32 values whose lower 16 bits are 0 as bfloat16."""
    bits = value.to(tl.uint32, bitcast=True) >> 16
    return bits.to(tl.uint16).to(tl.bfloat16, bitcast=True)


@triton.jit
def halves_of(x):
    """fp8 values as bfloat16, exactly, on targets that have no instructions for the format."""
    code = x.to(tl.uint8, bitcast=True)
    if x.dtype == tl.float8e4nv:
        wide = values_of(code, "e4m3fn")  # pyright: ignore[reportArgumentType]
    elif x.dtype == tl.float8e4b8:
        wide = values_of(code, "e4m3fnuz")  # pyright: ignore[reportArgumentType]
    elif x.dtype == tl.float8e5:
        wide = values_of(code, "e5m2")  # pyright: ignore[reportArgumentType]
    else:
        wide = values_of(code, "e5m2fnuz")  # pyright: ignore[reportArgumentType]
    return half_of(wide)


@triton.jit
def integers_of(value):
    """float32 values from -127 to 127 rounded to int8, ties to even; those beyond saturate, and NaN
    is 0, as it is for AMD's conversions and PyTorch's."""
    clamped = tl.where(value == value, tl.minimum(tl.maximum(value, -127.0), 127.0), 0.0)
    return ((clamped + 12582912.0).to(tl.int32, bitcast=True) & 0xFF).to(tl.uint8)


@triton.jit
def sizes_of(value):
    """The bits of absolute float32 values: they order as these do, with NaN above all."""
    return value.to(tl.uint32, bitcast=True) & 0x7FFFFFFF
