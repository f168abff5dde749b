"""Launches of `implicit_kernel`: a convolution or the gradient of its input as a matrix product."""

import math

import torch
import triton
from torch import Tensor

from wavecast.arch import Device
from wavecast.kernels import checks, choice
from wavecast.kernels.conv import tiling
from wavecast.kernels.conv.combine import combine
from wavecast.kernels.conv.geometry import (
    Geometry,
    by_axis,
    empty,
    is_last,
    strides,
    to_memory_format,
)
from wavecast.kernels.conv.implicit_kernel import convolution_kernel
from wavecast.kernels.conv.layout import channels_first, channels_last, in_rows
from wavecast.kernels.references import short_name
from wavecast.kernels.spec import Axes, KernelSpec, Problem, Settings
from wavecast.launch import gpu
from wavecast.perfmodel.ranking import ImplicitProduct


def product(
    x: Tensor, weight: Tensor, bias: Tensor | None, g: Geometry, activation: str, last: bool, *,
    transposed: bool = False,
) -> Tensor:  # fmt: skip
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
        weight = merged.pad_filters(weight)
    x_last = merged is not None or is_last(x)
    if not x_last and not (g.pointwise and math.prod(x_size) % 16 == 0):
        x, x_last = channels_last(x), True
    x = x if x_last else x.contiguous()
    weight = to_memory_format(weight, True)
    taps, width = math.prod(weight.shape[2:]), weight.shape[1]
    phase_taps = tuple(t // min(t, s) for t, s in zip(g.taps, g.stride, strict=True))
    pixels = g.batch * math.prod(
        triton.cdiv(n, s) if transposed else n for n, s in zip(y_size, g.stride, strict=True)
    )
    # Rows of an image that vectors do not divide, or every second of, are not stored directly.
    direct = last or (math.prod(y_size) % 16 == 0 and phases == 1)
    y_last = last or not direct
    problem = {
        "pixels": pixels,
        "columns": columns,
        "depth": depth,
        "taps": math.prod(phase_taps) if transposed else math.prod(g.taps[: 2 if merged else 3]),
        "groups": g.groups,
        "phases": phases,
        "dtype": short_name(x.dtype),
        **g.described,
        "dims": g.dims,
        "padded": transposed or any(pads),
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
    splits = problem["splits"] = tiling.best_splits(FORWARD, problem, device, count)
    if splits > 1:
        problem["y_last"] = y_last = True
    y = out = empty(y_shape, y_last, x.dtype, x.device)
    if splits > 1:
        out = torch.empty((splits, count), dtype=torch.float32, device=x.device)
    wide = checks.wide(x, y) or y.numel() * splits >= 2**31
    images, y_pixels = g.batch, math.prod(y_size)
    if g.pointwise and x_last and y_last and not wide:  # all images are one
        images, y_pixels = 1, pixels
    steps = (1, 1, 1)
    if transposed:
        steps = tuple(s // math.gcd(s, d) for s, d in zip(g.stride, g.dilation, strict=True))
    choice.run(
        FORWARD, problem, x=x, weight=weight, bias=bias if splits == 1 else None, y=out,
        images=images, **strides("x", x_last, x.shape[1], x_size),
        weight_group=per_filter * taps * width, weight_column=1 if transposed else taps * width,
        weight_channel=taps * width if transposed else 1, weight_tap=depth if merged else width,
        **strides("y", y_last, y_channels, y_size, "image pixel channel"), y_split=y.numel(),
        y_pixels=y_pixels, **g.arguments(x_size, y_size, pads), **by_axis("STEP", steps),
        DEEP=g.dims == 3, FLAT=g.pointwise, DEPTH_STEP=math.gcd(depth, 256),
        COLUMN_STEP=math.gcd(columns, 256), BIAS=bias is not None and splits == 1,
        ACTIVATION=activation if splits == 1 else "none", WIDE=wide,
    )  # fmt: skip
    if splits > 1:
        combine(out, bias, y, activation)
    return y if last == y_last else channels_first(y)


def _axes(problem: Problem, device: Device) -> Axes:
    size = tiling.element_size(problem)
    top = max(16, min(128, triton.next_power_of_2(problem["depth"])))
    depths = tuple(n for n in (16, 32, 64, 128) if top // 2 <= n <= top and n * size <= 256)
    axes = tiling.axes(problem["pixels"], problem["columns"], depths, 4, device)
    if device.capabilities.matrix_unit == "mfma":  # Triton's 32 x 32 takes more registers
        axes = {**axes, "matrix_instr_nonkdim": (16,)}
    return axes


def _demand(problem: Problem, settings: Settings, device: Device) -> ImplicitProduct:
    depth, tile_k = problem["depth"], settings["BLOCK_K"]
    vectors = problem["x_last"] and depth * tiling.element_size(problem) % 16 == 0
    return ImplicitProduct(
        m=problem["pixels"],
        n=problem["columns"],
        k=triton.cdiv(depth, tile_k) * tile_k * problem["taps"],
        batch=problem["groups"] * problem["phases"],
        narrow_loads=not vectors,
        **tiling.tile_fields(problem, settings),
    )


FORWARD = KernelSpec(
    function=convolution_kernel,
    grid="cdiv(pixels, BLOCK_M) * cdiv(columns, BLOCK_N) * groups * phases * splits",
    axes=_axes,
    fits=tiling.fits,
    demand=_demand,
    rounded=("pixels",),
    ignored=("read", "steps"),
)
