"""Quantisation to the OCP microscaling formats: blocks of 32 with a power of two each."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe
from wavecast.kernels.describe import sizes, widened
from wavecast.kernels.quantise import common, formats
from wavecast.kernels.quantise.common import with_format
from wavecast.kernels.quantise.formats import codes_of, sizes_of
from wavecast.kernels.quantise.widen import FP4
from wavecast.kernels.strides import rows_of
from wavecast.launch import gpu

BLOCK = 32
"""Elements that share a scale."""
_ELEMENTS = (torch.float8_e4m3fn, torch.float8_e5m2)
TENSORS = describe.Signature("x: [..., columns] float")


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


MX = formats.codes_kernel(
    quantise_mx_kernel,
    grid="cdiv(groups, GROUPS)",
    axes={"GROUPS": (16, 32, 64, 128, 256), "num_warps": (4, 8)},
    read=f"groups * {BLOCK} * bytes",
    written=f"groups * {BLOCK} / (2 if kind == 'e2m1' else 1)",
    elements=f"GROUPS * {BLOCK}",
    instructions="2.0 + codes",
    live_registers=2.0,
    strides={"x": "stride"},
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
    scaled, scale = _scale_blocks(x, formats.largest_power("e2m1"))
    size = scaled.abs()
    code = torch.zeros_like(scaled, dtype=torch.uint8)
    for lower in range(7):
        middle = (FP4[lower] + FP4[lower + 1]) / 2
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
    return codes, _quantise(x, codes.view(torch.uint8), formats.FP8[dtype])


def quantise_mxfp8_reference(x, dtype=torch.float8_e4m3fn):
    """By PyTorch's cast."""
    most = torch.finfo(dtype).max
    scaled, scale = _scale_blocks(x, formats.largest_power(formats.FP8[dtype]))
    return scaled.clamp(-most, most).to(dtype).contiguous(), scale


def _scale_blocks(x: Tensor, greatest: int) -> tuple[Tensor, Tensor]:
    """`x` divided by the scales of its blocks, and these as e8m0."""
    parts = common.blocks_of(widened(x), BLOCK)
    largest = parts.abs().amax(-1, keepdim=True)
    _, exponent = torch.frexp(largest)  # a mantissa from 0.5
    exponent = torch.where(largest == 0, 0, exponent + 126 - greatest).clamp(0, 254)
    finite = largest.isfinite()
    divided = torch.ldexp(parts, 127 - exponent)
    divided = torch.where(finite, divided, torch.zeros_like(divided))
    scale = torch.where(finite, exponent, 255).squeeze(-1).to(torch.uint8)
    return divided.flatten(-2)[..., : x.shape[-1]], scale.contiguous()


def _quantise(x: Tensor, codes: Tensor, kind: str) -> Tensor:
    """Fill `codes`; the scales."""
    columns = x.shape[-1]
    blocks_per_row = triton.cdiv(columns, BLOCK)
    scale = torch.empty((*x.shape[:-1], blocks_per_row), dtype=torch.uint8, device=x.device)
    if not x.numel():
        return scale
    problem = {"groups": scale.numel(), "bytes": x.element_size(), "kind": kind}
    operands = {"x": rows_of(x), "codes": codes, "scale": scale}
    shape = {"count": scale.numel(), "columns": columns, "blocks_per_row": blocks_per_row}
    constants = {"LARGEST": formats.largest_power(kind), **formats.constants(kind, gpu.launching())}
    choice.run(MX, problem, **operands, **shape, **constants)
    return scale


def _written_bytes(rows, columns, to="", **_):
    return rows * columns * (1.0 if to else 0.5) + rows * triton.cdiv(columns, BLOCK)


_CASES = sizes(
    "rows columns dtype",
    *((5, 300, "bfloat16"), (3, 18, "float32"), (33, 128, "float16"), (7, 1000, "bfloat16")),
)
_SHAPES = sizes("rows columns dtype", (8192, 4096, "bfloat16"), (64, 7168, "bfloat16"))
_SHARED: dict[str, Any] = {
    "tensors": TENSORS,
    "inputs": TENSORS.inputs(options={"to": "dtype"}),
    "work": common.work(_written_bytes),
    "batch": describe.Batch(("x",)),
    "exact": ("x",),
    "compare": common.same_codes,
}

OPERATORS = (
    describe.Operator(
        summary="blocks of 32 columns in mxfp4",
        call=quantise_mxfp4,
        cases=_CASES,
        shapes=_SHAPES,
        **_SHARED,
    ),
    describe.Operator(
        summary="blocks of 32 columns in mxfp8",
        call=quantise_mxfp8,
        cases=(*with_format("float8_e4m3fn", *_CASES[:3]), *with_format("float8_e5m2", _CASES[3])),
        thorough=with_format("float8_e5m2", *_CASES[:2]),
        shapes=with_format("float8_e4m3fn", *_SHAPES),
        **_SHARED,
    ),
)
