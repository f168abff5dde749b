"""Group norm over slabs, forward.

Every program leaves the moments (mean, sum of squared differences) of some positions of some
channels; those of a group are joined in a fixed order (Chan et al., 1983) by a second kernel, or,
where they are few, by each program of the one that normalises.
"""

# What pyright does not know of Triton: unrolled loops, functions that return tuples, constants.
# pyright: reportOperatorIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.norm.group_slab import Shape, axes, last_first, seconds, slab_of
from wavecast.kernels.norm.group_terms import affine
from wavecast.kernels.pointwise.functions import activated
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import xcds


@triton.jit
def group_norm_moments_kernel(
    x_ptr, mean_ptr, squares_ptr, channels, positions, span, channel_stride, position_stride,
    CHANNELS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Moments of each channel over a span of positions, to [images, spans, channels]. Sums are of
    differences to the mean of the first block, so that nothing cancels."""
    image, channel, first, last = slab_of(
        tl.program_id(0), channels, positions, span, CHANNELS, WIDE
    )
    real = (channel < channels)[:, None]
    source = x_ptr + image * channels * positions + channel[:, None] * channel_stride
    total = tl.zeros((CHANNELS, BLOCK), tl.float32)
    squares = tl.zeros((CHANNELS, BLOCK), tl.float32)
    place = first + tl.arange(0, BLOCK)[None, :]
    inside = real & (place < last)
    x = tl.load(source + place * position_stride, mask=inside, other=0.0).to(tl.float32)
    middle = tl.sum(x, axis=1, keep_dims=True) / tl.minimum(last - first, BLOCK)
    for start in range(first, last, BLOCK):
        place = start + tl.arange(0, BLOCK)[None, :]
        inside = real & (place < last)
        x = tl.load(source + place * position_stride, mask=inside, other=0.0).to(tl.float32)
        x = tl.where(inside, x - middle, 0.0)
        total += x
        squares += x * x
    apart = tl.sum(total, axis=1, keep_dims=True)
    mean = middle + apart / (last - first)
    rest = tl.sum(squares, axis=1, keep_dims=True) - apart * apart / (last - first)
    to = (image * tl.cdiv(positions, span) + first // span) * channels + channel[:, None]
    tl.store(mean_ptr + to, mean, mask=real)
    tl.store(squares_ptr + to, rest, mask=real)


@triton.jit
def joined(
    means_ptr, squares_ptr, image, group, groups, width, positions, span, eps,
    CHANNELS: tl.constexpr, SPANS: tl.constexpr,
):  # fmt: skip
    """(mean, scale) of a group from the moments of its channels and spans; CHANNELS is at least its
    width."""
    spans = tl.cdiv(positions, span)
    channel = tl.arange(0, CHANNELS)[None, :]
    size = width * positions
    from_group = image * spans * groups * width + group * width
    mean = tl.full((), 0.0, tl.float32)
    for start in range(0, spans, SPANS):
        at = start + tl.arange(0, SPANS)[:, None]
        inside = (at < spans) & (channel < width)
        place = from_group + at * groups * width + channel
        count = tl.minimum(positions - at * span, span).to(tl.float32)
        means = tl.load(means_ptr + place, mask=inside, other=0.0)
        mean += tl.sum(tl.sum(means * (count / size), axis=1), axis=0)
    squares = tl.full((), 0.0, tl.float32)
    for start in range(0, spans, SPANS):
        at = start + tl.arange(0, SPANS)[:, None]
        inside = (at < spans) & (channel < width)
        place = from_group + at * groups * width + channel
        count = tl.minimum(positions - at * span, span).to(tl.float32)
        apart = tl.load(means_ptr + place, mask=inside, other=0.0) - mean
        own = tl.load(squares_ptr + place, mask=inside, other=0.0)
        both = tl.where(inside, own + apart * apart * count, 0.0)
        squares += tl.sum(tl.sum(both, axis=1), axis=0)
    return mean, tl.rsqrt(squares / size + eps)


@triton.jit
def group_norm_join_kernel(
    means_ptr, squares_ptr, mean_ptr, scale_ptr, groups, width, positions, span, eps,
    CHANNELS: tl.constexpr, SPANS: tl.constexpr,
):  # fmt: skip
    """The moments of one group per program."""
    number = tl.program_id(0)
    mean, scale = joined(
        means_ptr, squares_ptr, number // groups, number % groups, groups, width, positions, span,
        eps, CHANNELS, SPANS,
    )  # fmt: skip
    tl.store(mean_ptr + number, mean)
    tl.store(scale_ptr + number, scale)


@triton.jit
def group_norm_apply_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, means_ptr, squares_ptr, mean_ptr, scale_ptr,
    groups, width, positions, span, channel_stride, position_stride, eps,
    JOIN: tl.constexpr, SPANS: tl.constexpr,
    SILU: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
    XCDS: tl.constexpr,
):  # fmt: skip
    """With JOIN, which is then at least the width of a group, a program of one channel joins the
    moments of its group, and the first of a group keeps them."""
    channels = groups * width
    image, channel, first, last = slab_of(
        last_first(XCDS), channels, positions, span, CHANNELS, WIDE
    )
    real = channel < channels
    group = image * groups + channel // width
    if JOIN:
        number = tl.min(channel, axis=0)
        own_mean, own_scale = joined(
            means_ptr, squares_ptr, image, number // width, groups, width, positions, span, eps,
            JOIN, SPANS,
        )  # fmt: skip
        mean = tl.zeros((CHANNELS,), tl.float32) + own_mean
        scale = tl.zeros((CHANNELS,), tl.float32) + own_scale
        keeps = (channel % width == 0) & (first == 0)
        tl.store(mean_ptr + group, mean, mask=keeps)
        tl.store(scale_ptr + group, scale, mask=keeps)
    else:
        mean = tl.load(mean_ptr + group, mask=real, other=0.0)
        scale = tl.load(scale_ptr + group, mask=real, other=0.0)
    factor, shift = affine(weight_ptr, bias_ptr, channel, real, scale)
    from_image = image * channels * positions + channel[:, None] * channel_stride
    for start in range(first, last, BLOCK):
        place = start + tl.arange(0, BLOCK)[None, :]
        inside = real[:, None] & (place < last)
        at = from_image + place * position_stride
        x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        y = (x - mean[:, None]) * factor[:, None] + shift[:, None]
        if SILU:
            y = activated(y, "silu")
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=inside)


def forward(
    shape: Shape, source: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
    y: torch.Tensor, means: torch.Tensor, scales: torch.Tensor, eps: float, *, silu: bool,
) -> None:  # fmt: skip
    """Fill `y`, `means` and `scales`."""
    wide = checks.wide(source)
    moments = means.new_empty((2, shape.images, shape.spans, shape.channels))
    launch(
        group_norm_moments_kernel,
        shape.grid,
        (source, moments[0], moments[1], shape.channels, *shape.steps),
        MOMENTS,
        shape.problem(),
        WIDE=wide,
    )
    at_once = not shape.last and shape.width * shape.spans * 32 <= shape.span * shape.bytes
    if not at_once:
        launch(
            group_norm_join_kernel,
            lambda _: (shape.images * shape.groups,),
            (
                *(moments[0], moments[1], means, scales, shape.groups, shape.width),
                *(shape.positions, shape.span, eps),
            ),
            JOIN,
            {"width": shape.width, "spans": shape.spans},
        )
    block = _join_block(shape.width, shape.spans)
    launch(
        group_norm_apply_kernel,
        shape.grid,
        (
            *(source, weight, bias, y, moments[0], moments[1], means, scales),
            *(shape.groups, shape.width, *shape.steps, eps),
        ),
        APPLY,
        shape.problem(
            silu=silu, parameters=(weight is not None) + (bias is not None), at_once=at_once
        ),
        JOIN=block["CHANNELS"] if at_once else 0,
        SPANS=block["SPANS"] if at_once else 0,
        SILU=silu,
        WIDE=wide,
        XCDS=xcds(gpu.launching()),
    )


def _join_block(width: int, spans: int) -> dict[str, int]:
    """Channels and spans whose moments are joined at a time."""
    channels = triton.next_power_of_2(width)
    most = max(1, 1024 // channels)
    return {"CHANNELS": channels, "SPANS": min(triton.next_power_of_2(spans), most)}


def _join_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    block = _join_block(problem["width"], problem["spans"])
    return {**{n: (size,) for n, size in block.items()}, "num_warps": (1, 4), "num_stages": (1,)}


def _join_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    """Small: a wave for what it can hold at ease."""
    return 1e-6 * abs(settings["CHANNELS"] * settings["SPANS"] / settings["num_warps"] - 256)


MOMENTS = Space(
    kernel="group_norm_moments_kernel",
    axes=axes,
    seconds=seconds(1, 0),
    classes=("images",),
)
JOIN = Space(kernel="group_norm_join_kernel", axes=_join_axes, seconds=_join_seconds)
APPLY = Space(
    kernel="group_norm_apply_kernel", axes=axes, seconds=seconds(1, 1), classes=("images",)
)

__all__ = ["APPLY", "JOIN", "MOMENTS", "forward"]
