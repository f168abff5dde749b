"""Group norm in slabs: the positions of some channels at a time, in any layout in which channels or
positions are contiguous.

Forward, every program leaves the moments (mean, sum of squared differences) of some positions of
some channels; those of a group are joined in a fixed order (Chan et al., 1983) by a second kernel,
or, where they are few, by each program of the one that normalises. Backward, sums of gradients
take the place of moments.
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
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.norm.group_terms import affine
from wavecast.kernels.pointwise.functions import activated, sloped
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import xcds
from wavecast.model.chip import Chip


@triton.jit
def last_first(XCDS: tl.constexpr):
    """The number of this program in a second pass, which begins with what the first one ended with:
    each of XCDS dies, to which programs go in turns, finds that in its own L2."""
    number = tl.program_id(0)
    turn = number // XCDS
    turns = tl.num_programs(0) // XCDS
    return tl.where(turn < turns, (turns - 1 - turn) * XCDS + number % XCDS, number)


@triton.jit
def slab_of(number, channels, positions, span, CHANNELS: tl.constexpr, WIDE: tl.constexpr):
    """(image, channels, first and last position) of a program: spans of positions, then blocks of
    channels, then images."""
    spans = tl.cdiv(positions, span)
    blocks = tl.cdiv(channels, CHANNELS)
    image = number // (spans * blocks)
    channel = number // spans % blocks * CHANNELS + tl.arange(0, CHANNELS)
    first = number % spans * span
    if WIDE:
        image, channel = image.to(tl.int64), channel.to(tl.int64)
    return image, channel, first, tl.minimum(first + span, positions)


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
        x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
        x -= mean[:, None]
        if SILU:
            dy *= sloped(x * factor[:, None] + shift[:, None], "silu")[1]
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
        x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
        x -= mean[:, None]
        if SILU:
            dy *= sloped(x * factor[:, None] + shift[:, None], "silu")[1]
        dx = dy * factor[:, None] - plain[:, None] - x * along[:, None]
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)


class Shape:
    """An image tensor as the kernels see it: channels, positions, strides, spans of positions."""

    def __init__(self, x: torch.Tensor, groups: int) -> None:
        self.images, self.channels = x.shape[:2]
        self.groups = groups
        self.width = self.channels // groups
        self.positions = x.numel() // (self.images * self.channels)
        self.last = not x.is_contiguous()
        self.bytes = x.element_size()
        per_image = self.channels if not self.last else triton.cdiv(self.channels, 64)
        wanted = triton.cdiv(8 * gpu.launching().compute_units, self.images * per_image)
        least = 64 if self.last else 2048
        spans = max(1, min(wanted, self.positions // least))
        self.span = triton.cdiv(self.positions, spans)
        self.spans = triton.cdiv(self.positions, self.span)
        strides = (1, self.channels) if self.last else (self.positions, 1)
        self.steps = (self.positions, self.span, *strides)

    def grid(self, settings: Settings) -> tuple[int, ...]:
        """Programs of a kernel over slabs."""
        return (self.images * self.spans * triton.cdiv(self.channels, settings["CHANNELS"]),)

    def joined_at_once(self) -> int:
        """How many channels each program over a slab joins at a time, of those whose groups it
        needs; 0 where reading what all of them left would take longer than half the slab."""
        block = min(64, triton.next_power_of_2(self.channels)) if self.last else 1
        reached = min(self.channels, block + 2 * (self.width - 1))
        if reached * self.spans * 16 > self.span * block * self.bytes:
            return 0
        return min(64, triton.next_power_of_2(reached))

    def problem(self, **flags: Any) -> dict[str, Any]:
        """What configurations depend on."""
        return {
            "images": self.images,
            "channels": self.channels,
            "groups": self.groups,
            "positions": self.positions,
            "span": self.span,
            "last": self.last,
            "bytes": self.bytes,
            **flags,
        }


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


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    """Slabs with the contiguous one of channels and positions in whole cache lines."""
    if problem["last"]:
        channels = min(64, triton.next_power_of_2(problem["channels"]))
        blocks = (32, 16, 64, 128)
    else:
        channels = 1
        blocks = (2048, 1024, 512, 4096)
    most = triton.next_power_of_2(problem["span"])
    return {
        "CHANNELS": (channels,),
        "BLOCK": [n for n in blocks if n <= most] or [most],
        "num_warps": (4, 2, 8, 1),
        "num_stages": (1,),
    }


def _slab_seconds(reads: int, writes: int) -> Any:
    def seconds(problem: Problem, settings: Settings, device: Device) -> float:
        count = problem["images"] * problem["channels"] * problem["positions"]
        elements = settings["CHANNELS"] * settings["BLOCK"]
        steps = triton.cdiv(problem["span"], settings["BLOCK"])
        slabs = triton.cdiv(problem["channels"], settings["CHANNELS"])
        spans = triton.cdiv(problem["positions"], problem["span"])
        found = estimates.streaming(
            device,
            settings,
            workgroups=problem["images"] * slabs * spans,
            read=reads * count * problem["bytes"],
            written=writes * count * problem["bytes"],
            elements=elements,
            operations=8.0 * steps,
            held=1.0 + reads,
        )
        lane = elements / (settings["num_warps"] * Chip.of(device).lanes)
        return found * (1.0 + 0.1 * abs(lane / 8 - 1))

    return seconds


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
    axes=_axes,
    seconds=_slab_seconds(1, 0),
    classes=("images",),
)
JOIN = Space(kernel="group_norm_join_kernel", axes=_join_axes, seconds=_join_seconds)
APPLY = Space(
    kernel="group_norm_apply_kernel", axes=_axes, seconds=_slab_seconds(1, 1), classes=("images",)
)
SUMS = Space(
    kernel="group_norm_sums_kernel", axes=_axes, seconds=_slab_seconds(2, 0), classes=("images",)
)
SLOPES = Space(
    kernel="group_norm_slopes_kernel", axes=_axes, seconds=_slab_seconds(2, 1), classes=("images",)
)

__all__ = ["APPLY", "JOIN", "MOMENTS", "SLOPES", "SUMS", "Shape", "backward", "forward"]
