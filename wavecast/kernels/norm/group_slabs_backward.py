"""Group norm over slabs, backward: each program leaves the sums of the gradients of some positions
of some channels, which those that compute dx join."""

# What pyright does not know of Triton: unrolled loops, functions that return tuples, constants.
# pyright: reportOperatorIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.describe import choice
from wavecast.kernels.norm import group_slab
from wavecast.kernels.norm.group_slab import affine, last_first, slab_of
from wavecast.kernels.pointwise.functions import value_and_derivative


@triton.jit
def _centred(x_ptr, dy_ptr, ptrs, mask, mean, factor, shift, SILU: tl.constexpr):
    """x less its mean, and the gradient of what is normalised, of some elements."""
    x = tl.load(x_ptr + ptrs, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + ptrs, mask=mask, other=0.0).to(tl.float32)
    x -= mean[:, None]
    if SILU:
        dy *= value_and_derivative(x * factor[:, None] + shift[:, None], "silu")[1]
    return x, dy


@triton.jit
def group_norm_sums_kernel(
    dy_ptr, x_ptr, weight_ptr, bias_ptr, mean_ptr, scale_ptr, grad_sum_ptr, grad_x_sum_ptr,
    groups, width, positions, span, channel_stride, position_stride,
    SILU: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Sums of each channel's gradients over a span of positions, plain and along the normalised
    values, to [images, spans, channels]."""
    channels = groups * width
    image, channel, first, last = slab_of(
        tl.program_id(0), channels, positions, span, CHANNELS, WIDE
    )
    channel_mask = channel < channels
    group = image * groups + channel // width
    mean = tl.load(mean_ptr + group, mask=channel_mask, other=0.0)
    scale = tl.load(scale_ptr + group, mask=channel_mask, other=0.0)
    factor, shift = affine(weight_ptr, bias_ptr, channel, channel_mask, scale)
    from_image = image * channels * positions + channel[:, None] * channel_stride
    grad_sum = tl.zeros((CHANNELS, BLOCK), tl.float32)
    grad_x_sum = tl.zeros((CHANNELS, BLOCK), tl.float32)
    for start in range(first, last, BLOCK):
        offs = start + tl.arange(0, BLOCK)[None, :]
        mask = channel_mask[:, None] & (offs < last)
        ptrs = from_image + offs * position_stride
        x, dy = _centred(x_ptr, dy_ptr, ptrs, mask, mean, factor, shift, SILU)
        grad_sum += dy
        grad_x_sum += dy * x
    out = (image * tl.cdiv(positions, span) + first // span) * channels + channel
    tl.store(grad_sum_ptr + out, tl.sum(grad_sum, axis=1), mask=channel_mask)
    tl.store(grad_x_sum_ptr + out, tl.sum(grad_x_sum, axis=1) * scale, mask=channel_mask)


@triton.jit
def sums_of_groups(
    grad_sum_ptr, grad_x_sum_ptr, weight_ptr, image, channel, channels, width, spans,
    CHANNELS: tl.constexpr, JOINED: tl.constexpr, SPANS: tl.constexpr,
):  # fmt: skip
    """Of the groups of CHANNELS neighbours: what each channel's spans left in `plain_ptr` and
    `along_ptr`, times its weight. TAKEN channels and SPANS spans at a time."""
    lowest = tl.min(channel, axis=0)
    first = lowest // width * width
    last = tl.minimum(((lowest + CHANNELS - 1) // width + 1) * width, channels)
    grad_sum = tl.zeros((CHANNELS,), tl.float32)
    grad_x_sum = tl.zeros((CHANNELS,), tl.float32)
    for start in range(first, last, JOINED):
        other = start + tl.arange(0, JOINED)
        own_grad_sum = tl.zeros((JOINED,), tl.float32)
        own_grad_x_sum = tl.zeros((JOINED,), tl.float32)
        for span in range(0, spans, SPANS):
            ptrs = span + tl.arange(0, SPANS)[:, None]
            offs = (image * spans + ptrs) * channels + other[None, :]
            mask = (ptrs < spans) & (other < last)[None, :]
            own_grad_sum += tl.sum(tl.load(grad_sum_ptr + offs, mask=mask, other=0.0), axis=0)
            own_grad_x_sum += tl.sum(tl.load(grad_x_sum_ptr + offs, mask=mask, other=0.0), axis=0)
        if weight_ptr is not None:
            weight = tl.load(weight_ptr + other, mask=other < last, other=0.0).to(tl.float32)
            own_grad_sum *= weight
            own_grad_x_sum *= weight
        same = (other // width)[:, None] == (channel // width)[None, :]
        grad_sum += tl.sum(tl.where(same, own_grad_sum[:, None], 0.0), axis=0)
        grad_x_sum += tl.sum(tl.where(same, own_grad_x_sum[:, None], 0.0), axis=0)
    return grad_sum, grad_x_sum


@triton.jit
def group_norm_dx_kernel(
    dy_ptr, x_ptr, weight_ptr, bias_ptr, mean_ptr, scale_ptr, grad_sum_ptr, grad_x_sum_ptr, dx_ptr,
    groups, width, positions, span, channel_stride, position_stride,
    JOINED: tl.constexpr, SPANS: tl.constexpr,
    SILU: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
    XCDS: tl.constexpr,
):  # fmt: skip
    """dx from the sums of gradients, plain and along the normalised values: those of each channel
    and span, or, without JOINED, the weighted ones of each group."""
    channels = groups * width
    image, channel, first, last = slab_of(
        last_first(XCDS), channels, positions, span, CHANNELS, WIDE
    )
    channel_mask = channel < channels
    group = image * groups + channel // width
    mean = tl.load(mean_ptr + group, mask=channel_mask, other=0.0)
    scale = tl.load(scale_ptr + group, mask=channel_mask, other=0.0)
    factor, shift = affine(weight_ptr, bias_ptr, channel, channel_mask, scale)
    if JOINED:
        grad_sum, grad_x_sum = sums_of_groups(
            grad_sum_ptr, grad_x_sum_ptr, weight_ptr, image, channel, channels, width,
            tl.cdiv(positions, span), CHANNELS, JOINED, SPANS,
        )  # fmt: skip
    else:
        grad_sum = tl.load(grad_sum_ptr + group, mask=channel_mask, other=0.0)
        grad_x_sum = tl.load(grad_x_sum_ptr + group, mask=channel_mask, other=0.0)
    share = scale / (width * positions)
    grad_sum *= share
    grad_x_sum *= share * scale
    from_image = image * channels * positions + channel[:, None] * channel_stride
    for start in range(first, last, BLOCK):
        offs = start + tl.arange(0, BLOCK)[None, :]
        mask = channel_mask[:, None] & (offs < last)
        ptrs = from_image + offs * position_stride
        x, dy = _centred(x_ptr, dy_ptr, ptrs, mask, mean, factor, shift, SILU)
        dx = dy * factor[:, None] - grad_sum[:, None] - x * grad_x_sum[:, None]
        tl.store(dx_ptr + ptrs, dx.to(dx_ptr.dtype.element_ty), mask=mask)


_CONTIGUOUS = (*group_slab.PARAMETERS, "mean", "scale")
SUMS = group_slab.slab_kernel(group_norm_sums_kernel, 2, 0, contiguous=_CONTIGUOUS)
INPUT_GRADIENT = group_slab.slab_kernel(group_norm_dx_kernel, 2, 1, contiguous=_CONTIGUOUS)


def backward(shape: group_slab.Shape, tensors: group_slab.Tensors, *, silu: bool) -> Tensor:
    """Fill `dx` of the `tensors`; returns sums of each channel's gradients, and of their products
    with the normalised values: [2, parts, channels] of float32."""
    problem = shape.problem(tensors, silu=silu)
    operands = {name: tensor for name, tensor in tensors.items() if name != "dx"} | shape.sizes
    size = (2, shape.images, shape.spans, shape.channels)
    parts = torch.empty(size, dtype=torch.float32, device=tensors["x"].device)
    choice.run(SUMS, problem, **operands, grad_sum=parts[0], grad_x_sum=parts[1])
    joined, weight = shape.joined_at_once(), tensors["weight"]
    sums = parts
    if not joined:
        sums = parts.sum(2) if weight is None else parts.sum(2) * weight.float()
        sums = sums.view(2, shape.images, shape.groups, shape.width).sum(3)
    spans = min(triton.next_power_of_2(shape.spans), 1024 // max(1, joined))
    operands |= {"grad_sum": sums[0], "grad_x_sum": sums[1], "dx": tensors["dx"]}
    choice.run(INPUT_GRADIENT, {**problem, "taken": joined}, **operands, JOINED=joined, SPANS=spans)
    return parts.view(2, -1, shape.channels)
