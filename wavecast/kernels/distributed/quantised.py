"""All-reduces that send 8 bits per element, and one whose normalised result is quantised.

`all_reduce_quantised` sends codes of fp8 (e4m3) or int8 with a float32 scale per block of 128
elements, in two shots: every rank adds its part of all in float32, in the order of ranks, and the
sums are quantised again. All ranks get the same bits. With m the largest magnitude of a block (m_r
on rank r, m_s of the sum of what was sent), the error of an element is at most

    int8   (Σ m_r + m_s) / 254                            half of a step of m / 127
    fp8    (Σ |x_r| + |sum|) / 16 + (Σ m_r + m_s) / 2^18   half of a unit, or of the least step

and what rounding to the dtype of the result adds.
"""

# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportCallIssue=false

from __future__ import annotations

from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.checks import FLOATS, dtype_in, one_of, require, shape_is
from wavecast.kernels.distributed import launches
from wavecast.kernels.distributed.group import RankCall, RankGroup, rank_operator
from wavecast.kernels.distributed.kernels import total
from wavecast.kernels.distributed.signals import BLOCKS, exchange
from wavecast.kernels.norm.rms_norm_quantised import LIMITS
from wavecast.kernels.quantise import formats
from wavecast.kernels.quantise.formats import codes_of, fp8_of, integers_of, sizes_of, values_of
from wavecast.launch import gpu

KINDS: Final = {"fp8": "e4m3fn", "int8": "int8"}
"""Formats on the links."""
SCALED: Final = 128
"""Elements that share a scale."""
_ROWS: Final = 32
_LEAST = tl.constexpr(1e-12)
"""Largest magnitude that a block of zeros is taken to have."""


@triton.jit
def narrow(value, codes, scales, rows, mask, KIND: tl.constexpr, MOST: tl.constexpr,
           NATIVE: tl.constexpr):  # fmt: skip
    """Store float32 value[rows, columns] as codes and one scale per row."""
    offs = rows[:, None] * value.shape[1] + tl.arange(0, value.shape[1])[None, :]
    most = tl.max(sizes_of(value), axis=1).to(tl.float32, bitcast=True)
    most = tl.where(most < _LEAST, _LEAST, most)
    tl.store(scales + rows, most * (1.0 / MOST), mask=mask)
    scaled = value * (MOST / most)[:, None]
    if KIND == "int8":
        code = integers_of(scaled)
    else:
        code = codes_of(scaled, KIND, 3, 7, MOST, NATIVE)
    tl.store(codes + offs, code, mask=mask[:, None])


@triton.jit
def widened(codes, scales, rows, mask, COLUMNS: tl.constexpr, KIND: tl.constexpr):
    """float32 of the codes and scales of some rows."""
    offs = rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    code = tl.load(codes + offs, mask=mask[:, None], other=0)
    scale = tl.load(scales + rows, mask=mask, other=0.0)
    if KIND == "int8":
        value = code.to(tl.int8, bitcast=True).to(tl.float32)
    else:
        value = values_of(code, KIND)
    return value * scale[:, None]


