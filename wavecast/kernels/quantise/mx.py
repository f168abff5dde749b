"""Quantisation to the OCP microscaling formats: blocks of 32 with a power of two each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Operator, Sizes
from wavecast.kernels.quantise.equal import same_codes
from wavecast.kernels.quantise.formats import (
    FORMATS,
    FP8,
    codes_of,
    constants,
    operations,
    sizes_of,
    straddling,
)
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import adjacent
from wavecast.model.bounds import Work

BLOCK: Final = 32
"""Elements that share a scale."""
_ELEMENTS = (torch.float8_e4m3fn, torch.float8_e5m2)
_FP4: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""What the codes of e2m1 without sign stand for."""


@triton.jit
def quantise_mx_kernel(
    x_ptr, codes_ptr, scale_ptr, count, columns, across, stride,
    GROUPS: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr, MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """Blocks are numbered row by row. `LARGEST` is the exponent of an element's greatest power of
    two: the scale is that of the block's largest value, less `LARGEST`."""
    group = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    if not WIDE:
        group = group.to(tl.int32)
    row = group // across
    block = group % across
    column = block[:, None] * 32 + tl.arange(0, 32)[None, :]
    inside = (group < count)[:, None] & (column < columns)
    x = tl.load(x_ptr + row[:, None] * stride + column, mask=inside, other=0.0).to(tl.float32)
    exponent = (tl.max(sizes_of(x), axis=1) >> 23).to(tl.int32)  # pyright: ignore[reportOperatorIssue]
    scale = tl.where(exponent == 255, 255, tl.maximum(exponent - LARGEST, 0))
    tl.store(scale_ptr + group, scale.to(tl.uint8), mask=group < count)
    factor = ((254 - scale) << 23).to(tl.float32, bitcast=True)[:, None]
    scaled = tl.where((scale == 255)[:, None], 0.0, x * factor)
    code = codes_of(scaled, KIND, MANTISSA, BIAS, MOST, NATIVE)
    if KIND == "e2m1":
        low, high = tl.split(tl.reshape(code, (GROUPS, 16, 2)))
        pair = block[:, None] * 16 + tl.arange(0, 16)[None, :]
        held = (group < count)[:, None] & (pair * 2 < columns)
        to = codes_ptr + row[:, None] * (columns // 2) + pair
        tl.store(to, low | (high << 4), mask=held)
    else:
        tl.store(codes_ptr + row[:, None] * columns + column, code, mask=inside)


def quantise_mxfp4(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Blocks of 32 columns in mxfp4 (e2m1 elements, one e8m0 scale), by the OCP MX rule.

    `x` is [..., columns] of float32, float16 or bfloat16 with an even number of columns (the last
    block may be shorter). Returns codes [..., columns / 2] of uint8, the element of the even column
    in the low four bits, and scales [..., ceil(columns / 32)] of uint8, where `s` stands for
    2^(s - 127): the power of two of the block's largest value, divided by 4. Elements are
    `x / scale`, saturated at 6 and rounded to nearest, ties to even. A block with an infinite value
    or NaN has scale 255, which is NaN, and zeros. Raises ArgumentError.
    """
    checks.require(x.dim() > 0, "quantise_mxfp4", "x is a scalar")
    columns = x.shape[-1]
    checks.require(columns % 2 == 0, "quantise_mxfp4", f"x has {columns} columns, an odd number")
    shape = (*x.shape[:-1], columns // 2)
    codes = torch.empty(shape, dtype=torch.uint8, device=x.device)
    return codes, _quantise("quantise_mxfp4", x, codes, "e2m1")


def quantise_mxfp4_reference(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """By comparison with the midpoints between values."""
    scaled, scale = _scaled(x, FORMATS["e2m1"].wide)
    size = scaled.abs()
    code = torch.zeros_like(scaled, dtype=torch.uint8)
    for lower in range(7):
        middle = (_FP4[lower] + _FP4[lower + 1]) / 2
        above = size >= middle if lower % 2 else size > middle
        code = code + above.to(torch.uint8)
    code = code + 8 * torch.signbit(scaled).to(torch.uint8)
    return (code[..., ::2] + 16 * code[..., 1::2]).contiguous(), scale


def quantise_mxfp8(
    x: torch.Tensor, dtype: torch.dtype = torch.float8_e4m3fn
) -> tuple[torch.Tensor, torch.Tensor]:
    """Blocks of 32 columns in mxfp8 (one e8m0 scale), by the OCP MX rule.

    `x` is [..., columns] of float32, float16 or bfloat16 (the last block may be shorter), `dtype`
    float8_e4m3fn or float8_e5m2. Returns codes [..., columns] of `dtype` and scales
    [..., ceil(columns / 32)] of uint8, where `s` stands for 2^(s - 127): the power of two of the
    block's largest value, divided by the greatest power of two of `dtype` (2^8, 2^15). Elements are
    `x / scale`, saturated and rounded to nearest, ties to even. A block with an infinite value or
    NaN has scale 255, which is NaN, and zeros. Raises ArgumentError.
    """
    checks.require(x.dim() > 0, "quantise_mxfp8", "x is a scalar")
    known = dtype in _ELEMENTS
    given = str(dtype).removeprefix("torch.")
    checks.require(
        known, "quantise_mxfp8", f"no MX dtype {given}; it takes float8_e4m3fn, float8_e5m2"
    )
    codes = torch.empty(x.shape, dtype=dtype, device=x.device)
    return codes, _quantise("quantise_mxfp8", x, codes.view(torch.uint8), FP8[dtype])


def quantise_mxfp8_reference(
    x: torch.Tensor, dtype: torch.dtype = torch.float8_e4m3fn
) -> tuple[torch.Tensor, torch.Tensor]:
    """By PyTorch's cast."""
    most = torch.finfo(dtype).max
    scaled, scale = _scaled(x, FORMATS[FP8[dtype]].wide)
    return scaled.clamp(-most, most).to(dtype).contiguous(), scale


def _scaled(x: torch.Tensor, greatest: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`x` divided by the scales of its blocks, and these as e8m0."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    columns = x.shape[-1]
    across = (columns + BLOCK - 1) // BLOCK
    padded = torch.nn.functional.pad(wide, (0, across * BLOCK - columns))
    parts = padded.reshape(*x.shape[:-1], across, BLOCK)
    largest = parts.abs().amax(-1, keepdim=True)
    _, exponent = torch.frexp(largest)  # a mantissa from 0.5
    exponent = torch.where(largest == 0, 0, exponent + 126 - greatest).clamp(0, 254)
    finite = largest.isfinite()
    divided = torch.ldexp(parts, 127 - exponent)
    divided = torch.where(finite, divided, torch.zeros_like(divided))
    scale = torch.where(finite, exponent, 255).squeeze(-1).to(torch.uint8)
    return divided.reshape(padded.shape)[..., :columns], scale.contiguous()


def _quantise(operator: str, x: torch.Tensor, codes: torch.Tensor, kind: str) -> torch.Tensor:
    """Fill `codes`; the scales."""
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    columns = x.shape[-1]
    across = triton.cdiv(columns, BLOCK)
    scale = torch.empty((*x.shape[:-1], across), dtype=torch.uint8, device=x.device)
    if not x.numel():
        return scale
    flat = x.reshape(-1, columns)
    flat = adjacent(flat)
    count = flat.shape[0] * across
    launch(
        quantise_mx_kernel,
        lambda settings: (triton.cdiv(count, settings["GROUPS"]),),
        (flat, codes, scale, count, columns, across, flat.stride(0)),
        MX,
        {"groups": count, "bytes": x.element_size(), "kind": kind},
        LARGEST=FORMATS[kind].wide,
        WIDE=checks.wide(flat, codes),
        **constants(kind, gpu.launching()),
    )
    return scale


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"GROUPS": (16, 32, 64, 128, 256), "num_warps": (4, 8), "num_stages": (1,)}


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    elements = settings["GROUPS"] * BLOCK
    total = problem["groups"] * BLOCK
    return straddling(elements, problem, settings, device) * estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(problem["groups"], settings["GROUPS"]),
        read=total * problem["bytes"],
        written=total / (2 if problem["kind"] == "e2m1" else 1),
        elements=elements,
        operations=2.0 + operations(problem["kind"], device),
        held=2.0,
    )


MX = Space(kernel="quantise_mx_kernel", axes=_axes, seconds=_seconds, classes=("groups",))


def _inputs(make: Make, rows: int, columns: int, dtype: str, to: str = "") -> dict[str, Any]:
    given: dict[str, Any] = {"x": make.normal((rows, columns), dtype)}
    return {**given, "dtype": make.dtype(to)} if to else given


def _work(rows: int, columns: int, dtype: str, to: str = "") -> Work:
    size = getattr(torch, dtype).itemsize
    flops = {"vector_fp32": 2.0 * rows * columns}
    stored = 1.0 if to else 0.5
    written = rows * columns * stored + rows * triton.cdiv(columns, BLOCK)
    return Work(flops, rows * columns * size, written, "formula", "formula")


def _with(to: str, *sizes: Sizes) -> tuple[Sizes, ...]:
    return tuple({**one, "to": to} for one in sizes)


_CASES = (
    {"rows": 5, "columns": 300, "dtype": "bfloat16"},
    {"rows": 3, "columns": 18, "dtype": "float32"},
    {"rows": 33, "columns": 128, "dtype": "float16"},
    {"rows": 7, "columns": 1000, "dtype": "bfloat16"},
)
_SHAPES = (
    {"rows": 8192, "columns": 4096, "dtype": "bfloat16"},
    {"rows": 64, "columns": 7168, "dtype": "bfloat16"},
)

OPERATORS = (
    Operator(
        name="quantise_mxfp4",
        summary="blocks of 32 columns in mxfp4",
        call=quantise_mxfp4,
        reference=quantise_mxfp4_reference,
        inputs=_inputs,
        work=_work,
        batch=Batch(("x",)),
        cases=_CASES,
        shapes=_SHAPES,
        spaces=(MX,),
        exact=("x",),
        compare=same_codes,
    ),
    Operator(
        name="quantise_mxfp8",
        summary="blocks of 32 columns in mxfp8",
        call=quantise_mxfp8,
        reference=quantise_mxfp8_reference,
        inputs=_inputs,
        work=_work,
        batch=Batch(("x",)),
        cases=(*_with("float8_e4m3fn", *_CASES[:3]), *_with("float8_e5m2", _CASES[3])),
        thorough=_with("float8_e5m2", *_CASES[:2]),
        shapes=_with("float8_e4m3fn", *_SHAPES),
        spaces=(MX,),
        exact=("x",),
        compare=same_codes,
    ),
)
