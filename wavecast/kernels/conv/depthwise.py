"""Depthwise convolutions, whose groups have one input channel: a few products per element loaded.

A tile is positions by channels; memory bounds the time, in either memory format.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOperatorIssue=false

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import choice
from wavecast.kernels.conv.combine import activated, combine
from wavecast.kernels.conv.geometry import Geometry, empty, is_last, strides, to_memory_format
from wavecast.kernels.spec import KernelSpec, Problem, Settings
from wavecast.kernels.tiles import tile_of
from wavecast.launch import gpu

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
    pid_row, pid_col = tile_of(tl.program_id(0), outer * tiles_h, across, 1, XCDS)
    h = (pid_row % tiles_h * ROWS + tl.arange(0, ROWS))[:, None]
    plane = pid_row // tiles_h
    d = plane % y_d
    offs = pid_col * BLOCK + tl.arange(0, BLOCK)
    if LAST:
        image = plane // y_d
        w = (offs // channels)[None, :]
        channel = offs % channels
    else:
        image = plane // y_d // channels
        w = offs[None, :]
        channel = plane // y_d % channels
    if WIDE:
        image = image.to(tl.int64)
    filters = channels * MULTIPLE if TRANSPOSED else channels
    mask = (h < y_h) & (w < y_w)
    acc = tl.zeros((ROWS, BLOCK), tl.float32)
    for tap in tl.static_range(T * R * S):
        tap_w = tap % S
        tap_h = tap // S % R
        tap_d = tap // (S * R)
        if TRANSPOSED:
            reach_w = w + pad_w - tap_w * DILATION_W
            reach_h = h + pad_h - tap_h * DILATION_H
            reach_d = d + pad_d - tap_d * DILATION_D
            in_w, in_h, in_d = reach_w // STRIDE_W, reach_h // STRIDE_H, reach_d // STRIDE_D
            valid = mask & (reach_w >= 0) & (reach_h >= 0) & (reach_d >= 0)
            if STRIDE_W > 1:
                valid = valid & (reach_w % STRIDE_W == 0)
            if STRIDE_H > 1:
                valid = valid & (reach_h % STRIDE_H == 0)
            if STRIDE_D > 1:
                valid = valid & (reach_d % STRIDE_D == 0)
        else:
            in_w = w * STRIDE_W - pad_w + tap_w * DILATION_W
            in_h = h * STRIDE_H - pad_h + tap_h * DILATION_H
            in_d = d * STRIDE_D - pad_d + tap_d * DILATION_D
            valid = mask & (in_w >= 0) & (in_h >= 0) & (in_d >= 0)
        valid = valid & (in_w < x_w) & (in_h < x_h) & (in_d < x_d)
        x_base = x_ptr + image * x_image + in_d * x_plane
        for i in tl.static_range(MULTIPLE if TRANSPOSED else 1):
            if TRANSPOSED:
                in_channel, filter_id = channel * MULTIPLE + i, channel * MULTIPLE + i
            else:
                in_channel, filter_id = channel // MULTIPLE, channel
            weight = tl.load(weight_ptr + tap * filters + filter_id).to(tl.float32)
            if LAST:
                x_offs = in_h * x_row + (in_w * x_pixel + (in_channel * x_channel)[None, :])
                x = tl.load(x_base + x_offs, mask=valid, other=0.0).to(tl.float32)
                acc += x * weight[None, :]
            else:
                x_offs = in_h * x_row + in_w * x_pixel
                x = tl.load(x_base + in_channel * x_channel + x_offs, mask=valid, other=0.0)
                acc += x.to(tl.float32) * weight
    if BIAS:
        bias = tl.load(bias_ptr + channel).to(tl.float32)
        if LAST:
            acc += bias[None, :]
        else:
            acc += bias
    acc = activated(acc, ACTIVATION)
    y_base = y_ptr + image * y_image + d * y_plane
    if LAST:
        y_offs = h * y_row + (w * y_pixel + (channel * y_channel)[None, :])
    else:
        y_base += channel * y_channel
        y_offs = h * y_row + w * y_pixel
    tl.store(y_base + y_offs, acc.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def depthwise_weight_kernel(
    dy_ptr, x_ptr, sums_ptr, positions, filters, part,
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
    channel_mask = channel < filters
    pixels = y_d * y_h * y_w
    begin = split * part
    end = tl.minimum(begin + part, positions)
    acc = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
    for start in range(begin, end, BLOCK_P):
        pos = start + tl.arange(0, BLOCK_P)
        image = pos // pixels
        pixel = pos % pixels
        if WIDE:
            image = image.to(tl.int64)
        w = pixel % y_w * STRIDE_W + tap_w
        h = pixel // y_w % y_h * STRIDE_H + tap_h
        d = pixel // (y_w * y_h) * STRIDE_D + tap_d
        valid = (pos < end) & (w >= 0) & (w < x_w) & (h >= 0) & (h < x_h) & (d >= 0) & (d < x_d)
        mask = valid[:, None] & channel_mask[None, :]
        x_offs = image * x_image + d * x_plane + h * x_row + w * x_pixel
        x = tl.load(
            x_ptr + x_offs[:, None] + (channel // MULTIPLE * x_channel)[None, :],
            mask=mask,
            other=0.0,
        )
        dy_offs = image * dy_image + pixel * dy_pixel
        dy = tl.load(
            dy_ptr + dy_offs[:, None] + (channel * dy_channel)[None, :], mask=mask, other=0.0
        )
        acc += x.to(tl.float32) * dy.to(tl.float32)
    taps: tl.constexpr = T * R * S
    ptrs = sums_ptr + split.to(tl.int64) * filters * taps + channel * taps + tap
    tl.store(ptrs, tl.sum(acc, axis=0), mask=channel_mask)


def convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None, g: Geometry, activation: str, last: bool, *,
    transposed: bool = False,
) -> Tensor:  # fmt: skip
    """The depthwise convolution `g`, or (`transposed`) the gradient of its input from that of its
    output; with channels innermost if `last`. Neither side is empty."""
    x_size, y_size = (g.out, g.size) if transposed else (g.size, g.out)
    channels = g.channels if transposed else g.filters
    x = to_memory_format(x, last)
    y = empty((g.batch, channels, *y_size[3 - g.dims :]), last, x.dtype, x.device)
    problem = {
        "positions": g.batch * math.prod(y_size),
        "channels": channels,
        **_problem_entries(g, x),
        "transposed": transposed,
        "x_last": last,
        "y_last": last,
        "bias": bias is not None,
        "activation": activation,
        "read": float(x.numel() * x.element_size()),
        "rows": y_size[1],
        "width": y_size[2] * (channels if last else 1),
        "outer": g.batch * y_size[0] * (1 if last else channels),
    }
    choice.run(
        DEPTHWISE, problem, x=x, weight=weight.reshape(g.filters, -1).t().contiguous(), bias=bias,
        y=y, images=g.batch, **strides("x", last, x.shape[1], x_size),
        **strides("y", last, channels, y_size), **g.arguments(x_size, y_size), LAST=last,
    )  # fmt: skip
    return y


def weight_gradient(dy: Tensor, x: Tensor, g: Geometry, last: bool) -> Tensor:
    """The gradient of the filters of the depthwise convolution `g`, with channels innermost if
    `last`."""
    x_last, dy_last = is_last(x), is_last(dy)
    x = x if x_last else x.contiguous()
    dy = dy if dy_last else dy.contiguous()
    taps = math.prod(g.taps)
    workgroups = _PARTS_PER_UNIT * gpu.launching().compute_units
    target_splits = triton.cdiv(workgroups, taps * triton.cdiv(g.filters, 64))
    splits = max(1, min(target_splits, triton.cdiv(g.pixels, _LEAST_POSITIONS)))
    part = triton.cdiv(g.pixels, splits)
    splits = triton.cdiv(g.pixels, part)
    parts = torch.empty((splits, g.filters * taps), dtype=torch.float32, device=x.device)
    problem = {
        "positions": g.pixels,
        "part": part,
        "splits": splits,
        "channels": g.filters,
        **_problem_entries(g, x),
        "x_last": x_last,
        "y_last": dy_last,
    }
    choice.run(
        DEPTHWISE_WEIGHT, problem, dy=dy, x=x, sums=parts, filters=g.filters,
        **strides("x", x_last, g.channels, g.size),
        **strides("dy", dy_last, g.filters, g.out, "image pixel channel"),
        **g.arguments(g.size, g.out),
    )  # fmt: skip
    dw = empty((g.filters, 1, *g.taps[3 - g.dims :]), last, x.dtype, x.device)
    combine(parts, None, dw, "none")
    return dw


def _problem_entries(g: Geometry, x: Tensor) -> dict[str, int | str]:
    """The entries of a problem that both kernels have."""
    multiple, taps = g.filters // g.channels, math.prod(g.taps)
    return {"multiple": multiple, "taps": taps, "bytes": x.element_size(), **g.described}


def _read(problem: Problem, settings: Settings) -> float:
    """Every tile reads what its filters reach beyond it again; within, the vector cache has it."""
    _, high, wide = (int(n) for n in problem["filter"].split("x"))
    pixel = problem["channels"] if problem["y_last"] else 1
    again = (1 + (high - 1) / settings["ROWS"]) * (1 + (wide - 1) * pixel / settings["BLOCK"] / 2)
    return problem["read"] * again


def _instructions(problem: Problem, settings: Settings) -> float:
    vector = 16 // problem["bytes"] if problem["y_last"] else 1
    return problem["taps"] * (2.0 + 12.0 / vector) + 20.0 / vector


DEPTHWISE = KernelSpec.streaming(
    depthwise_kernel,
    grid="outer * cdiv(rows, ROWS) * cdiv(width, BLOCK)",
    axes={
        "ROWS": "up_to(next_power_of_2(rows), 1, 2, 4, 8, 16)",
        "BLOCK": "up_to(next_power_of_2(width), 64, 128, 256, 512, 1024, 2048)",
        "num_warps": (1, 2, 4),
    },
    fits="ROWS * BLOCK / lanes <= 16 and (ROWS * BLOCK >= lanes or num_warps == 1)",
    read=_read,
    written="positions * channels * bytes",
    elements="max(ROWS * BLOCK, num_warps * 64)",
    instructions=_instructions,
    live_registers=3.0,
    rounded=("positions", "outer"),
    ignored=("read",),
)
DEPTHWISE_WEIGHT = KernelSpec.streaming(
    depthwise_weight_kernel,
    grid="cdiv(channels, BLOCK_C), taps, splits",
    axes={
        "BLOCK_P": "(8, 16, 32, 64, 128) if x_last or y_last else (256, 512, 1024)",
        "BLOCK_C": "up_to(next_power_of_2(channels), 64, 128, 256) if x_last or y_last else (1,)",
        "num_warps": (1, 2, 4),
    },
    fits="1 <= BLOCK_P * BLOCK_C / lanes <= 32",
    read="2.0 * positions * channels * bytes",
    written=0.0,
    elements="BLOCK_P * BLOCK_C",
    instructions="cdiv(part, BLOCK_P) * (3.0 + 20.0 / max(1, min(BLOCK_C, 16 // bytes))) + 10.0",
    live_registers=3.0,
    rounded=("positions", "part", "splits"),
)
