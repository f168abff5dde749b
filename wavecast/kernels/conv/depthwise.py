"""Depthwise convolutions, whose groups have one input channel: a few products per element loaded.

A tile is positions by channels; memory decides, in either memory format.
"""

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
from wavecast.kernels.conv.geometry import Geometry, empty, is_last, strides
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import tile_of, xcds

_PARTS_PER_UNIT = 8
"""Workgroups of the weight's gradient per compute unit."""
_LEAST_POSITIONS = 256
"""Positions each of them has at least."""


@triton.jit
def depthwise_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, images, channels,
    x_image, x_plane, x_row, x_pixel, x_channel, y_image, y_pixel, y_channel,
    x_d, x_h, x_w, y_d, y_h, y_w, pad_d, pad_h, pad_w,
    T: tl.constexpr, R: tl.constexpr, S: tl.constexpr,
    STRIDE_D: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr,
    DILATION_D: tl.constexpr, DILATION_H: tl.constexpr, DILATION_W: tl.constexpr,
    MULTIPLE: tl.constexpr, TRANSPOSED: tl.constexpr, CHANNEL_STEP: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """MULTIPLE filters per channel; `channels` are those of `y_ptr`. `weight_ptr` is
    [T * R * S, filters]."""
    rows = images * y_d * y_h * y_w
    tiles = tl.cdiv(rows, BLOCK_P)
    number, across = tile_of(tl.program_id(0), tiles, tl.cdiv(channels, BLOCK_C), 1, XCDS)
    row = number * BLOCK_P + tl.arange(0, BLOCK_P)
    channel = across * BLOCK_C + tl.arange(0, BLOCK_C)
    pixels = y_d * y_h * y_w
    image = row // pixels
    place = row % pixels
    if WIDE:
        image = image.to(tl.int64)
    w = place % y_w
    h = place // y_w % y_h
    d = place // (y_w * y_h)
    EVEN: tl.constexpr = CHANNEL_STEP % BLOCK_C == 0
    known = channel < channels
    inside = row < rows
    filters = channels * MULTIPLE if TRANSPOSED else channels
    total = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
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
        from_row = image * x_image + from_d * x_plane + from_h * x_row + from_w * x_pixel
        some = valid[:, None] if EVEN else valid[:, None] & known[None, :]
        for turn in tl.static_range(MULTIPLE if TRANSPOSED else 1):
            if TRANSPOSED:
                of_x, of_weight = channel * MULTIPLE + turn, channel * MULTIPLE + turn
            else:
                of_x, of_weight = channel // MULTIPLE, channel
            x = tl.load(
                x_ptr + from_row[:, None] + (of_x * x_channel)[None, :], mask=some, other=0.0
            )
            weight = tl.load(weight_ptr + tap * filters + of_weight, mask=known, other=0.0)
            total += x.to(tl.float32) * weight.to(tl.float32)[None, :]
    if BIAS:
        bias = tl.load(bias_ptr + channel, mask=known, other=0.0)
        total += bias.to(tl.float32)[None, :]
    total = activated(total, ACTIVATION)
    to_row = image * y_image + place * y_pixel
    some = inside[:, None] if EVEN else inside[:, None] & known[None, :]
    tl.store(
        y_ptr + to_row[:, None] + (channel * y_channel)[None, :],
        total.to(y_ptr.dtype.element_ty),
        mask=some,
    )


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
    x_last = is_last(x)
    x = x if x_last else x.contiguous()
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

    def grid(settings: Settings) -> tuple[int, ...]:
        down = triton.cdiv(problem["positions"], settings["BLOCK_P"])
        return (down * triton.cdiv(channels, settings["BLOCK_C"]),)

    of_x = strides(x_last, x.shape[1], x_size)
    of_y = strides(last, channels, y_size)
    launch(
        depthwise_kernel,
        grid,
        (
            *(x, by_tap, bias, y, g.batch, channels, *of_x),
            *(of_y[0], of_y[3], of_y[4], *x_size, *y_size, *g.padding),
        ),
        DEPTHWISE,
        problem,
        **_constants(g),
        TRANSPOSED=transposed,
        CHANNEL_STEP=math.gcd(channels, 256),
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
    combine(parts, None, dw, True, "none")
    return dw


def _constants(g: Geometry) -> dict[str, int]:
    found = {"T": g.taps[0], "R": g.taps[1], "S": g.taps[2], "MULTIPLE": g.filters // g.channels}
    for name, values in (("STRIDE", g.stride), ("DILATION", g.dilation)):
        found |= dict(zip((f"{name}_D", f"{name}_H", f"{name}_W"), values, strict=True))
    return found


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    wide = min(256, triton.next_power_of_2(problem["channels"]))
    last = problem["x_last"] or problem["y_last"]
    return {
        "BLOCK_P": (16, 32, 64, 128) if last else (256, 512, 1024),
        "BLOCK_C": tuple(n for n in (16, 32, 64, 128, 256) if n <= wide) or (wide,)
        if last
        else (1,),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    lanes = 64 if device.target.startswith("gfx9") else 32
    each = settings["BLOCK_P"] * settings["BLOCK_C"] / (settings["num_warps"] * lanes)
    return 1 <= each <= 32


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = settings["BLOCK_P"], settings["BLOCK_C"]
    down = triton.cdiv(problem["positions"], rows)
    across = triton.cdiv(problem["channels"], columns)
    vector = max(1, min(columns, 16 // problem["bytes"]))
    return estimates.streaming(
        device,
        settings,
        workgroups=down * across,
        read=problem["read"],
        written=problem["positions"] * problem["channels"] * problem["bytes"],
        elements=rows * columns,
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


DEPTHWISE = Space(
    kernel="depthwise_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("positions",),
    ignored=("read",),
)
DEPTHWISE_WEIGHT = Space(
    kernel="depthwise_weight_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_weight_seconds,
    classes=("positions", "part", "splits"),
)

__all__ = ["DEPTHWISE", "DEPTHWISE_WEIGHT", "convolve", "weight_gradient"]
