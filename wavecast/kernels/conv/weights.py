"""The gradient of a convolution's filters: a matrix product whose reduction walks the positions.

Rows are filters, columns input channels, of one tap or (where those are few) of a filter's row of
taps. Positions are cut into parts, whose sums are added up in a fixed order.
"""

# pyright: reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.conv.combine import combine
from wavecast.kernels.conv.geometry import Geometry, by_axis, empty, formatted, strides
from wavecast.kernels.conv.layout import channels_last, in_rows
from wavecast.kernels.conv.ranking import (
    DTYPES,
    SIZES,
    best_splits,
    product_seconds,
    stages,
    tile_fits,
)
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import tile_of, xcds

_TRANSPOSED_BYTES = 32
"""Bytes a lane loads of an operand from which it has several positions of a channel and exchanges
them in its registers, for matrix instructions; from fewer it reads halves one by one."""
_SCATTERED = 1.5
"""How many times as long such loads take."""


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
    tile_row, tile_column = tile_of(tile, down, across, GROUP, 1)
    group = tile_column // (T * R * ACROSS * per_tap)
    tile_column = tile_column % (T * R * ACROSS * per_tap)
    tap = tile_column // per_tap
    tap_w = tap % ACROSS
    tap_h = tap // ACROSS % R
    tap_d = tap // (ACROSS * R)
    row = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_column % per_tap * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
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
    position = start * BLOCK_K + inner
    # The place of every position, moved on by BLOCK_K with carries: cheaper than divisions.
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
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(start, stop):
        position = step * BLOCK_K + inner
        if WIDE:
            position_wide, image_wide = position.to(tl.int64), image.to(tl.int64)
        else:
            position_wide, image_wide = position, image
        from_dy = row[:, None] + (position_wide * dy_position)[None, :]
        some = (position >= 0)[None, :]
        if not EVEN_K:
            some = some & (position < positions)[None, :]
        if not EVEN_M:
            some = some & (row < rows)[:, None]
        if EVEN_K and EVEN_M:
            dy = tl.load(dy_base + from_dy)
        else:
            dy = tl.load(dy_base + from_dy, mask=some, other=0.0)
        some = (position >= 0)[:, None]
        if FLAT:
            from_x = (position_wide * x_pixel)[:, None] + column[None, :]
        else:
            at_d, at_h, at_w = d * STRIDE_D, h * STRIDE_H, w * STRIDE_W
            place = image_wide * x_image + at_h * x_row + at_w * x_pixel
            if DEEP:
                place += at_d * x_plane
            from_x = place[:, None] + column[None, :]
            if PADDED:
                valid = (at_h + move_h >= 0) & (at_h + move_h < x_h)
                if DEEP:
                    valid = valid & (at_d + move_d >= 0) & (at_d + move_d < x_d)
                if not MERGED:
                    valid = valid & (at_w + move_w >= 0) & (at_w + move_w < x_w)
                some = valid[:, None]
        if not EVEN_K:
            some = some & (position < positions)[:, None]
        if not EVEN_N:
            some = some & (column < columns)[None, :]
        if EVEN_K and EVEN_N and (FLAT or not PADDED):
            x = tl.load(x_base + from_x)
        else:
            x = tl.load(x_base + from_x, mask=some, other=0.0)
        total = tl.dot(dy, x, total, input_precision="ieee")
        if not FLAT:
            w += step_w
            over = w >= y_w
            w = tl.where(over, w - y_w, w)
            h += step_h + over.to(tl.int32)
            over = h >= y_h
            h = tl.where(over, h - y_h, h)
            if DEEP:
                d += step_d + over.to(tl.int32)
                image += d // y_d
                d = d % y_d
            else:
                image += step_d + over.to(tl.int32)

    base = dw_ptr + split.to(tl.int64) * dw_split + tap * dw_tap
    to = ((group * rows + row) * dw_filter)[:, None] + column[None, :]
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    tl.store(base + to, total.to(dw_ptr.dtype.element_ty), mask=inside)


