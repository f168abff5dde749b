"""The gradient of a convolution's filters: a matrix product whose reduction walks the positions.

Rows are filters, columns input channels, of one tap or (where those are few) of a filter's row of
taps. Positions are split into parts, whose sums are added up in a fixed order.
"""

# pyright: reportAssignmentType=false, reportArgumentType=false

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.arch import Device
from wavecast.kernels import choice
from wavecast.kernels.conv import tiling
from wavecast.kernels.conv.combine import combine
from wavecast.kernels.conv.geometry import Geometry, empty, strides, to_memory_format
from wavecast.kernels.conv.layout import channels_last, in_rows
from wavecast.kernels.references import short_name
from wavecast.kernels.spec import Axes, KernelSpec, Problem, Settings
from wavecast.kernels.tiles import tile_of
from wavecast.launch import gpu
from wavecast.perfmodel.ranking import ImplicitProduct

_EXCHANGED_BYTES = 32
"""Bytes a lane of AMD's GPUs loads of a 16-bit operand from which it has several positions of a
channel and exchanges them in its registers, for matrix instructions; from fewer it reads halves one
by one."""


@triton.jit
def convolution_weight_kernel(
    dy_ptr, x_ptr, dw_ptr, rows, columns, positions, groups, dy_position,
    x_image, x_plane, x_row, x_pixel, dw_filter, dw_tap, dw_split,
    x_d, x_h, x_w, y_d, y_h, y_w, pad_d, pad_h, pad_w,
    T: tl.constexpr, R: tl.constexpr, S: tl.constexpr,
    STRIDE_D: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr,
    DILATION_D: tl.constexpr, DILATION_H: tl.constexpr, DILATION_W: tl.constexpr,
    DEEP: tl.constexpr, FLAT: tl.constexpr, PADDED: tl.constexpr, MERGED: tl.constexpr,
    ROW_STEP: tl.constexpr, COLUMN_STEP: tl.constexpr, POSITION_STEP: tl.constexpr,
    SPLITS: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Channels of `dy_ptr` and `x_ptr` are innermost. `rows` filters of a group, `columns` channels
    of a tap; flags as `implicit.convolution_kernel` has them."""
    ACROSS: tl.constexpr = 1 if MERGED else S
    if MERGED:  # so that the compiler knows what divides them
        x_pixel = MERGED
        x_row = x_w * MERGED
        x_plane = x_h * x_row
        if WIDE:
            x_plane = x_plane.to(tl.int64)
        x_image = x_d * x_plane
    per_tap = tl.cdiv(columns, BLOCK_N)
    down, across = tl.cdiv(rows, BLOCK_M), T * R * ACROSS * per_tap * groups
    # The tiles of a part read the same positions: one die takes them all, one after the other.
    split, tile = tile_of(tl.program_id(0), SPLITS, down * across, 1, XCDS)
    pid_m, pid_n = tile_of(tile, down, across, GROUP, 1)
    group = pid_n // (T * R * ACROSS * per_tap)
    pid_n = pid_n % (T * R * ACROSS * per_tap)
    tap = pid_n // per_tap
    tap_w = tap % ACROSS
    tap_h = tap // ACROSS % R
    tap_d = tap // (ACROSS * R)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n % per_tap * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    move_d = tap_d * DILATION_D - pad_d
    move_h = tap_h * DILATION_H - pad_h
    move_w = tap_w * DILATION_W - pad_w
    x_base = x_ptr + group * columns
    if not FLAT:
        at = move_h * x_row + move_w * x_pixel
        if DEEP:
            at += move_d * x_plane
        x_base += at
    dy_base = dy_ptr + group * rows

    steps = tl.cdiv(positions, BLOCK_K)
    part = tl.cdiv(steps, SPLITS)
    start = tl.minimum(split * part, steps)
    stop = tl.minimum(start + part, steps)
    position = start * BLOCK_K + offs_k
    # The coordinates of every position, moved on by BLOCK_K with carries: cheaper than divisions.
    w = position % y_w
    h = position // y_w % y_h
    d = position // (y_w * y_h)
    if DEEP:
        image = d // y_d
        d = d % y_d
    else:
        image = d
        d = d * 0
    step_w = BLOCK_K % y_w
    step_h = BLOCK_K // y_w % y_h
    step_d = BLOCK_K // (y_w * y_h)
    EVEN_M: tl.constexpr = ROW_STEP % BLOCK_M == 0
    EVEN_N: tl.constexpr = COLUMN_STEP % BLOCK_N == 0
    EVEN_K: tl.constexpr = POSITION_STEP % BLOCK_K == 0
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(start, stop):
        position = step * BLOCK_K + offs_k
        if WIDE:
            position_wide, image_wide = position.to(tl.int64), image.to(tl.int64)
        else:
            position_wide, image_wide = position, image
        dy_offs = offs_m[:, None] + (position_wide * dy_position)[None, :]
        mask = (position >= 0)[None, :]
        if not EVEN_K:
            mask = mask & (position < positions)[None, :]
        if not EVEN_M:
            mask = mask & (offs_m < rows)[:, None]
        if EVEN_K and EVEN_M:
            dy = tl.load(dy_base + dy_offs)
        else:
            dy = tl.load(dy_base + dy_offs, mask=mask, other=0.0)
        mask = (position >= 0)[:, None]
        if FLAT:
            x_offs = (position_wide * x_pixel)[:, None] + offs_n[None, :]
        else:
            at_d, at_h, at_w = d * STRIDE_D, h * STRIDE_H, w * STRIDE_W
            pixel_offs = image_wide * x_image + at_h * x_row + at_w * x_pixel
            if DEEP:
                pixel_offs += at_d * x_plane
            x_offs = pixel_offs[:, None] + offs_n[None, :]
            if PADDED:
                valid = (at_h + move_h >= 0) & (at_h + move_h < x_h)
                if DEEP:
                    valid = valid & (at_d + move_d >= 0) & (at_d + move_d < x_d)
                if not MERGED:
                    valid = valid & (at_w + move_w >= 0) & (at_w + move_w < x_w)
                mask = valid[:, None]
        if not EVEN_K:
            mask = mask & (position < positions)[:, None]
        if not EVEN_N:
            mask = mask & (offs_n < columns)[None, :]
        if EVEN_K and EVEN_N and (FLAT or not PADDED):
            x = tl.load(x_base + x_offs)
        else:
            x = tl.load(x_base + x_offs, mask=mask, other=0.0)
        acc = tl.dot(dy, x, acc, input_precision="ieee")
        if not FLAT:
            w += step_w
            carry = w >= y_w
            w = tl.where(carry, w - y_w, w)
            h += step_h + carry.to(tl.int32)
            carry = h >= y_h
            h = tl.where(carry, h - y_h, h)
            if DEEP:
                d += step_d + carry.to(tl.int32)
                image += d // y_d
                d = d % y_d
            else:
                image += step_d + carry.to(tl.int32)

    out_ptr = dw_ptr + split.to(tl.int64) * dw_split + tap * dw_tap
    dw_offs = ((group * rows + offs_m) * dw_filter)[:, None] + offs_n[None, :]
    out_mask = (offs_m < rows)[:, None] & (offs_n < columns)[None, :]
    tl.store(out_ptr + dw_offs, acc.to(dw_ptr.dtype.element_ty), mask=out_mask)


def gradient(dy: Tensor, x: Tensor, g: Geometry, last: bool) -> Tensor:
    """The gradient of the filters of `g`, with channels innermost if `last`."""
    columns, rows = g.channels // g.groups, g.filters // g.groups
    dy = channels_last(dy)
    merged = in_rows(x, g)
    x = merged.x if merged else channels_last(x)
    if merged:
        columns = merged.depth
    x_size = (*g.size[:2], x.shape[-1])
    pads = (*g.padding[:2], 0 if merged else g.padding[2])
    taps = math.prod(g.taps[: 2 if merged else 3])
    problem = {
        "rows": rows,
        "columns": columns,
        "positions": g.pixels,
        "taps": taps,
        "groups": g.groups,
        "dtype": short_name(x.dtype),
        **g.described,
        "dims": g.dims,
        "padded": any(pads),
        "pointwise": g.pointwise,
        "merged": merged.channels if merged else 0,
        "read": float(x.numel() + dy.numel()) * x.element_size(),
        "steps": triton.cdiv(g.pixels, 64),
    }
    shape = (g.filters, *g.weight_shape()[1:])
    if merged:
        shape = (g.filters, merged.channels, *shape[2:-1], merged.depth // merged.channels)
    count = math.prod(shape)
    splits = problem["splits"] = tiling.best_splits(WEIGHTS, problem, gpu.launching(), count)
    dw = out = empty(shape, True, x.dtype, x.device)
    if splits > 1:
        out = torch.empty((splits, count), dtype=torch.float32, device=x.device)
    choice.run(
        WEIGHTS, problem, dy=dy, x=x, dw=out, dy_position=g.filters,
        **strides("x", True, x.shape[1], x_size, "image plane row pixel"), dw_filter=columns * taps,
        dw_tap=columns, dw_split=count, **g.arguments(x_size, g.out, pads), DEEP=g.dims == 3,
        FLAT=g.pointwise, ROW_STEP=math.gcd(rows, 256), COLUMN_STEP=math.gcd(columns, 256),
        POSITION_STEP=math.gcd(g.pixels, 256),
    )  # fmt: skip
    if splits > 1:
        combine(out, None, dw, "none")
    if merged:
        dw = dw[:, : g.channels, ..., : g.taps[2]]
    return to_memory_format(dw, last)


def _axes(problem: Problem, device: Device) -> Axes:
    depths = (16, 32) if problem["positions"] <= 32 else (32, 64)
    return tiling.axes(problem["rows"], problem["columns"], depths, 3, device)


def _demand(problem: Problem, settings: Settings, device: Device) -> ImplicitProduct:
    columns, size = settings["BLOCK_N"], tiling.element_size(problem)
    lanes = settings["num_warps"] * device.wave_lanes
    loaded = min(settings["BLOCK_M"], columns) * settings["BLOCK_K"] * size // lanes
    return ImplicitProduct(
        m=problem["rows"],
        n=triton.cdiv(problem["columns"], columns) * columns * problem["taps"],
        k=problem["positions"],
        batch=problem["groups"],
        narrow_loads=device.vendor == "amd" and size == 2 and loaded < _EXCHANGED_BYTES,
        **tiling.tile_fields(problem, settings),
    )


WEIGHTS = KernelSpec(
    function=convolution_weight_kernel,
    grid="cdiv(rows, BLOCK_M) * taps * cdiv(columns, BLOCK_N) * groups * splits",
    axes=_axes,
    fits=tiling.fits,
    demand=_demand,
    rounded=("positions",),
    ignored=("read", "steps"),
)
