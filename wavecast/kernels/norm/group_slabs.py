"""Group norm over slabs, forward.

Every program leaves the moments (mean, sum of squared differences) of some positions of some
channels; those of a group are joined in a fixed order (Chan et al., 1983) by a second kernel, or,
where they are few, by each program of the one that normalises.
"""

# What pyright does not know of Triton: unrolled loops, functions that return tuples, constants.
# pyright: reportOperatorIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false

import torch
import triton
import triton.language as tl

from wavecast.kernels import choice
from wavecast.kernels.describe import Axes, Constant, Demand, Device, KernelSpec, Problem, Settings
from wavecast.kernels.norm import group_slab
from wavecast.kernels.norm.group_slab import affine, last_first, slab_of
from wavecast.kernels.pointwise.functions import activated


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
    channel_mask = (channel < channels)[:, None]
    source = x_ptr + image * channels * positions + channel[:, None] * channel_stride
    acc = tl.zeros((CHANNELS, BLOCK), tl.float32)
    squares = tl.zeros((CHANNELS, BLOCK), tl.float32)
    offs = first + tl.arange(0, BLOCK)[None, :]
    mask = channel_mask & (offs < last)
    x = tl.load(source + offs * position_stride, mask=mask, other=0.0).to(tl.float32)
    block_mean = tl.sum(x, axis=1, keep_dims=True) / tl.minimum(last - first, BLOCK)
    for start in range(first, last, BLOCK):
        offs = start + tl.arange(0, BLOCK)[None, :]
        mask = channel_mask & (offs < last)
        x = tl.load(source + offs * position_stride, mask=mask, other=0.0).to(tl.float32)
        x = tl.where(mask, x - block_mean, 0.0)
        acc += x
        squares += x * x
    delta = tl.sum(acc, axis=1, keep_dims=True)
    mean = block_mean + delta / (last - first)
    rest = tl.sum(squares, axis=1, keep_dims=True) - delta * delta / (last - first)
    out = (image * tl.cdiv(positions, span) + first // span) * channels + channel[:, None]
    tl.store(mean_ptr + out, mean, mask=channel_mask)
    tl.store(squares_ptr + out, rest, mask=channel_mask)


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
        ptrs = start + tl.arange(0, SPANS)[:, None]
        mask = (ptrs < spans) & (channel < width)
        offs = from_group + ptrs * groups * width + channel
        count = tl.minimum(positions - ptrs * span, span).to(tl.float32)
        means = tl.load(means_ptr + offs, mask=mask, other=0.0)
        mean += tl.sum(tl.sum(means * (count / size), axis=1), axis=0)
    squares = tl.full((), 0.0, tl.float32)
    for start in range(0, spans, SPANS):
        ptrs = start + tl.arange(0, SPANS)[:, None]
        mask = (ptrs < spans) & (channel < width)
        offs = from_group + ptrs * groups * width + channel
        count = tl.minimum(positions - ptrs * span, span).to(tl.float32)
        delta = tl.load(means_ptr + offs, mask=mask, other=0.0) - mean
        span_squares = tl.load(squares_ptr + offs, mask=mask, other=0.0)
        both = tl.where(mask, span_squares + delta * delta * count, 0.0)
        squares += tl.sum(tl.sum(both, axis=1), axis=0)
    return mean, tl.rsqrt(squares / size + eps)


@triton.jit
def group_norm_join_kernel(
    means_ptr, squares_ptr, mean_ptr, scale_ptr, groups, width, positions, span, eps,
    CHANNELS: tl.constexpr, SPANS: tl.constexpr,
):  # fmt: skip
    """The moments of one group per program."""
    pid = tl.program_id(0)
    mean, scale = joined(
        means_ptr, squares_ptr, pid // groups, pid % groups, groups, width, positions, span,
        eps, CHANNELS, SPANS,
    )  # fmt: skip
    tl.store(mean_ptr + pid, mean)
    tl.store(scale_ptr + pid, scale)


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
    channel_mask = channel < channels
    group = image * groups + channel // width
    if JOIN:
        pid = tl.min(channel, axis=0)
        own_mean, own_scale = joined(
            means_ptr, squares_ptr, image, pid // width, groups, width, positions, span, eps,
            JOIN, SPANS,
        )  # fmt: skip
        mean = tl.zeros((CHANNELS,), tl.float32) + own_mean
        scale = tl.zeros((CHANNELS,), tl.float32) + own_scale
        keeps = (channel % width == 0) & (first == 0)
        tl.store(mean_ptr + group, mean, mask=keeps)
        tl.store(scale_ptr + group, scale, mask=keeps)
    else:
        mean = tl.load(mean_ptr + group, mask=channel_mask, other=0.0)
        scale = tl.load(scale_ptr + group, mask=channel_mask, other=0.0)
    factor, shift = affine(weight_ptr, bias_ptr, channel, channel_mask, scale)
    from_image = image * channels * positions + channel[:, None] * channel_stride
    for start in range(first, last, BLOCK):
        offs = start + tl.arange(0, BLOCK)[None, :]
        mask = channel_mask[:, None] & (offs < last)
        ptrs = from_image + offs * position_stride
        x = tl.load(x_ptr + ptrs, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean[:, None]) * factor[:, None] + shift[:, None]
        if SILU:
            y = activated(y, "silu")
        tl.store(y_ptr + ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


MOMENTS = group_slab.slab_kernel(group_norm_moments_kernel, 1, 0)
APPLY = group_slab.slab_kernel(group_norm_apply_kernel, 1, 1, contiguous=group_slab.PARAMETERS)


def _join_block(width: int, spans: int) -> dict[str, int]:
    """Channels and spans whose moments are joined at a time."""
    channels = triton.next_power_of_2(width)
    most = max(1, 1024 // channels)
    return {"CHANNELS": channels, "SPANS": min(triton.next_power_of_2(spans), most)}


def _join_axes(problem: Problem, device: Device) -> Axes:
    block = _join_block(problem["width"], problem["spans"])
    return {**{name: (size,) for name, size in block.items()}, "num_warps": (1, 4)}


def _join_demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    """A small kernel: ordered by how near a wave is to 256 elements."""
    elements = settings["CHANNELS"] * settings["SPANS"] / settings["num_warps"]
    return Constant(abs(elements - 256))


JOIN = KernelSpec(
    function=group_norm_join_kernel,
    grid="groups",
    axes=_join_axes,
    demand=_join_demand,
    ignored=("groups",),
)


def forward(
    shape: group_slab.Shape, tensors: group_slab.Tensors, eps: float, *, silu: bool
) -> None:
    """Fill `y`, `mean` and `scale` of the `tensors`."""
    statistics = {name: tensors[name] for name in ("mean", "scale")}
    size = (2, shape.images, shape.spans, shape.channels)
    mean, squares = torch.empty(size, dtype=torch.float32, device=tensors["x"].device)
    strides = {name: shape.sizes[name] for name in ("channel_stride", "position_stride")}
    choice.run(
        MOMENTS, shape.plain_problem(), x=tensors["x"], mean=mean, squares=squares, **strides
    )
    at_once = not shape.last and shape.width * shape.spans * 32 <= shape.span * shape.bytes
    moments = {"means": mean, "squares": squares, "eps": eps}
    if not at_once:
        problem = {"width": shape.width, "spans": shape.spans}
        problem["groups"] = shape.images * shape.groups
        positions = {"positions": shape.positions, "span": shape.span}
        choice.run(JOIN, problem, **moments, **statistics, groups=shape.groups, **positions)
    block = _join_block(shape.width, shape.spans)
    constants = {"JOIN": block["CHANNELS"], "SPANS": block["SPANS"]}
    constants = constants if at_once else dict.fromkeys(constants, 0)
    problem = shape.problem(tensors, silu=silu, at_once=at_once)
    choice.run(APPLY, problem, **tensors, **moments, **shape.sizes, **constants)