def gradient(dy: torch.Tensor, x: torch.Tensor, g: Geometry, last: bool) -> torch.Tensor:
    """The gradient of the filters of `g`, with channels innermost if `last`."""
    device = gpu.launching()
    columns, rows = g.channels // g.groups, g.filters // g.groups
    dy = channels_last(dy)
    merged = in_rows(x, g)
    x = merged.x if merged else channels_last(x)
    if merged:
        columns = merged.depth
    x_size = (*g.size[:2], x.shape[-1])
    pads = (*g.padding[:2], 0 if merged else g.padding[2])
    taps = math.prod(g.taps[: 2 if merged else 3])
    padded = any(pads)
    problem = {
        "rows": rows,
        "columns": columns,
        "positions": g.pixels,
        "taps": taps,
        "groups": g.groups,
        "dtype": DTYPES[x.dtype],
        "filter": "x".join(map(str, g.taps)),
        "stride": "x".join(map(str, g.stride)),
        "dilation": "x".join(map(str, g.dilation)),
        "dims": g.dims,
        "padded": padded,
        "pointwise": g.pointwise,
        "merged": merged.channels if merged else 0,
        "read": float(x.numel() + dy.numel()) * x.element_size(),
        "steps": triton.cdiv(g.pixels, 64),
    }
    shape = (g.filters, *g.weight_shape()[1:])
    if merged:
        shape = (g.filters, merged.channels, *shape[2:-1], merged.depth // merged.channels)
    count = math.prod(shape)
    splits = best_splits(WEIGHTS, problem, device, count)
    problem["splits"] = splits
    dw = empty(shape, True, x.dtype, x.device)
    out = dw
    if splits > 1:
        out = torch.empty((splits, count), dtype=torch.float32, device=x.device)

    def grid(settings: Settings) -> tuple[int, ...]:
        down = triton.cdiv(rows, settings["BLOCK_M"])
        across = problem["taps"] * triton.cdiv(columns, settings["BLOCK_N"])
        return (down * across * g.groups * splits,)

    launch(
        convolution_weight_kernel,
        grid,
        (
            *(dy, x, out, rows, columns, g.pixels, g.groups, g.filters),
            *strides(True, x.shape[1], x_size)[:4],
            *(columns * taps, columns, count),
            *(*x_size, *g.out, *pads),
        ),
        WEIGHTS,
        problem,
        **dict(zip("TRS", g.taps, strict=True)),
        **by_axis("STRIDE", g.stride),
        **by_axis("DILATION", g.dilation),
        DEEP=g.dims == 3,
        FLAT=g.pointwise,
        PADDED=padded,
        MERGED=merged.channels if merged else 0,
        ROW_STEP=math.gcd(rows, 256),
        COLUMN_STEP=math.gcd(columns, 256),
        POSITION_STEP=math.gcd(g.pixels, 256),
        SPLITS=splits,
        WIDE=checks.wide(dy, x),
        XCDS=xcds(device),
    )
    if splits > 1:
        combine(out, None, dw, "none")
    if merged:
        dw = dw[:, : g.channels, ..., : g.taps[2]]
    return formatted(dw, last)


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    most = 256 if device.target.startswith("gfx9") else 128
    return {
        "BLOCK_M": _sides(problem["rows"], most),
        "BLOCK_N": _sides(problem["columns"], most),
        "BLOCK_K": (16, 32) if problem["positions"] <= 32 else (32, 64),
        "GROUP": (8,),
        "num_warps": (1, 2, 4, 8),
        "num_stages": stages(device),
    }


def _sides(size: int, most: int) -> tuple[int, ...]:
    top = max(16, min(most, triton.next_power_of_2(size)))
    return tuple(n for n in (16, 32, 64, 128, 256) if top // 4 <= n <= top)


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    size = SIZES[problem["dtype"]]
    rows, columns, depth = settings["BLOCK_M"], settings["BLOCK_N"], settings["BLOCK_K"]
    return tile_fits(settings, device, size, rows, columns, depth)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    columns = settings["BLOCK_N"]
    size = SIZES[problem["dtype"]]
    lanes = settings["num_warps"] * (64 if device.target.startswith("gfx9") else 32)
    loaded = min(settings["BLOCK_M"], columns) * settings["BLOCK_K"] * size // lanes
    scattered = device.target.startswith("gfx") and size == 2 and loaded < _TRANSPOSED_BYTES
    across = triton.cdiv(problem["columns"], columns) * columns
    return product_seconds(
        device,
        problem["rows"],
        across * problem["taps"],
        problem["positions"],
        problem["dtype"],
        settings["BLOCK_M"],
        columns,
        settings["BLOCK_K"],
        problem["splits"],
        problem["groups"],
        settings["num_warps"],
        settings["num_stages"],
        problem["read"],
        problem["taps"],
        _SCATTERED if scattered else 1.0,
    )


WEIGHTS = Space(
    kernel="convolution_weight_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("positions",),
    ignored=("read", "steps"),
)

__all__ = ["WEIGHTS", "gradient"]
