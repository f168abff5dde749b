"""Group norm over slabs, backward: each program leaves the sums of the gradients of some positions
of some channels, which those that compute dx join."""

# What pyright does not know of Triton: unrolled loops, functions that return tuples, constants.
# pyright: reportOperatorIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

import torch
import triton
import triton.language as tl

from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.norm.group_slab import Shape, axes, last_first, seconds, slab_of
from wavecast.kernels.norm.group_terms import affine
from wavecast.kernels.pointwise.functions import value_and_derivative
from wavecast.kernels.space import Space
from wavecast.kernels.tiles import xcds


@triton.jit
def _centred(x_ptr, dy_ptr, at, inside, mean, factor, shift, SILU: tl.constexpr):
    """x less its mean, and the gradient of what is normalised, of some elements."""
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
    x -= mean[:, None]
    if SILU:
        dy *= value_and_derivative(x * factor[:, None] + shift[:, None], "silu")[1]
    return x, dy


@triton.jit
def group_norm_sums_kernel(
    dy_ptr, x_ptr, weight_ptr, bias_ptr, mean_ptr, scale_ptr, plain_ptr, along_ptr,
    groups, width, positions, span, channel_stride, position_stride,
    SILU: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Sums of each channel's gradients over a span of positions, plain and along the normalised
    values, to [images, spans, channels]."""
    channels = groups * width
    image, channel, first, last = slab_of(
        tl.program_id(0), channels, positions, span, CHANNELS, WIDE
    )
    real = channel < channels
    group = image * groups + channel // width
    mean = tl.load(mean_ptr + group, mask=real, other=0.0)
    scale = tl.load(scale_ptr + group, mask=real, other=0.0)
    factor, shift = affine(weight_ptr, bias_ptr, channel, real, scale)
    from_image = image * channels * positions + channel[:, None] * channel_stride
    plain = tl.zeros((CHANNELS, BLOCK), tl.float32)
    along = tl.zeros((CHANNELS, BLOCK), tl.float32)
    for start in range(first, last, BLOCK):
        place = start + tl.arange(0, BLOCK)[None, :]
        inside = real[:, None] & (place < last)
        at = from_image + place * position_stride
        x, dy = _centred(x_ptr, dy_ptr, at, inside, mean, factor, shift, SILU)
        plain += dy
        along += dy * x
    to = (image * tl.cdiv(positions, span) + first // span) * channels + channel
    tl.store(plain_ptr + to, tl.sum(plain, axis=1), mask=real)
    tl.store(along_ptr + to, tl.sum(along, axis=1) * scale, mask=real)


@triton.jit
def sums_of_groups(
    plain_ptr, along_ptr, weight_ptr, image, channel, channels, width, spans,
    CHANNELS: tl.constexpr, TAKEN: tl.constexpr, SPANS: tl.constexpr,
):  # fmt: skip
    """Of the groups of CHANNELS neighbours: what each channel's spans left in `plain_ptr` and
    `along_ptr`, times its weight. TAKEN channels and SPANS spans at a time."""
    least = tl.min(channel, axis=0)
    first = least // width * width
    last = tl.minimum(((least + CHANNELS - 1) // width + 1) * width, channels)
    plain = tl.zeros((CHANNELS,), tl.float32)
    along = tl.zeros((CHANNELS,), tl.float32)
    for start in range(first, last, TAKEN):
        other = start + tl.arange(0, TAKEN)
        own_plain = tl.zeros((TAKEN,), tl.float32)
        own_along = tl.zeros((TAKEN,), tl.float32)
        for span in range(0, spans, SPANS):
            at = span + tl.arange(0, SPANS)[:, None]
            place = (image * spans + at) * channels + other[None, :]
            inside = (at < spans) & (other < last)[None, :]
            own_plain += tl.sum(tl.load(plain_ptr + place, mask=inside, other=0.0), axis=0)
            own_along += tl.sum(tl.load(along_ptr + place, mask=inside, other=0.0), axis=0)
        if weight_ptr is not None:
            weight = tl.load(weight_ptr + other, mask=other < last, other=0.0).to(tl.float32)
            own_plain *= weight
            own_along *= weight
        same = (other // width)[:, None] == (channel // width)[None, :]
        plain += tl.sum(tl.where(same, own_plain[:, None], 0.0), axis=0)
        along += tl.sum(tl.where(same, own_along[:, None], 0.0), axis=0)
    return plain, along


@triton.jit
def group_norm_slopes_kernel(
    dy_ptr, x_ptr, weight_ptr, bias_ptr, mean_ptr, scale_ptr, plain_ptr, along_ptr, dx_ptr,
    groups, width, positions, span, channel_stride, position_stride,
    TAKEN: tl.constexpr, SPANS: tl.constexpr,
    SILU: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
    XCDS: tl.constexpr,
):  # fmt: skip
    """dx from the sums of gradients, plain and along the normalised values: those of each channel
    and span, or, without TAKEN, the weighted ones of each group."""
    channels = groups * width
    image, channel, first, last = slab_of(
        last_first(XCDS), channels, positions, span, CHANNELS, WIDE
    )
    real = channel < channels
    group = image * groups + channel // width
    mean = tl.load(mean_ptr + group, mask=real, other=0.0)
    scale = tl.load(scale_ptr + group, mask=real, other=0.0)
    factor, shift = affine(weight_ptr, bias_ptr, channel, real, scale)
    if TAKEN:
        plain, along = sums_of_groups(
            plain_ptr, along_ptr, weight_ptr, image, channel, channels, width,
            tl.cdiv(positions, span), CHANNELS, TAKEN, SPANS,
        )  # fmt: skip
    else:
        plain = tl.load(plain_ptr + group, mask=real, other=0.0)
        along = tl.load(along_ptr + group, mask=real, other=0.0)
    share = scale / (width * positions)
    plain *= share
    along *= share * scale
    from_image = image * channels * positions + channel[:, None] * channel_stride
    for start in range(first, last, BLOCK):
        place = start + tl.arange(0, BLOCK)[None, :]
        inside = real[:, None] & (place < last)
        at = from_image + place * position_stride
        x, dy = _centred(x_ptr, dy_ptr, at, inside, mean, factor, shift, SILU)
        dx = dy * factor[:, None] - plain[:, None] - x * along[:, None]
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)


def backward(
    shape: Shape, dy: torch.Tensor, source: torch.Tensor, weight: torch.Tensor | None,
    bias: torch.Tensor | None, means: torch.Tensor, scales: torch.Tensor, dx: torch.Tensor, *,
    silu: bool,
) -> torch.Tensor:  # fmt: skip
    """Fill `dx`; returns sums of each channel's gradients, plain and along the normalised values:
    [2, shares, channels] of float32."""
    problem = shape.problem(silu=silu, parameters=(weight is not None) + (bias is not None))
    given = (dy, source, weight, bias, means, scales)
    parts = means.new_empty((2, shape.images, shape.spans, shape.channels))
    launch(
        group_norm_sums_kernel,
        shape.grid,
        (*given, parts[0], parts[1], shape.groups, shape.width, *shape.steps),
        SUMS,
        problem,
        SILU=silu,
        WIDE=checks.wide(source),
    )
    taken = shape.joined_at_once()
    left = parts
    if not taken:
        left = parts.sum(2) if weight is None else parts.sum(2) * weight.to(torch.float32)
        left = left.view(2, shape.images, shape.groups, shape.width).sum(3)
    launch(
        group_norm_slopes_kernel,
        shape.grid,
        (*given, left[0], left[1], dx, shape.groups, shape.width, *shape.steps),
        SLOPES,
        {**problem, "taken": taken},
        TAKEN=taken,
        SPANS=min(triton.next_power_of_2(shape.spans), 1024 // max(1, taken)),
        SILU=silu,
        WIDE=checks.wide(source),
        XCDS=xcds(gpu.launching()),
    )
    return parts.view(2, -1, shape.channels)


SUMS = Space(kernel="group_norm_sums_kernel", axes=axes, seconds=seconds(2, 0), classes=("images",))
SLOPES = Space(
    kernel="group_norm_slopes_kernel", axes=axes, seconds=seconds(2, 1), classes=("images",)
)

__all__ = ["SLOPES", "SUMS", "backward"]
