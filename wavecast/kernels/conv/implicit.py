"""Convolutions as matrix products whose left operand is formed while it is loaded.

Rows are output positions, columns output channels, and the reduction walks the taps of the filter
with channels innermost. The gradient of the input is one as well, with the filter's taps reversed:
with a stride, each of its phases (positions modulo the stride) sees its own taps only.
"""

# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false
# pyright: reportPossiblyUnboundVariable=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false

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
from wavecast.kernels.conv.combine import activated, combine
from wavecast.kernels.conv.geometry import Geometry, by_axis, empty, formatted, is_last, strides
from wavecast.kernels.conv.layout import channels_first, channels_last, in_rows
from wavecast.kernels.conv.ranking import (
    DTYPES,
    SIZES,
    best_splits,
    product_seconds,
    stages,
    tile_fits,
)
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import store_tile, tile_of, xcds


@triton.jit
def first_tap(phase, pad, TAPS: tl.constexpr, STRIDE: tl.constexpr, DILATION: tl.constexpr):
    """The first tap that positions `phase` modulo the stride see; TAPS when there is none."""
    found = phase * 0 + TAPS
    for back in tl.static_range(TAPS):
        tap = TAPS - 1 - back
        found = tl.where((phase + pad - tap * DILATION) % STRIDE == 0, tap, found)
    return found


