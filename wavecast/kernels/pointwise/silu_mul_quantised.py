"""SwiGLU into fp8, with a scale per row or per group of columns: nothing is stored in between."""

from collections.abc import Sequence
from dataclasses import replace

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe
from wavecast.kernels.describe import Sizes, sizes, widened
from wavecast.kernels.pointwise import gated
from wavecast.kernels.pointwise.functions import activated
from wavecast.kernels.quantise import formats
from wavecast.kernels.quantise.common import blocks_of
from wavecast.kernels.quantise.formats import codes_of, sizes_of
from wavecast.launch import gpu

_WHOLE_ROW = 16384
"""Columns a program holds at once; longer rows are read twice."""
_SILU = tl.constexpr("silu")
_WIDTHS = (0, 32, 64, 128, 256)


@triton.jit
def product(gate_ptr, up_ptr, offs, mask):
    """silu(gate) · up in float32."""
    gate = tl.load(gate_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    return activated(gate, _SILU) * up


@triton.jit
def at_least(size, least):
    """Absolute values given by their bits, `least` at least."""
    return tl.maximum(size, least.to(tl.uint32, bitcast=True)).to(tl.float32, bitcast=True)


@triton.jit
def silu_mul_token_kernel(
    gate_ptr, up_ptr, codes_ptr, scale_ptr, rows, columns, gate_stride, up_stride, least,
    BLOCK: tl.constexpr, WHOLE: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr, MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    gate_ptr += row * gate_stride
    up_ptr += row * up_stride
    codes_ptr += row * columns
    # Lanes take 16 bytes of input in a row, not the 16 codes that stores would rather have.
    offs = tl.max_contiguous(
        tl.arange(0, BLOCK), 128 // gate_ptr.dtype.element_ty.primitive_bitwidth
    )
    most = tl.full((), MOST, tl.float32)
    if WHOLE:
        value = product(gate_ptr, up_ptr, offs, offs < columns)
        largest = at_least(tl.max(sizes_of(value), axis=0), least)
        code = codes_of(value * tl.div_rn(most, largest), KIND, MANTISSA, BIAS, MOST, NATIVE)
        tl.store(codes_ptr + offs, code, mask=offs < columns)
    else:
        maxima = tl.zeros((BLOCK,), tl.uint32)
        for start in range(0, columns, BLOCK):
            mask = offs < columns - start
            maxima = tl.maximum(maxima, sizes_of(product(gate_ptr, up_ptr, start + offs, mask)))
        largest = at_least(tl.max(maxima, axis=0), least)
        factor = tl.div_rn(most, largest)
        for start in range(0, columns, BLOCK):
            mask = offs < columns - start
            value = product(gate_ptr, up_ptr, start + offs, mask)
            code = codes_of(value * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)
            tl.store(codes_ptr + start + offs, code, mask=mask)
    tl.store(scale_ptr + row, tl.div_rn(largest, most))


@triton.jit
def silu_mul_group_kernel(
    gate_ptr, up_ptr, codes_ptr, scale_ptr, count, columns, groups_per_row,
    gate_stride, up_stride, least,
    GROUPS: tl.constexpr, WIDTH: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr, MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """Groups are numbered row by row; those of a row that are cut off are shorter."""
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    row = group // groups_per_row
    if WIDE:
        row = row.to(tl.int64)
    column = (group % groups_per_row * WIDTH)[:, None] + tl.arange(0, WIDTH)[None, :]
    mask = (group < count)[:, None] & (column < columns)
    gate = tl.load(gate_ptr + row[:, None] * gate_stride + column, mask=mask, other=0.0)
    up = tl.load(up_ptr + row[:, None] * up_stride + column, mask=mask, other=0.0)
    value = activated(gate.to(tl.float32), _SILU) * up.to(tl.float32)
    largest = at_least(tl.max(sizes_of(value), axis=1), least)
    most = tl.full((GROUPS,), MOST, tl.float32)
    tl.store(scale_ptr + group, tl.div_rn(largest, most), mask=group < count)
    factor = tl.div_rn(most, largest)[:, None]
    code = codes_of(value * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)
    tl.store(codes_ptr + row[:, None] * columns + column, code, mask=mask)


_PASSES = f"(1 + (columns > {_WHOLE_ROW}))"
_STRIDES = {"gate": "gate_stride", "up": "up_stride"}
TOKEN = formats.codes_kernel(
    silu_mul_token_kernel,
    gaps=False,
    grid="rows",
    axes={
        "BLOCK": f"(next_power_of_2(columns),) if columns <= {_WHOLE_ROW} else (1024, 2048, 4096)",
        "num_warps": "(1, 2, 4, 8, 16, 32) if wave_lanes == 32 else (1, 2, 4, 8, 16)",
    },
    fits="BLOCK <= 32 * lanes",  # more elements in a lane leave too few waves to hide their loads
    read=f"2 * rows * columns * bytes * {_PASSES}",
    written="rows * columns",
    elements="BLOCK",
    instructions=f"(codes + 14.0 * {_PASSES}) * cdiv(columns, BLOCK)",
    live_registers=4.0,
    strides=_STRIDES,
    rounded=("rows",),
)
GROUP = formats.codes_kernel(
    silu_mul_group_kernel,
    grid="cdiv(groups, GROUPS)",
    axes={"GROUPS": (4, 8, 16, 32, 64, 128), "num_warps": (4, 8)},
    fits="512 <= GROUPS * width <= 8192",
    read="2 * groups * width * bytes",
    written="groups * width",
    elements="GROUPS * width",
    instructions="16.0 + codes",
    live_registers=4.0,
    strides=_STRIDES,
    rounded=("groups",),
)


def silu_mul_quantised(
    x: Tensor, up: Tensor | None = None, dtype: torch.dtype = torch.float8_e4m3fn, group: int = 0
) -> tuple[Tensor, Tensor]:
    """`silu_mul(x, up)` of float32 precision in fp8: `silu(gate) · up ≈ codes.float() * scale`.

    `x` and `up` as for `silu_mul`; `dtype` an fp8 dtype. With `group` 0 each row has a scale, else
    each `group` (32, 64, 128, 256) columns, the last of a row perhaps fewer. Returns codes
    [..., columns] and scales of float32, [..., 1] or [..., ceil(columns / group)], as
    `quantise_fp8_token` and `quantise_fp8_group` do. Raises ArgumentError.
    """
    name = "silu_mul_quantised"
    columns = gated.check(name, x, up)
    kind = formats.fp8_name(name, dtype)
    widths = ", ".join(map(str, _WIDTHS))
    checks.require(group in _WIDTHS, name, f"groups of {group}; it takes {widths}")
    groups_per_row = triton.cdiv(columns, group) if group else 1
    codes = torch.empty((*x.shape[:-1], columns), dtype=dtype, device=x.device)
    scale = torch.empty((*x.shape[:-1], groups_per_row), dtype=torch.float32, device=x.device)
    if not codes.numel():
        return codes, scale.fill_(formats.LEAST / torch.finfo(dtype).max)
    gate, other = gated.halves(x, up, columns)
    operands = {"gate": gate, "up": other, "codes": codes.view(torch.uint8), "scale": scale}
    operands |= {"least": formats.LEAST, **formats.constants(kind, gpu.launching())}
    problem = {"columns": columns, "bytes": x.element_size(), "kind": kind}
    if group:
        problem |= {"groups": scale.numel(), "width": group}
        choice.run(GROUP, problem, **operands, count=scale.numel(), groups_per_row=groups_per_row)
    else:
        problem |= {"rows": gate.shape[0]}
        choice.run(TOKEN, problem, **operands, WHOLE=columns <= _WHOLE_ROW)
    return codes, scale


def silu_mul_quantised_reference(x, up=None, dtype=torch.float8_e4m3fn, group=0):
    """In float32 at least, by PyTorch's cast."""
    gate, other = x.chunk(2, dim=-1) if up is None else (x, up)
    value = torch.nn.functional.silu(widened(gate)) * widened(other)
    columns, most = value.shape[-1], torch.finfo(dtype).max
    row = torch.nn.functional.pad(value, (0, int(not columns))).unsqueeze(-2)
    parts = blocks_of(value, group) if group else row
    largest = parts.abs().amax(-1, keepdim=True).clamp_min(formats.LEAST)
    scaled = (parts * (torch.full_like(largest, most) / largest)).clamp(-most, most)
    codes = scaled.flatten(-2)[..., :columns].to(dtype)
    return codes.contiguous(), (largest / most).squeeze(-1).float().contiguous()


def near_codes(got: Sequence[Tensor], expected: Sequence[Tensor], sizes: Sizes) -> str:
    """What differs: scales by more than 1e-5 of them, any code by more than a step, or more than 1
    in 50 codes at all (those whose values lie between two of them are rounded either way)."""
    del sizes
    for index, (mine, right) in enumerate(zip(got, expected, strict=True)):
        if mine.dtype != right.dtype or mine.shape != right.shape:
            return f"result {index} is {mine.dtype} {tuple(mine.shape)}, expected {right.shape}"
    (codes, scale), (right_codes, right_scale) = got, expected
    if not torch.allclose(scale, right_scale, rtol=1e-5, atol=0.0, equal_nan=True):
        return f"scales are off by up to {float((scale / right_scale - 1).abs().max()):.3g}"
    mine, right = codes.double(), right_codes.double()
    form = torch.finfo(codes.dtype)
    step = (right.abs() * form.eps).clamp_min(form.smallest_normal * form.eps)
    differing = (mine != right) & ~(mine.isnan() & right.isnan())
    if bool((differing & ~((mine - right).abs() <= step)).any()):
        return f"{int((mine - right).abs().gt(step).sum())} codes are off by more than a step"
    if int(differing.sum()) > 2 + mine.numel() // 50:
        return f"{int(differing.sum())} of {mine.numel()} codes are off by a step"
    return ""


def _inputs(make, rows, columns, dtype, to, group=0, pair=False):
    operands = gated.inputs(make, rows=rows, columns=columns, dtype=dtype, pair=pair)
    return {**operands, "dtype": make.dtype(to), "group": group}


def _work(group=0, **sizes):
    work, rows, columns = describe.streamed(2, 0, 8.0)(**sizes), sizes["rows"], sizes["columns"]
    scales = 4.0 * rows * (triton.cdiv(columns, group) if group else 1)
    return replace(work, bytes_written=rows * columns + scales)


_OCP, _FNUZ = "float8_e4m3fn", "float8_e4m3fnuz"
_SIZES = "rows columns dtype to group pair"

OPERATOR = describe.Operator(
    summary="SwiGLU into fp8 with a scale per row or group",
    call=silu_mul_quantised,
    tensors=gated.TENSORS,
    inputs=_inputs,
    work=_work,
    batch=describe.Batch(("x", "up")),
    cases=sizes(
        _SIZES,
        (5, 300, "bfloat16", _OCP),
        (5, 300, "bfloat16", _FNUZ, 128),
        (3, 1000, "bfloat16", _OCP, 64, True),
    ),
    thorough=(
        *sizes(_SIZES, (2, 17001, "bfloat16", _FNUZ), (5, 130, "float32", "float8_e5m2", 32)),
        *sizes("rows columns dtype to pair", (5, 300, "float16", "float8_e5m2fnuz", True)),
        *sizes(_SIZES, (5, 300, "bfloat16", _OCP, 256)),
    ),
    shapes=sizes(
        _SIZES,
        *((8192, 14336, "bfloat16", to) for to in (_OCP, _FNUZ)),
        *((8192, 14336, "bfloat16", to, 128) for to in (_OCP, _FNUZ)),
        (64, 14336, "bfloat16", _OCP, 128),
    ),
    compare=near_codes,
    notes="It has no gradient.",
)
