"""Launches of `implicit_kernel`: a convolution or the gradient of its input as a matrix product."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton

from wavecast.arch import Device
from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.conv.combine import combine
from wavecast.kernels.conv.geometry import Geometry, by_axis, empty, formatted, is_last, strides
from wavecast.kernels.conv.implicit_kernel import convolution_kernel
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
from wavecast.kernels.tiles import xcds


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
