"""Quantisation to the OCP microscaling formats: blocks of 32 with a power of two each."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import gpu
from wavecast.kernels.describe import (
    Batch,
    Demand,
    Device,
    KernelSpec,
    Operator,
    Problem,
    Settings,
    Signature,
    StreamingKernel,
    Work,
    checks,
    choice,
    sizes,
    widened,
)
from wavecast.kernels.quantise.equal import same_codes, with_format
from wavecast.kernels.quantise.formats import (
    FORMATS,
    FP8,
    codes_of,
    constants,
    operations,
    sizes_of,
    straddling,
)
from wavecast.kernels.strides import adjacent

BLOCK = 32
"""Elements that share a scale."""
_ELEMENTS = (torch.float8_e4m3fn, torch.float8_e5m2)
_FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The values of the codes of e2m1 without sign."""
TENSORS = Signature("x: [..., columns] float")


@triton.jit
def quantise_mx_kernel(
    x_ptr, codes_ptr, scale_ptr, count, columns, blocks_per_row, stride,
    GROUPS: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr, MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """Blocks are numbered row by row. `LARGEST` is the exponent of an element's greatest power of
    two: the scale is that of the block's largest value, less `LARGEST`."""
    group = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    if not WIDE:
        group = group.to(tl.int32)
    row = group // blocks_per_row
    block = group % blocks_per_row
    column = block[:, None] * 32 + tl.arange(0, 32)[None, :]
    mask = (group < count)[:, None] & (column < columns)
    x = tl.load(x_ptr + row[:, None] * stride + column, mask=mask, other=0.0).to(tl.float32)
    exponent = (tl.max(sizes_of(x), axis=1) >> 23).to(tl.int32)  # pyright: ignore[reportOperatorIssue]
    scale = tl.where(exponent == 255, 255, tl.maximum(exponent - LARGEST, 0))
    tl.store(scale_ptr + group, scale.to(tl.uint8), mask=group < count)
    factor = ((254 - scale) << 23).to(tl.float32, bitcast=True)[:, None]
    scaled = tl.where((scale == 255)[:, None], 0.0, x * factor)
    code = codes_of(scaled, KIND, MANTISSA, BIAS, MOST, NATIVE)
    if KIND == "e2m1":
        low, high = tl.split(tl.reshape(code, (GROUPS, 16, 2)))
        pair = block[:, None] * 16 + tl.arange(0, 16)[None, :]
        pair_mask = (group < count)[:, None] & (pair * 2 < columns)
        codes_ptrs = codes_ptr + row[:, None] * (columns // 2) + pair
        tl.store(codes_ptrs, low | (high << 4), mask=pair_mask)
    else:
        tl.store(codes_ptr + row[:, None] * columns + column, code, mask=mask)


def _demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    elements, total = settings["GROUPS"] * BLOCK, problem["groups"] * BLOCK
    found = StreamingKernel(
        workgroups=triton.cdiv(problem["groups"], settings["GROUPS"]),
        read=total * problem["bytes"],
        written=total / (2 if problem["kind"] == "e2m1" else 1),
        elements=elements,
        instructions=2.0 + operations(problem["kind"], device),
        live_registers=2.0,
    )
    return found.slowed(straddling(elements, problem, settings, device))


MX = KernelSpec(
    function=quantise_mx_kernel,
    grid=lambda problem, settings: (triton.cdiv(problem["groups"], settings["GROUPS"]),),
    axes={"GROUPS": (16, 32, 64, 128, 256), "num_warps": (4, 8), "num_stages": (1,)},
    demand=_demand,
    rounded=("groups",),
)


@TENSORS.checked
def quantise_mxfp4(x: Tensor) -> tuple[Tensor, Tensor]:
    """Blocks of 32 columns in mxfp4 (e2m1 elements, one e8m0 scale), by the OCP MX rule.

    `x` is [..., columns] of float32, float16 or bfloat16 with an even number of columns (the last
    block may be shorter). Returns codes [..., columns / 2] of uint8, the element of the even column
    in the low four bits, and scales [..., ceil(columns / 32)] of uint8, where `s` means
    2^(s - 127): the power of two of the block's largest value, divided by 4. Elements are
    `x / scale`, saturated at 6 and rounded to nearest, ties to even. A block with an infinite value
    or NaN has scale 255, which is NaN, and zeros. Raises ArgumentError.
    """
    columns = x.shape[-1]
    checks.require(columns % 2 == 0, "quantise_mxfp4", f"x has {columns} columns, an odd number")
    shape = (*x.shape[:-1], columns // 2)
    codes = torch.empty(shape, dtype=torch.uint8, device=x.device)
    return codes, _quantise(x, codes, "e2m1")


def quantise_mxfp4_reference(x):
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


@TENSORS.checked
def quantise_mxfp8(x: Tensor, dtype: torch.dtype = torch.float8_e4m3fn) -> tuple[Tensor, Tensor]:
    """Blocks of 32 columns in mxfp8 (one e8m0 scale), by the OCP MX rule.

    `x` is [..., columns] of float32, float16 or bfloat16 (the last block may be shorter), `dtype`
    float8_e4m3fn or float8_e5m2. Returns codes [..., columns] of `dtype` and scales
    [..., ceil(columns / 32)] of uint8, where `s` means 2^(s - 127): the power of two of the
    block's largest value, divided by the greatest power of two of `dtype` (2^8, 2^15). Elements are
    `x / scale`, saturated and rounded to nearest, ties to even. A block with an infinite value or
    NaN has scale 255, which is NaN, and zeros. Raises ArgumentError.
    """
    name = str(dtype).removeprefix("torch.")
    message = f"no MX dtype {name}; it takes float8_e4m3fn, float8_e5m2"
    checks.require(dtype in _ELEMENTS, "quantise_mxfp8", message)
    codes = torch.empty(x.shape, dtype=dtype, device=x.device)
    return codes, _quantise(x, codes.view(torch.uint8), FP8[dtype])


def quantise_mxfp8_reference(x, dtype=torch.float8_e4m3fn):
    """By PyTorch's cast."""
    most = torch.finfo(dtype).max
    scaled, scale = _scaled(x, FORMATS[FP8[dtype]].wide)
    return scaled.clamp(-most, most).to(dtype).contiguous(), scale


def _scaled(x: Tensor, greatest: int) -> tuple[Tensor, Tensor]:
    """`x` divided by the scales of its blocks, and these as e8m0."""
    wide = widened(x)
    columns = x.shape[-1]
    blocks_per_row = (columns + BLOCK - 1) // BLOCK
    padded = torch.nn.functional.pad(wide, (0, blocks_per_row * BLOCK - columns))
    parts = padded.reshape(*x.shape[:-1], blocks_per_row, BLOCK)
    largest = parts.abs().amax(-1, keepdim=True)
    _, exponent = torch.frexp(largest)  # a mantissa from 0.5
    exponent = torch.where(largest == 0, 0, exponent + 126 - greatest).clamp(0, 254)
    finite = largest.isfinite()
    divided = torch.ldexp(parts, 127 - exponent)
    divided = torch.where(finite, divided, torch.zeros_like(divided))
    scale = torch.where(finite, exponent, 255).squeeze(-1).to(torch.uint8)
    return divided.reshape(padded.shape)[..., :columns], scale.contiguous()


def _quantise(x: Tensor, codes: Tensor, kind: str) -> Tensor:
    """Fill `codes`; the scales."""
    columns = x.shape[-1]
    blocks_per_row = triton.cdiv(columns, BLOCK)
    scale = torch.empty((*x.shape[:-1], blocks_per_row), dtype=torch.uint8, device=x.device)
    if not x.numel():
        return scale
    flat = adjacent(x.reshape(-1, columns))
    choice.run(
        MX,
        {"groups": scale.numel(), "bytes": x.element_size(), "kind": kind},
        x=flat,
        codes=codes,
        scale=scale,
        count=scale.numel(),
        columns=columns,
        blocks_per_row=blocks_per_row,
        stride=flat.stride(0),
        LARGEST=FORMATS[kind].wide,
        **constants(kind, gpu.launching()),
    )
    return scale


def _inputs(make, rows, columns, dtype, to=""):
    given = {"x": make.normal((rows, columns), dtype)}
    return {**given, "dtype": make.dtype(to)} if to else given


def _work(rows, columns, dtype, to=""):
    size = getattr(torch, dtype).itemsize
    flops = {"vector_fp32": 2.0 * rows * columns}
    written = rows * columns * (1.0 if to else 0.5) + rows * triton.cdiv(columns, BLOCK)
    return Work(flops, rows * columns * size, written, "formula", "formula")


_CASES = sizes(
    "rows columns dtype",
    *((5, 300, "bfloat16"), (3, 18, "float32"), (33, 128, "float16"), (7, 1000, "bfloat16")),
)
_SHAPES = sizes("rows columns dtype", (8192, 4096, "bfloat16"), (64, 7168, "bfloat16"))

OPERATORS = (
    Operator(
        summary="blocks of 32 columns in mxfp4",
        call=quantise_mxfp4,
        reference=quantise_mxfp4_reference,
        tensors=TENSORS,
        inputs=_inputs,
        work=_work,
        batch=Batch(("x",)),
        cases=_CASES,
        shapes=_SHAPES,
        kernels=(MX,),
        exact=("x",),
        compare=same_codes,
    ),
    Operator(
        summary="blocks of 32 columns in mxfp8",
        call=quantise_mxfp8,
        reference=quantise_mxfp8_reference,
        tensors=TENSORS,
        inputs=_inputs,
        work=_work,
        batch=Batch(("x",)),
        cases=(*with_format("float8_e4m3fn", *_CASES[:3]), *with_format("float8_e5m2", _CASES[3])),
        thorough=with_format("float8_e5m2", *_CASES[:2]),
        shapes=with_format("float8_e4m3fn", *_SHAPES),
        kernels=(MX,),
        exact=("x",),
        compare=same_codes,
    ),
)