@triton.jit(do_not_specialize=["rank", "epoch"])
def quantised_kernel(
    x, out, own_codes, own_scales, own_sums, own_sum_scales, own_signals, codes, scales, sums,
    sum_scales, signals, rank, epoch, count, part,
    KIND: tl.constexpr, MOST: tl.constexpr, NATIVE: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """out = the sum of x over ranks; a part has `part` rows of COLUMNS elements. Epochs `epoch` and
    `epoch` + 1."""
    first, step = tl.program_id(0) * ROWS, tl.num_programs(0) * ROWS
    columns = tl.arange(0, COLUMNS)[None, :]
    for peer in tl.static_range(WORLD):
        for start in range(first, part, step):
            rows = start + tl.arange(0, ROWS)
            at = peer * part + rows
            offs = at[:, None] * COLUMNS + columns
            value = tl.load(x + offs, mask=(rows < part)[:, None] & (offs < count), other=0)
            narrow(value.to(tl.float32), own_codes, own_scales, at, rows < part, KIND, MOST, NATIVE)
    exchange(signals, own_signals, rank, epoch, WORLD, WAVES, LANES)
    for start in range(first, part, step):
        rows = start + tl.arange(0, ROWS)
        at = rank * part + rows
        acc = widened(codes[0], scales[0], at, rows < part, COLUMNS, KIND)
        for peer in tl.static_range(1, WORLD):
            acc += widened(codes[peer], scales[peer], at, rows < part, COLUMNS, KIND)
        narrow(acc, own_sums, own_sum_scales, rows, rows < part, KIND, MOST, NATIVE)
    exchange(signals, own_signals, rank, epoch + 1, WORLD, WAVES, LANES)
    for peer in tl.static_range(WORLD):
        for start in range(first, part, step):
            rows = start + tl.arange(0, ROWS)
            value = widened(sums[peer], sum_scales[peer], rows, rows < part, COLUMNS, KIND)
            offs = (peer * part + rows)[:, None] * COLUMNS + columns
            mask = (rows < part)[:, None] & (offs < count)
            tl.store(out + offs, value.to(out.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["rank", "epoch", "eps"])
def reduce_norm_quantise_kernel(
    x, residual, weight, buffer, q, scales, total_out, own_signals, sources, signals, rank, epoch,
    rows, columns, blocks, eps,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, LIMIT: tl.constexpr, NATIVE: tl.constexpr,
    WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """total_out = residual + sum of x over ranks; q · scales = total_out / rms(total_out) · weight,
    with a scale per WIDTH columns."""
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        value = tl.load(x + row * columns + offs, mask=mask, other=0)
        tl.store(buffer + row * columns + offs, value, mask=mask)
    exchange(signals, own_signals, rank, epoch, WORLD, WAVES, LANES)
    factor = tl.load(weight + offs, mask=mask, other=0).to(tl.float32)
    block = tl.arange(0, BLOCK // WIDTH)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = row * columns + offs
        acc = total(sources, at, mask, tl.float32, "sum", WORLD)
        acc += tl.load(residual + at, mask=mask, other=0).to(tl.float32)
        tl.store(total_out + at, acc.to(total_out.dtype.element_ty), mask=mask)
        y = acc * tl.rsqrt(tl.sum(acc * acc, axis=0) / columns + eps) * factor
        y = tl.reshape(y, (BLOCK // WIDTH, WIDTH))
        most = tl.max(sizes_of(y), axis=1).to(tl.float32, bitcast=True)
        most = tl.where(most < _LEAST, _LEAST, most)
        tl.store(scales + row * blocks + block, most * (1.0 / LIMIT), mask=block < blocks)
        y = tl.reshape(y * (LIMIT / most)[:, None], (BLOCK,))
        if q.dtype.element_ty == tl.int8:
            code = integers_of(y).to(tl.int8, bitcast=True)
        else:
            code = fp8_of(y, q.dtype.element_ty, LIMIT, NATIVE)
        tl.store(q + at, code, mask=mask)


@rank_operator
def all_reduce_quantised(
    x: Tensor, group: RankGroup, kind: str = "fp8", out: Tensor | None = None
) -> Tensor:
    """`x` added over all ranks, sent in 8 bits: `kind` fp8 (e4m3) or int8, a scale per 128
    elements. fp32, fp16 or bf16 of any shape; all ranks get the same bits, with the error bound
    above. With `out`, a contiguous tensor of the shape and dtype of x, that is written.

    Raises ArgumentError.
    """
    name = "all_reduce_quantised"
    _check(name, x, group)
    one_of(name, "kind", kind, tuple(KINDS))
    if out is None:
        out = torch.empty_like(x)
    shape_is(name, "out", out, tuple(x.shape))
    dtype_in(name, "out", out, (x.dtype,))
    require(out.is_contiguous(), name, "out is not contiguous")
    group.begin(RankCall(name, x.numel(), x.dtype, f"kind={kind}"))
    # Of a part: codes of every rank's, their scales, and the same of the sums.
    bytes_of_row = (SCALED + 4) * (group.world + 1)
    most = group.half // bytes_of_row * SCALED * group.world
    require(most > 0, name, f"the buffers of the group have {group.half} bytes, too few")
    flat, into = x.view(-1), out.view(-1)
    for start in range(0, x.numel(), most):
        _launch_quantised(
            flat[start : start + most], into[start : start + most], group, KINDS[kind]
        )
    return out


def _launch_quantised(x: Tensor, out: Tensor, group: RankGroup, kind: str) -> None:
    world = group.world
    part = triton.cdiv(triton.cdiv(len(x), SCALED), world)
    buffers, epoch = group.launch(torch.uint8, 2)
    sizes = (world * part * SCALED, world * part * 4, part * SCALED, part * 4)
    pieces = [_cut(buffer, sizes) for buffer in buffers]
    codes, scales, sums, sum_scales = zip(*pieces, strict=True)
    rounding = formats.rounding(kind, gpu.launching())
    quantised_kernel[launches.grid_of(part, _ROWS)](
        x, out, *pieces[group.rank], group.signals[group.rank], codes, scales, sums, sum_scales,
        tuple(group.signals), group.rank, epoch, len(x), part,
        KIND=kind, MOST=rounding["MOST"], NATIVE=rounding["NATIVE"], ROWS=_ROWS, COLUMNS=SCALED,
        **launches.constants(group),
    )  # fmt: skip


def _cut(buffer: Tensor, sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Pieces of a buffer: codes (uint8) and scales (float32) in turn."""
    pieces: list[Tensor] = []
    start = 0
    for number, size in enumerate(sizes):
        piece = buffer[start : start + size]
        pieces.append(piece.view(torch.float32) if number % 2 else piece)
        start += size
    return tuple(pieces)


@rank_operator
def all_reduce_rms_norm_quantised(
    x: Tensor,
    residual: Tensor,
    weight: Tensor,
    group: RankGroup,
    dtype: torch.dtype = torch.float8_e4m3fn,
    width: int = 0,
    eps: float = 1e-6,
) -> tuple[Tensor, Tensor, Tensor]:
    """(q, scales, t): `all_reduce_rms_norm` quantised in the same kernel, q · scales is about it.

    x[…, n], residual of its shape and dtype, weight[n]. q[…, n] is of `dtype`: float8_e4m3fn,
    float8_e4m3fnuz, float8_e5m2 or int8; float32 scales[…, 1], or […, ⌈n / width⌉] with one per
    `width` columns (a power of two from 16): the largest magnitude over the largest value of
    `dtype`. t is the sum in the dtype of x. Nothing else is rounded. Raises ArgumentError, also
    for more elements than half of a buffer has.
    """
    name = "all_reduce_rms_norm_quantised"
    _check(name, x, group)
    shape_is(name, "residual", residual, tuple(x.shape))
    shape_is(name, "weight", weight, (x.shape[-1],))
    dtype_in(name, "residual", residual, (x.dtype,))
    dtype_in(name, "weight", weight, FLOATS)
    require(dtype in LIMITS, name, f"it does not quantise to {dtype}")
    power = width == 0 or (width >= 16 and width & (width - 1) == 0)
    require(power, name, f"width is {width}, expected 0 or a power of two from 16")
    most = group.half // x.element_size()
    require(x.numel() <= most, name, f"{x.numel()} elements; the buffers of the group have {most}")
    require(residual.is_contiguous(), name, "residual is not contiguous")
    group.begin(RankCall(name, x.numel(), x.dtype, f"width={width}"))
    columns = x.shape[-1]
    rows, block = x.numel() // columns, max(triton.next_power_of_2(columns), width)
    blocks = triton.cdiv(columns, width) if width else 1
    q, summed = torch.empty(x.shape, dtype=dtype, device=x.device), torch.empty_like(x)
    scales = torch.empty((*x.shape[:-1], blocks), dtype=torch.float32, device=x.device)
    sources, epoch = group.launch(x.dtype, 1)
    native: Any = ""
    if dtype in formats.FP8:
        native = formats.conversion(formats.FP8[dtype], gpu.launching())
    reduce_norm_quantise_kernel[(min(BLOCKS, rows),)](
        x, residual, weight, sources[group.rank], q, scales, summed, group.signals[group.rank],
        tuple(sources), tuple(group.signals), group.rank, epoch, rows, columns, blocks, float(eps),
        BLOCK=block, WIDTH=width or block, LIMIT=LIMITS[dtype], NATIVE=native,
        **launches.constants(group),
    )  # fmt: skip
    return q, scales, summed


def _check(name: str, x: Tensor, group: RankGroup) -> None:
    dtype_in(name, "x", x, FLOATS)
    group.accepts(name, x)


__all__ = ["KINDS", "SCALED", "all_reduce_quantised", "all_reduce_rms_norm_quantised"]
