"""Depthwise convolutions, whose groups have one input channel: a few products per element loaded.

A tile is positions by channels; memory decides, in either memory format.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.conv.combine import activated, combine
from wavecast.kernels.conv.geometry import Geometry, empty, formatted, is_last, strides
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import tile_of, xcds

_PARTS_PER_UNIT = 8
"""Workgroups of the weight's gradient per compute unit."""
_LEAST_POSITIONS = 256
"""Positions each of them has at least."""


@triton.jit
def depthwise_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, images, channels,
    x_image, x_plane, x_row, x_pixel, x_channel,
    y_image, y_plane, y_row, y_pixel, y_channel,
    x_d, x_h, x_w, y_d, y_h, y_w, pad_d, pad_h, pad_w,
    T: tl.constexpr, R: tl.constexpr, S: tl.constexpr,
    STRIDE_D: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr,
    DILATION_D: tl.constexpr, DILATION_H: tl.constexpr, DILATION_W: tl.constexpr,
    MULTIPLE: tl.constexpr, TRANSPOSED: tl.constexpr, LAST: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A tile is ROWS rows of an image by BLOCK of a row's elements: of all its channels if LAST,
    else of one channel. MULTIPLE filters per channel; `channels` are those of `y_ptr`.
    `weight_ptr` is [T * R * S, filters]."""
    tiles_h = tl.cdiv(y_h, ROWS)
    if LAST:
        outer = images * y_d
        across = tl.cdiv(y_w * channels, BLOCK)
    else:
        outer = images * channels * y_d
        across = tl.cdiv(y_w, BLOCK)
    tile, part = tile_of(tl.program_id(0), outer * tiles_h, across, 1, XCDS)
    h = (tile % tiles_h * ROWS + tl.arange(0, ROWS))[:, None]
    plane = tile // tiles_h
    d = plane % y_d
    place = part * BLOCK + tl.arange(0, BLOCK)
    if LAST:
        image = plane // y_d
        w = (place // channels)[None, :]
        channel = place % channels
    else:
        image = plane // y_d // channels
        w = place[None, :]
        channel = plane // y_d % channels
    if WIDE:
        image = image.to(tl.int64)
    filters = channels * MULTIPLE if TRANSPOSED else channels
    inside = (h < y_h) & (w < y_w)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for tap in tl.static_range(T * R * S):
        tap_w = tap % S
        tap_h = tap // S % R
        tap_d = tap // (S * R)
        if TRANSPOSED:
            over_w = w + pad_w - tap_w * DILATION_W
            over_h = h + pad_h - tap_h * DILATION_H
            over_d = d + pad_d - tap_d * DILATION_D
            from_w, from_h, from_d = over_w // STRIDE_W, over_h // STRIDE_H, over_d // STRIDE_D
            valid = inside & (over_w >= 0) & (over_h >= 0) & (over_d >= 0)
            if STRIDE_W > 1:
                valid = valid & (over_w % STRIDE_W == 0)
            if STRIDE_H > 1:
                valid = valid & (over_h % STRIDE_H == 0)
            if STRIDE_D > 1:
                valid = valid & (over_d % STRIDE_D == 0)
        else:
            from_w = w * STRIDE_W - pad_w + tap_w * DILATION_W
            from_h = h * STRIDE_H - pad_h + tap_h * DILATION_H
            from_d = d * STRIDE_D - pad_d + tap_d * DILATION_D
            valid = inside & (from_w >= 0) & (from_h >= 0) & (from_d >= 0)
        valid = valid & (from_w < x_w) & (from_h < x_h) & (from_d < x_d)
        x_base = x_ptr + image * x_image + from_d * x_plane
        for turn in tl.static_range(MULTIPLE if TRANSPOSED else 1):
            if TRANSPOSED:
                of_x, of_weight = channel * MULTIPLE + turn, channel * MULTIPLE + turn
            else:
                of_x, of_weight = channel // MULTIPLE, channel
            weight = tl.load(weight_ptr + tap * filters + of_weight).to(tl.float32)
            if LAST:
                from_x = from_h * x_row + (from_w * x_pixel + (of_x * x_channel)[None, :])
                x = tl.load(x_base + from_x, mask=valid, other=0.0).to(tl.float32)
                total += x * weight[None, :]
            else:
                from_x = from_h * x_row + from_w * x_pixel
                x = tl.load(x_base + of_x * x_channel + from_x, mask=valid, other=0.0)
                total += x.to(tl.float32) * weight
    if BIAS:
        bias = tl.load(bias_ptr + channel).to(tl.float32)
        if LAST:
            total += bias[None, :]
        else:
            total += bias
    total = activated(total, ACTIVATION)
    y_base = y_ptr + image * y_image + d * y_plane
    if LAST:
        to = h * y_row + (w * y_pixel + (channel * y_channel)[None, :])
    else:
        y_base += channel * y_channel
        to = h * y_row + w * y_pixel
    tl.store(y_base + to, total.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def depthwise_weight_kernel(
    dy_ptr, x_ptr, part_ptr, positions, filters, part,
    x_image, x_plane, x_row, x_pixel, x_channel, dy_image, dy_pixel, dy_channel,
    x_d, x_h, x_w, y_d, y_h, y_w, pad_d, pad_h, pad_w,
    T: tl.constexpr, R: tl.constexpr, S: tl.constexpr,
    STRIDE_D: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr,
    DILATION_D: tl.constexpr, DILATION_H: tl.constexpr, DILATION_W: tl.constexpr,
    MULTIPLE: tl.constexpr, WIDE: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Sums over `part` positions of one tap, to [parts, filters, T * R * S]."""
    tap = tl.program_id(1)
    split = tl.program_id(2)
    tap_w = tap % S * DILATION_W - pad_w
    tap_h = tap // S % R * DILATION_H - pad_h
    tap_d = tap // (S * R) * DILATION_D - pad_d
    channel = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    known = channel < filters
    pixels = y_d * y_h * y_w
    first = split * part
    last = tl.minimum(first + part, positions)
    total = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
    for start in range(first, last, BLOCK_P):
        row = start + tl.arange(0, BLOCK_P)
        image = row // pixels
        place = row % pixels
        if WIDE:
            image = image.to(tl.int64)
        w = place % y_w * STRIDE_W + tap_w
        h = place // y_w % y_h * STRIDE_H + tap_h
        d = place // (y_w * y_h) * STRIDE_D + tap_d
        valid = (row < last) & (w >= 0) & (w < x_w) & (h >= 0) & (h < x_h) & (d >= 0) & (d < x_d)
        some = valid[:, None] & known[None, :]
        from_x = image * x_image + d * x_plane + h * x_row + w * x_pixel
        x = tl.load(
            x_ptr + from_x[:, None] + (channel // MULTIPLE * x_channel)[None, :],
            mask=some,
            other=0.0,
        )
        from_dy = image * dy_image + place * dy_pixel
        dy = tl.load(
            dy_ptr + from_dy[:, None] + (channel * dy_channel)[None, :], mask=some, other=0.0
        )
        total += x.to(tl.float32) * dy.to(tl.float32)
    taps: tl.constexpr = T * R * S
    to = part_ptr + split.to(tl.int64) * filters * taps + channel * taps + tap
    tl.store(to, tl.sum(total, axis=0), mask=known)


def convolve(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    g: Geometry,
    activation: str,
    last: bool,
    *,
    transposed: bool = False,
) -> torch.Tensor:
    """The depthwise convolution `g`, or (`transposed`) the gradient of its input from that of its
    output; with channels innermost if `last`. Neither side is empty."""
    device = gpu.launching()
    x_size, y_size = (g.out, g.size) if transposed else (g.size, g.out)
    channels = g.channels if transposed else g.filters
    x, x_last = formatted(x, last), last
    y = empty((g.batch, channels, *y_size[3 - g.dims :]), last, x.dtype, x.device)
    taps = math.prod(g.taps)
    by_tap = weight.reshape(g.filters, taps).t().contiguous()
    problem = {
        "positions": g.batch * math.prod(y_size),
        "channels": channels,
        "multiple": g.filters // g.channels,
        "filter": "x".join(map(str, g.taps)),
        "taps": taps,
        "stride": "x".join(map(str, g.stride)),
        "dilation": "x".join(map(str, g.dilation)),
        "bytes": x.element_size(),
        "transposed": transposed,
        "x_last": x_last,
        "y_last": last,
        "bias": bias is not None,
        "activation": activation,
        "read": float(x.numel() * x.element_size()),
    }

    rows, width = y_size[1], y_size[2] * (channels if last else 1)
    outer = g.batch * y_size[0] * (1 if last else channels)
    problem |= {"rows": rows, "width": width, "outer": outer}

    def grid(settings: Settings) -> tuple[int, ...]:
        down = outer * triton.cdiv(rows, settings["ROWS"])
        return (down * triton.cdiv(width, settings["BLOCK"]),)

    of_x = strides(x_last, x.shape[1], x_size)
    of_y = strides(last, channels, y_size)
    launch(
        depthwise_kernel,
        grid,
        (
            *(x, by_tap, bias, y, g.batch, channels, *of_x),
            *(*of_y, *x_size, *y_size, *g.padding),
        ),
        DEPTHWISE,
        problem,
        **_constants(g),
        TRANSPOSED=transposed,
        LAST=last,
        BIAS=bias is not None,
        ACTIVATION=activation,
        WIDE=checks.wide(x, y),
        XCDS=xcds(device),
    )
    return y


def weight_gradient(dy: torch.Tensor, x: torch.Tensor, g: Geometry, last: bool) -> torch.Tensor:
    """The gradient of the filters of the depthwise convolution `g`, with channels innermost if
    `last`."""
    device = gpu.launching()
    x_last, dy_last = is_last(x), is_last(dy)
    x = x if x_last else x.contiguous()
    dy = dy if dy_last else dy.contiguous()
    taps = math.prod(g.taps)
    wanted = triton.cdiv(_PARTS_PER_UNIT * device.compute_units, taps * triton.cdiv(g.filters, 64))
    splits = max(1, min(wanted, triton.cdiv(g.pixels, _LEAST_POSITIONS)))
    part = triton.cdiv(g.pixels, splits)
    splits = triton.cdiv(g.pixels, part)
    parts = torch.empty((splits, g.filters * taps), dtype=torch.float32, device=x.device)
    problem = {
        "positions": g.pixels,
        "part": part,
        "splits": splits,
        "channels": g.filters,
        "multiple": g.filters // g.channels,
        "filter": "x".join(map(str, g.taps)),
        "taps": taps,
        "stride": "x".join(map(str, g.stride)),
        "dilation": "x".join(map(str, g.dilation)),
        "bytes": x.element_size(),
        "x_last": x_last,
        "y_last": dy_last,
    }
    of_x = strides(x_last, g.channels, g.size)
    of_dy = strides(dy_last, g.filters, g.out)
    launch(
        depthwise_weight_kernel,
        lambda settings: (triton.cdiv(g.filters, settings["BLOCK_C"]), taps, splits),
        (
            *(dy, x, parts, g.pixels, g.filters, part, *of_x),
            *(of_dy[0], of_dy[3], of_dy[4], *g.size, *g.out, *g.padding),
        ),
        DEPTHWISE_WEIGHT,
        problem,
        **_constants(g),
        WIDE=checks.wide(x, dy),
    )
    dw = empty((g.filters, 1, *g.taps[3 - g.dims :]), last, x.dtype, x.device)
    combine(parts, None, dw, "none")
    return dw


def _constants(g: Geometry) -> dict[str, int]:
    found = {"T": g.taps[0], "R": g.taps[1], "S": g.taps[2], "MULTIPLE": g.filters // g.channels}
    for name, values in (("STRIDE", g.stride), ("DILATION", g.dilation)):
        found |= dict(zip((f"{name}_D", f"{name}_H", f"{name}_W"), values, strict=True))
    return found


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    width = triton.next_power_of_2(problem["width"])
    rows = triton.next_power_of_2(problem["rows"])
    return {
        "ROWS": tuple(n for n in (1, 2, 4, 8, 16) if n <= rows),
        "BLOCK": tuple(n for n in (64, 128, 256, 512, 1024, 2048) if n <= width) or (width,),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    lanes = 64 if device.target.startswith("gfx9") else 32
    each = settings["ROWS"] * settings["BLOCK"] / (settings["num_warps"] * lanes)
    return each <= 16 and (each >= 1 or settings["num_warps"] == 1)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    """Every tile fetches what its filters reach beyond it; within, the vector cache has it."""
    rows, columns = settings["ROWS"], settings["BLOCK"]
    down = problem["outer"] * triton.cdiv(problem["rows"], rows)
    across = triton.cdiv(problem["width"], columns)
    vector = 16 // problem["bytes"] if problem["y_last"] else 1
    _, high, wide = (int(n) for n in problem["filter"].split("x"))
    pixel = problem["channels"] if problem["y_last"] else 1
    again = (1 + (high - 1) / rows) * (1 + (wide - 1) * pixel / columns / 2)
    return estimates.streaming(
        device,
        settings,
        workgroups=down * across,
        read=problem["read"] * again,
        written=problem["positions"] * problem["channels"] * problem["bytes"],
        elements=max(rows * columns, settings["num_warps"] * 64),
        operations=problem["taps"] * (2.0 + 12.0 / vector) + 20.0 / vector,
        held=3.0,
    )


def _weight_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = settings["BLOCK_P"], settings["BLOCK_C"]
    across = triton.cdiv(problem["channels"], columns)
    size = problem["positions"] * problem["channels"] * problem["bytes"]
    vector = max(1, min(columns, 16 // problem["bytes"]))
    turns = triton.cdiv(problem["part"], rows)
    return estimates.streaming(
        device,
        settings,
        workgroups=across * problem["taps"] * problem["splits"],
        read=2.0 * size,
        written=0.0,
        elements=rows * columns,
        operations=turns * (3.0 + 20.0 / vector) + 10.0,
        held=3.0,
    )


def _weight_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    wide = min(256, triton.next_power_of_2(problem["channels"]))
    last = problem["x_last"] or problem["y_last"]
    channels = tuple(n for n in (64, 128, 256) if n <= wide) or (wide,)
    return {
        "BLOCK_P": (8, 16, 32, 64, 128) if last else (256, 512, 1024),
        "BLOCK_C": channels if last else (1,),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    }


def _weight_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    lanes = 64 if device.target.startswith("gfx9") else 32
    each = settings["BLOCK_P"] * settings["BLOCK_C"] / (settings["num_warps"] * lanes)
    return 1 <= each <= 32


DEPTHWISE = Space(
    kernel="depthwise_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("positions", "outer"),
    ignored=("read",),
)
DEPTHWISE_WEIGHT = Space(
    kernel="depthwise_weight_kernel",
    axes=_weight_axes,
    fits=_weight_fits,
    seconds=_weight_seconds,
    classes=("positions", "part", "splits"),
)

__all__ = ["DEPTHWISE", "DEPTHWISE_WEIGHT", "convolve", "weight_gradient"]