@triton.jit
def convolution_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, images, columns, depth, groups,
    x_image, x_plane, x_row, x_pixel, x_channel,
    weight_group, weight_column, weight_channel, weight_tap, y_image, y_pixel, y_channel, y_split,
    x_d, x_h, x_w, y_d, y_h, y_w, y_pixels, pad_d, pad_h, pad_w,
    T: tl.constexpr, R: tl.constexpr, S: tl.constexpr,
    STRIDE_D: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr,
    DILATION_D: tl.constexpr, DILATION_H: tl.constexpr, DILATION_W: tl.constexpr,
    STEP_D: tl.constexpr, STEP_H: tl.constexpr, STEP_W: tl.constexpr,
    DEEP: tl.constexpr, FLAT: tl.constexpr, PADDED: tl.constexpr, TRANSPOSED: tl.constexpr,
    MERGED: tl.constexpr, DEPTH_STEP: tl.constexpr, COLUMN_STEP: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, SPLITS: tl.constexpr, Y_LAST: tl.constexpr,
    WIDE: tl.constexpr, XCDS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """FLAT: output positions are input positions. DEEP: the third dimension is used. MERGED: the
    channels of a filter's row of taps, MERGED of each, are taken as one (`layout.Rows`). DEPTH_STEP
    and COLUMN_STEP divide the sizes they name."""
    if MERGED:  # so that the compiler knows what divides them
        x_channel = 1
        x_pixel = MERGED
        x_row = x_w * MERGED
        x_plane = x_h * x_row
        if WIDE:
            x_plane = x_plane.to(tl.int64)
        x_image = x_d * x_plane
    # The tiles of a part of the reduction read the same channels and filters: one die takes them
    # all. Groups and phases, which share lines of the input, count as columns.
    if TRANSPOSED and STRIDE_D * STRIDE_H * STRIDE_W > 1:
        most = images * tl.cdiv(y_d, STRIDE_D) * tl.cdiv(y_h, STRIDE_H) * tl.cdiv(y_w, STRIDE_W)
        phases = STRIDE_D * STRIDE_H * STRIDE_W
    else:
        most = images * y_pixels
        phases = 1
    down, across = tl.cdiv(most, BLOCK_M), tl.cdiv(columns, BLOCK_N)
    split, tile = tile_of(tl.program_id(0), SPLITS, down * across * groups * phases, 1, XCDS)
    tile_row, tile_column = tile_of(tile, down, across * groups * phases, GROUP, 1)
    group = tile_column // across % groups
    phase = tile_column // (across * groups)
    tile_column = tile_column % across
    # How input positions follow from output positions and taps: rows i, taps j,
    # i * ALONG + shift + j * step.
    if TRANSPOSED:
        phase_w = phase % STRIDE_W
        phase_h = phase // STRIDE_W % STRIDE_H
        phase_d = phase // (STRIDE_W * STRIDE_H)
        rows_d = (y_d - phase_d + STRIDE_D - 1) // STRIDE_D
        rows_h = (y_h - phase_h + STRIDE_H - 1) // STRIDE_H
        rows_w = (y_w - phase_w + STRIDE_W - 1) // STRIDE_W
        tap_d = first_tap(phase_d, pad_d, T, STRIDE_D, DILATION_D)
        tap_h = first_tap(phase_h, pad_h, R, STRIDE_H, DILATION_H)
        tap_w = first_tap(phase_w, pad_w, S, STRIDE_W, DILATION_W)
        taps_d = (T - tap_d + STEP_D - 1) // STEP_D
        taps_h = (R - tap_h + STEP_H - 1) // STEP_H
        taps_w = (S - tap_w + STEP_W - 1) // STEP_W
        shift_d = (phase_d + pad_d - tap_d * DILATION_D) // STRIDE_D
        shift_h = (phase_h + pad_h - tap_h * DILATION_H) // STRIDE_H
        shift_w = (phase_w + pad_w - tap_w * DILATION_W) // STRIDE_W
        ALONG_D: tl.constexpr = 1
        ALONG_H: tl.constexpr = 1
        ALONG_W: tl.constexpr = 1
        MOVE_D: tl.constexpr = -(STEP_D * DILATION_D // STRIDE_D)
        MOVE_H: tl.constexpr = -(STEP_H * DILATION_H // STRIDE_H)
        MOVE_W: tl.constexpr = -(STEP_W * DILATION_W // STRIDE_W)
    else:
        rows_d, rows_h, rows_w = y_d, y_h, y_w
        tap_d, tap_h, tap_w = 0, 0, 0
        taps_d, taps_h, taps_w = T, R, 1 if MERGED else S
        shift_d, shift_h, shift_w = -pad_d, -pad_h, -pad_w
        ALONG_D: tl.constexpr = STRIDE_D
        ALONG_H: tl.constexpr = STRIDE_H
        ALONG_W: tl.constexpr = STRIDE_W
        MOVE_D: tl.constexpr = DILATION_D
        MOVE_H: tl.constexpr = DILATION_H
        MOVE_W: tl.constexpr = DILATION_W
    # As one number the divisor is known to be divisible by 16 where it is.
    if TRANSPOSED and STRIDE_D * STRIDE_H * STRIDE_W > 1:
        pixels = rows_d * rows_h * rows_w
    else:
        pixels = y_pixels
    rows = images * pixels
    if tile_row * BLOCK_M >= rows:
        return

    row = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    position = row % rows
    image = position // pixels
    place = position % pixels
    if WIDE:
        image_wide = image.to(tl.int64)
    else:
        image_wide = image
    if FLAT:
        from_row = image_wide * x_image + place * x_pixel
        at_d, at_h, at_w = place, place, place
    else:
        at_w = place % rows_w * ALONG_W
        at_h = place // rows_w % rows_h * ALONG_H
        at_d = place // (rows_w * rows_h) * ALONG_D
        from_row = image_wide * x_image + at_h * x_row + at_w * x_pixel
        if DEEP:
            from_row += at_d * x_plane
    inner = tl.arange(0, BLOCK_K)
    column = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
    from_x = from_row[:, None] + (inner * x_channel)[None, :]
    from_weight = (inner * weight_channel)[:, None] + (column * weight_column)[None, :]
    x_base = x_ptr + group * depth * x_channel
    weight_base = weight_ptr + group * weight_group
    EVEN_K: tl.constexpr = DEPTH_STEP % BLOCK_K == 0
    EVEN_N: tl.constexpr = COLUMN_STEP % BLOCK_N == 0

    per_tap = tl.cdiv(depth, BLOCK_K)
    steps = taps_d * taps_h * taps_w * per_tap
    start = 0
    channel = 0
    d, h, w = 0, 0, 0
    if SPLITS > 1:
        part = tl.cdiv(steps, SPLITS)
        start = tl.minimum(split * part, steps)
        steps = tl.minimum(start + part, steps)
        channel = start % per_tap * BLOCK_K
        if not FLAT:
            tap = start // per_tap
            w = tap % taps_w
            h = tap // taps_w % taps_h
            d = tap // (taps_w * taps_h)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(start, steps):
        x_at = channel * x_channel
        weight_at = channel * weight_channel
        if WIDE:
            x_at = x_at.to(tl.int64)
        inside = (row >= 0)[:, None]
        if not FLAT:
            move_h = shift_h + h * MOVE_H
            x_at += move_h * x_row
            if not MERGED:
                move_w = shift_w + w * MOVE_W
                x_at += move_w * x_pixel
            weight_at += (
                ((tap_d + d * STEP_D) * R + tap_h + h * STEP_H) * (1 if MERGED else S)
                + tap_w + w * STEP_W
            ) * weight_tap  # fmt: skip
            if DEEP:
                x_at += (shift_d + d * MOVE_D) * x_plane
            if PADDED:
                valid = (at_h + move_h >= 0) & (at_h + move_h < x_h)
                if DEEP:
                    move_d = shift_d + d * MOVE_D
                    valid = valid & (at_d + move_d >= 0) & (at_d + move_d < x_d)
                if not MERGED:
                    valid = valid & (at_w + move_w >= 0) & (at_w + move_w < x_w)
                inside = valid[:, None]
        if MERGED:  # what follows the taps may be no number
            inside = inside & (channel + inner < S * MERGED)[None, :]
        elif not EVEN_K:
            inside = inside & (channel + inner < depth)[None, :]
        if EVEN_K and (FLAT or not PADDED) and not MERGED:
            a = tl.load(x_base + x_at + from_x)
        else:
            a = tl.load(x_base + x_at + from_x, mask=inside, other=0.0)
        if EVEN_K and EVEN_N:
            b = tl.load(weight_base + weight_at + from_weight)
        elif EVEN_K:
            b = tl.load(
                weight_base + weight_at + from_weight, mask=(column < columns)[None, :], other=0.0
            )
        else:
            some = (channel + inner < depth)[:, None] & (column < columns)[None, :]
            b = tl.load(weight_base + weight_at + from_weight, mask=some, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
        channel += BLOCK_K
        if not FLAT:
            over = channel >= depth
            channel = tl.where(over, 0, channel)
            w = tl.where(over, w + 1, w)
            over = w >= taps_w
            w = tl.where(over, 0, w)
            h = tl.where(over, h + 1, h)
            if DEEP:
                over = h >= taps_h
                h = tl.where(over, 0, h)
                d = tl.where(over, d + 1, d)

    if BIAS:
        bias = tl.load(bias_ptr + group * columns + column, mask=column < columns, other=0.0)
        total += bias.to(tl.float32)[None, :]
    total = activated(total, ACTIVATION)
    if TRANSPOSED and STRIDE_D * STRIDE_H * STRIDE_W > 1:
        to_w = place % rows_w * STRIDE_W + phase_w
        to_h = place // rows_w % rows_h * STRIDE_H + phase_h
        to_d = place // (rows_w * rows_h) * STRIDE_D + phase_d
        place = (to_d * y_h + to_h) * y_w + to_w
    to_row = image_wide * y_image + place * y_pixel
    to = to_row[:, None] + ((group * columns + column) * y_channel)[None, :]
    base = y_ptr
    if SPLITS > 1:
        base += split.to(tl.int64) * y_split
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    if Y_LAST:
        store_tile(base, to, total, inside)
    else:  # pixels are adjacent
        store_tile(base, tl.trans(to), tl.trans(total), tl.trans(inside))


def product(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    g: Geometry,
    activation: str,
    last: bool,
    *,
    transposed: bool = False,
) -> torch.Tensor:
    """The convolution `g`, or (`transposed`) the gradient of its input from that of its output;
    with channels innermost if `last`. Neither side is empty."""
    device = gpu.launching()
    per_group, per_filter = g.channels // g.groups, g.filters // g.groups
    depth, columns = (per_filter, per_group) if transposed else (per_group, per_filter)
    x_size, y_size = (g.out, g.size) if transposed else (g.size, g.out)
    y_channels = g.channels if transposed else g.filters
    phases = math.prod(g.stride) if transposed else 1
    merged = None if transposed else in_rows(x, g)
    pads = g.padding
    if merged is not None:
        x, depth = merged.x, merged.depth
        x_size, pads = (*g.size[:2], x.shape[-1]), (*pads[:2], 0)
        weight = merged.filled(weight)
    x_last = merged is not None or is_last(x)
    if not x_last and not (g.pointwise and math.prod(x_size) % 16 == 0):
        x, x_last = channels_last(x), True
    x = x if x_last else x.contiguous()
    weight = formatted(weight, True)
    taps, width = math.prod(weight.shape[2:]), weight.shape[1]
    seen = tuple(t // min(t, s) for t, s in zip(g.taps, g.stride, strict=True))
    pixels = g.batch * math.prod(
        triton.cdiv(n, s) if transposed else n for n, s in zip(y_size, g.stride, strict=True)
    )
    padded = transposed or any(pads)
    # Rows of an image that vectors do not divide, or every second of, are not stored directly.
    direct = last or (math.prod(y_size) % 16 == 0 and phases == 1)
    y_last = last or not direct
    problem = {
        "pixels": pixels,
        "columns": columns,
        "depth": depth,
        "taps": math.prod(seen) if transposed else math.prod(g.taps[: 2 if merged else 3]),
        "groups": g.groups,
        "phases": phases,
        "dtype": DTYPES[x.dtype],
        "filter": "x".join(map(str, g.taps)),
        "stride": "x".join(map(str, g.stride)),
        "dilation": "x".join(map(str, g.dilation)),
        "dims": g.dims,
        "padded": padded,
        "transposed": transposed,
        "pointwise": g.pointwise,
        "merged": merged.channels if merged else 0,
        "x_last": x_last,
        "y_last": y_last,
        "bias": bias is not None,
        "activation": activation,
        "read": float(x.numel() + weight.numel()) * x.element_size(),
    }
    y_shape = (g.batch, y_channels, *y_size[3 - g.dims :])
    problem["steps"] = problem["taps"] * triton.cdiv(depth, 64)
    count = math.prod(y_shape)
    splits = best_splits(FORWARD, problem, device, count)
    problem["splits"] = splits
    if splits > 1:
        problem["y_last"] = y_last = True
    y = empty(y_shape, y_last, x.dtype, x.device)
    out = y
    if splits > 1:
        out = torch.empty((splits, count), dtype=torch.float32, device=x.device)
    of_x = strides(x_last, x.shape[1], x_size)
    of_y = strides(y_last, y_channels, y_size)
    by_column, by_channel = (1, taps * width) if transposed else (taps * width, 1)
    wide = checks.wide(x, y) or y.numel() * splits >= 2**31
    images, y_pixels = g.batch, math.prod(y_size)
    if g.pointwise and x_last and y_last and not wide:  # all images are one
        images, y_pixels = 1, pixels
    steps = (1, 1, 1)
    if transposed:
        steps = tuple(s // math.gcd(s, d) for s, d in zip(g.stride, g.dilation, strict=True))

    def grid(settings: Settings) -> tuple[int, ...]:
        down = triton.cdiv(pixels, settings["BLOCK_M"])
        across = triton.cdiv(columns, settings["BLOCK_N"])
        return (down * across * g.groups * phases * splits,)

    launch(
        convolution_kernel,
        grid,
        (
            *(x, weight, bias if splits == 1 else None, out, images, columns, depth, g.groups),
            *of_x,
            *(per_filter * taps * width, by_column, by_channel),
            depth if merged else width,
            *(of_y[0], of_y[3], of_y[4], y.numel()),
            *(*x_size, *y_size, y_pixels, *pads),
        ),
        FORWARD,
        problem,
        **dict(zip("TRS", g.taps, strict=True)),
        **by_axis("STRIDE", g.stride),
        **by_axis("DILATION", g.dilation),
        **by_axis("STEP", steps),
        DEEP=g.dims == 3,
        FLAT=g.pointwise,
        PADDED=padded,
        TRANSPOSED=transposed,
        MERGED=merged.channels if merged else 0,
        DEPTH_STEP=math.gcd(depth, 256),
        COLUMN_STEP=math.gcd(columns, 256),
        BIAS=bias is not None and splits == 1,
        ACTIVATION=activation if splits == 1 else "none",
        SPLITS=splits,
        Y_LAST=y_last,
        WIDE=wide,
        XCDS=xcds(device),
    )
    if splits > 1:
        combine(out, bias, y, activation)
    return y if last == y_last else channels_first(y)


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    amd = device.target.startswith("gfx9")
    size = SIZES[problem["dtype"]]
    return {
        "BLOCK_M": _sides(problem["pixels"], 256 if amd else 128),
        "BLOCK_N": _sides(problem["columns"], 256 if amd else 128),
        "BLOCK_K": _depths(problem["depth"], size),
        "GROUP": (8,),
        "num_warps": (1, 2, 4, 8),
        "num_stages": stages(device),
    }


def _sides(size: int, most: int) -> tuple[int, ...]:
    top = max(16, min(most, triton.next_power_of_2(size)))
    return tuple(n for n in (16, 32, 64, 128, 256) if top // 8 <= n <= top)


def _depths(size: int, element: int) -> tuple[int, ...]:
    top = max(16, min(128, triton.next_power_of_2(size)))
    return tuple(n for n in (16, 32, 64, 128) if top // 2 <= n <= top and n * element <= 256)


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    size = SIZES[problem["dtype"]]
    rows, columns, depth = settings["BLOCK_M"], settings["BLOCK_N"], settings["BLOCK_K"]
    return tile_fits(settings, device, size, rows, columns, depth)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    depth = settings["BLOCK_K"]
    inner = triton.cdiv(problem["depth"], depth) * depth
    element = SIZES[problem["dtype"]]
    whole = problem["x_last"] and problem["depth"] * element % 16 == 0
    return product_seconds(
        device,
        problem["pixels"],
        problem["columns"],
        inner * problem["taps"],
        problem["dtype"],
        settings["BLOCK_M"],
        settings["BLOCK_N"],
        depth,
        problem["splits"],
        problem["groups"] * problem["phases"],
        settings["num_warps"],
        settings["num_stages"],
        problem["read"],
        problem["taps"],
        1.0 if whole else 1.5,
    )


FORWARD = Space(
    kernel="convolution_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("pixels",),
    ignored=("read", "steps"),
)

__all__ = ["FORWARD", "product"]
