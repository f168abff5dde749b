"""Group norm over channels and positions of images, with SiLU after it where asked.

Where the channels of a group lie together and fit a program's registers, one kernel reads them
once. Else, in any layout in which channels or positions are contiguous, every program leaves the
moments (mean, sum of squared differences) of some positions of some channels, a second kernel joins
those of a group in a fixed order (Chan et al., 1983), and a third normalises. The backward pass
does the same with sums of gradients.
"""

# What pyright does not know of Triton: loops that are unrolled, functions that return tuples.
# pyright: reportOperatorIssue=false, reportGeneralTypeIssues=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.bounds import Work
from wavecast.model.chip import Chip

_WHOLE_GROUP = 65536
"""Elements of a group that one program holds."""


@triton.jit
def silu_of(z):
    return libdevice.fast_dividef(z, 1.0 + tl.exp(-z))


@triton.jit
def silu_slope(z):
    part = libdevice.fast_dividef(1.0, 1.0 + tl.exp(-z))
    return part * (1.0 + z * (1.0 - part))


@triton.jit
def group_norm_whole_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, scale_ptr, groups, positions, eps, nought,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, BITS: tl.constexpr, SILU: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """One group [WIDTH channels, positions] per program, all held at once.

    Sums are of differences to the mean of the first channel: at most WIDTH times the variance
    cancels. `nought` is 0, which the compiler does not know: so it holds the elements as they are,
    not the float32 it made of them for the sums, and half the registers suffice.
    """
    number = tl.program_id(0)
    size = WIDTH * positions
    first = (tl.cast(number, tl.int64) if WIDE else number) * size
    place = tl.arange(0, BLOCK)
    inside = place < positions
    x = tl.load(x_ptr + first + place, mask=inside, other=0.0)
    middle = tl.sum(x.to(tl.float32), axis=0) / positions
    total = tl.where(inside, x.to(tl.float32) - middle, 0.0)
    squares = total * total
    held = (x.to(BITS, bitcast=True),)
    for channel in tl.static_range(1, WIDTH):
        x = tl.load(x_ptr + first + channel * positions + place, mask=inside, other=0.0)
        apart = tl.where(inside, x.to(tl.float32) - middle, 0.0)
        total += apart
        squares += apart * apart
        held = held + (x.to(BITS, bitcast=True),)  # noqa: RUF005 - Triton's tuples
    apart = tl.sum(total, axis=0) / size
    mean = middle + apart
    scale = tl.rsqrt(tl.sum(squares, axis=0) / size - apart * apart + eps)
    own = number % groups * WIDTH
    for channel in tl.static_range(WIDTH):
        factor, shift = affine(weight_ptr, bias_ptr, own + channel, True, scale)
        x = (held[channel] ^ nought.to(BITS)).to(x_ptr.dtype.element_ty, bitcast=True)
        y = (x.to(tl.float32) - mean) * factor + shift
        if SILU:
            y = silu_of(y)
        to = y_ptr + first + channel * positions + place
        tl.store(to, y.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(mean_ptr + number, mean)
    tl.store(scale_ptr + number, scale)


@triton.jit
def affine(weight_ptr, bias_ptr, channel, inside, scale):
    """(factor, shift) of channels: y = (x - mean) · factor + shift."""
    factor = scale
    if weight_ptr is not None:
        factor *= tl.load(weight_ptr + channel, mask=inside, other=0.0).to(tl.float32)
    shift = tl.zeros_like(factor)
    if bias_ptr is not None:
        shift = tl.load(bias_ptr + channel, mask=inside, other=0.0).to(tl.float32)
    return factor, shift


@triton.jit
def slab_of(channels, positions, span, CHANNELS: tl.constexpr, WIDE: tl.constexpr):
    """(image, channels, first and last position) of this program: spans of positions, then blocks
    of channels, then images."""
    spans = tl.cdiv(positions, span)
    blocks = tl.cdiv(channels, CHANNELS)
    number = tl.program_id(0)
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
    image, channel, first, last = slab_of(channels, positions, span, CHANNELS, WIDE)
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
def group_norm_join_kernel(
    means_ptr, squares_ptr, mean_ptr, scale_ptr, groups, width, positions, span, eps,
    CHANNELS: tl.constexpr, SPANS: tl.constexpr,
):  # fmt: skip
    """The moments of one group from those of its channels and spans."""
    number = tl.program_id(0)
    spans = tl.cdiv(positions, span)
    channel = tl.arange(0, CHANNELS)[None, :]
    size = width * positions
    from_group = number // groups * spans * groups * width + number % groups * width
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
    tl.store(mean_ptr + number, mean)
    tl.store(scale_ptr + number, tl.rsqrt(squares / size + eps))


@triton.jit
def group_norm_apply_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, scale_ptr, groups, width, positions, span,
    channel_stride, position_stride,
    SILU: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    channels = groups * width
    image, channel, first, last = slab_of(channels, positions, span, CHANNELS, WIDE)
    real = channel < channels
    group = image * groups + channel // width
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
            y = silu_of(y)
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
    image, channel, first, last = slab_of(channels, positions, span, CHANNELS, WIDE)
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
            dy *= silu_slope(x * factor[:, None] + shift[:, None])
        plain += dy
        along += dy * x
    to = (image * tl.cdiv(positions, span) + first // span) * channels + channel
    tl.store(plain_ptr + to, tl.sum(plain, axis=1), mask=real)
    tl.store(along_ptr + to, tl.sum(along, axis=1) * scale, mask=real)


@triton.jit
def group_norm_slopes_kernel(
    dy_ptr, x_ptr, weight_ptr, bias_ptr, mean_ptr, scale_ptr, plain_ptr, along_ptr, dx_ptr,
    groups, width, positions, span, channel_stride, position_stride,
    SILU: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """dx from a group's mean gradients, plain and along the normalised values."""
    channels = groups * width
    image, channel, first, last = slab_of(channels, positions, span, CHANNELS, WIDE)
    real = channel < channels
    group = image * groups + channel // width
    mean = tl.load(mean_ptr + group, mask=real, other=0.0)
    scale = tl.load(scale_ptr + group, mask=real, other=0.0)
    factor, shift = affine(weight_ptr, bias_ptr, channel, real, scale)
    plain = tl.load(plain_ptr + group, mask=real, other=0.0) * scale
    along = tl.load(along_ptr + group, mask=real, other=0.0) * scale * scale
    from_image = image * channels * positions + channel[:, None] * channel_stride
    for start in range(first, last, BLOCK):
        place = start + tl.arange(0, BLOCK)[None, :]
        inside = real[:, None] & (place < last)
        at = from_image + place * position_stride
        x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
        x -= mean[:, None]
        if SILU:
            dy *= silu_slope(x * factor[:, None] + shift[:, None])
        dx = dy * factor[:, None] - plain[:, None] - x * along[:, None]
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)


def group_norm(
    x: torch.Tensor,
    groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    silu: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(y, means, scales): every group of channels of an image normalised over all its positions.

    `x` is [images, channels, …] of float32, float16 or bfloat16, `weight` and `bias` [channels] of
    any of these, of one dtype (None: ones and zeros; a bias needs a weight). With `silu` y goes
    through SiLU. Computed in float32; y has the dtype of `x` and, for four dimensions in
    channels-last layout, that layout. The means and scales, 1 / sqrt(var + eps), are float32
    [images, groups], have no gradient, and are what `group_norm_backward` wants. Raises
    ArgumentError.
    """
    name = "group_norm"
    _check(name, x, groups, weight, bias)
    source = x.contiguous(memory_format=_layout(x))
    y = torch.empty_like(source)
    means = torch.empty((x.shape[0], groups), dtype=torch.float32, device=x.device)
    scales = torch.empty_like(means)
    if not x.numel():
        return y, means.zero_(), scales.fill_(eps**-0.5 if eps else float("inf"))
    shape = _Shape(source, groups)
    weight, bias = _contiguous(weight), _contiguous(bias)
    parameters = (weight is not None) + (bias is not None)
    block = triton.next_power_of_2(shape.positions)
    if not shape.last and shape.width <= 64 and block * shape.width <= _WHOLE_GROUP:
        launch(
            group_norm_whole_kernel,
            lambda _: (shape.images * groups,),
            (source, weight, bias, y, means, scales, groups, shape.positions, eps, 0),
            WHOLE,
            shape.problem(silu=silu, parameters=parameters),
            WIDTH=shape.width,
            BITS=tl.int32 if shape.bytes == 4 else tl.int16,
            SILU=silu,
            WIDE=checks.wide(source),
        )
        return y, means, scales
    parts = torch.empty(
        (2, shape.images, shape.spans, shape.channels), dtype=torch.float32, device=x.device
    )
    launch(
        group_norm_moments_kernel,
        shape.grid,
        (source, parts[0], parts[1], shape.channels, *shape.steps),
        MOMENTS,
        shape.problem(),
        WIDE=checks.wide(source),
    )
    launch(
        group_norm_join_kernel,
        lambda _: (shape.images * groups,),
        (parts[0], parts[1], means, scales, groups, shape.width, shape.positions, shape.span, eps),
        JOIN,
        {"width": shape.width, "spans": shape.spans},
    )
    launch(
        group_norm_apply_kernel,
        shape.grid,
        (source, weight, bias, y, means, scales, groups, shape.width, *shape.steps),
        APPLY,
        shape.problem(silu=silu, parameters=parameters),
        SILU=silu,
        WIDE=checks.wide(source),
    )
    return y, means, scales


def group_norm_reference(
    x: torch.Tensor,
    groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    silu: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`torch.group_norm`, in float32 at least."""
    kind = torch.promote_types(x.dtype, torch.float32)
    wide = x.to(kind).contiguous()
    factor, shift = (None if one is None else one.to(kind) for one in (weight, bias))
    y = torch.group_norm(wide, groups, factor, shift, eps)
    if silu:
        y = torch.nn.functional.silu(y)
    parts = wide.reshape(x.shape[0], groups, -1)
    means = parts.mean(-1) if x.numel() else parts.sum(-1)
    variances = (parts - means[..., None]).square()
    variances = variances.mean(-1) if x.numel() else variances.sum(-1)
    y = y.to(x.dtype).contiguous(memory_format=_layout(x))
    return y, means, torch.rsqrt(variances + eps)


def group_norm_backward(
    dy: torch.Tensor,
    x: torch.Tensor,
    groups: int,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    means: torch.Tensor,
    scales: torch.Tensor,
    silu: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of `group_norm` with respect to `x`, `weight` and `bias`, in their dtypes.

    `dy` is like `x`, `means` and `scales` those of the forward pass. Of what was not given the
    gradient has no elements. Sums are in float32 in a fixed order. Raises ArgumentError.
    """
    name = "group_norm_backward"
    _check(name, x, groups, weight, bias, dy=dy, means=means, scales=scales)
    checks.dtype_in(name, "dy", dy, checks.FLOATS)
    checks.shape_is(name, "dy", dy, x.shape)
    for what, tensor in (("means", means), ("scales", scales)):
        checks.dtype_in(name, what, tensor, (torch.float32,))
        checks.shape_is(name, what, tensor, (x.shape[0], groups))
    source = x.contiguous(memory_format=_layout(x))
    slope = dy.contiguous(memory_format=_layout(x))
    dx = torch.empty_like(source)
    if not x.numel():
        none = [x.new_empty(0) if one is None else torch.zeros_like(one) for one in (weight, bias)]
        return dx, none[0], none[1]
    shape = _Shape(source, groups)
    weight, bias = _contiguous(weight), _contiguous(bias)
    problem = shape.problem(silu=silu, parameters=(weight is not None) + (bias is not None))
    parts = torch.empty(
        (2, shape.images, shape.spans, shape.channels), dtype=torch.float32, device=x.device
    )
    given = (slope, source, weight, bias, means.contiguous(), scales.contiguous())
    launch(
        group_norm_sums_kernel,
        shape.grid,
        (*given, parts[0], parts[1], groups, shape.width, *shape.steps),
        SUMS,
        problem,
        SILU=silu,
        WIDE=checks.wide(source),
    )
    channels = parts.sum(2)
    weighted = channels if weight is None else channels * weight.to(torch.float32)
    size = shape.width * shape.positions
    plain, along = weighted.view(2, shape.images, groups, shape.width).sum(3) / size
    launch(
        group_norm_slopes_kernel,
        shape.grid,
        (*given, plain, along, dx, groups, shape.width, *shape.steps),
        SLOPES,
        problem,
        SILU=silu,
        WIDE=checks.wide(source),
    )
    dweight = x.new_empty(0) if weight is None else channels[1].sum(0).to(weight.dtype)
    return dx, dweight, x.new_empty(0) if bias is None else channels[0].sum(0).to(bias.dtype)


def group_norm_backward_reference(
    dy: torch.Tensor,
    x: torch.Tensor,
    groups: int,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    means: torch.Tensor,
    scales: torch.Tensor,
    silu: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """By the formula, in float32 at least."""
    kind = torch.promote_types(x.dtype, torch.float32)
    images, channels = x.shape[:2]
    parts = (images, groups, channels // groups, -1) if x.numel() else (images, groups, 1, 0)
    normal = x.to(kind).reshape(parts) - means.to(kind)[:, :, None, None]
    normal = normal * scales.to(kind)[:, :, None, None]
    slope = dy.to(kind).reshape(parts)
    factor = torch.ones((), dtype=kind, device=x.device)
    if weight is not None and x.numel():
        factor = weight.to(kind).reshape(groups, -1, 1)
    if silu:
        z = normal * factor
        if bias is not None and x.numel():
            z = z + bias.to(kind).reshape(groups, -1, 1)
        part = torch.sigmoid(z)
        slope = slope * part * (1 + z * (1 - part))
    direct = slope * factor
    dx = direct - direct.mean((2, 3), keepdim=True)
    dx = (dx - normal * (direct * normal).mean((2, 3), keepdim=True)) * scales.to(kind)[
        :, :, None, None
    ]
    dx = dx.reshape(x.shape).to(x.dtype).contiguous(memory_format=_layout(x))
    sums = [(slope * normal).sum((0, 3)).reshape(-1), slope.sum((0, 3)).reshape(-1)]
    if not x.numel():
        sums = [torch.zeros(x.shape[1], dtype=kind, device=x.device)] * 2
    found = [
        x.new_empty(0) if one is None else total.to(one.dtype, copy=True)
        for one, total in zip((weight, bias), sums, strict=True)
    ]
    return dx, found[0], found[1]


class _Shape:
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


def _layout(x: torch.Tensor) -> torch.memory_format:
    """Channels-last for tensors that are so and not plainly contiguous."""
    last = x.dim() == 4 and not x.is_contiguous()
    last = last and x.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last else torch.contiguous_format


def _contiguous(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.contiguous()


def _check(
    operator: str,
    x: torch.Tensor,
    groups: int,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    **others: torch.Tensor,
) -> None:
    checks.require(x.dim() >= 2, operator, f"x has {x.dim()} dimensions, expected 2 or more")
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    channels = x.shape[1]
    even = groups > 0 and channels > 0 and channels % groups == 0
    checks.require(even, operator, f"{channels} channels do not make {groups} groups")
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None:
            checks.dtype_in(operator, name, tensor, checks.FLOATS)
            checks.shape_is(operator, name, tensor, (channels,))
    checks.require(bias is None or weight is not None, operator, "a bias needs a weight")
    if weight is not None and bias is not None:
        checks.dtype_in(operator, "bias", bias, (weight.dtype,))
    checks.same_device(operator, x=x, weight=weight, bias=bias, **others)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    x, ctx.groups, weight, bias, _, ctx.silu = inputs
    ctx.save_for_backward(x, weight, bias, output[1], output[2])
    ctx.mark_non_differentiable(output[1], output[2])


def _gradient(ctx: Any, dy: torch.Tensor, *_: Any) -> tuple[Any, ...]:
    x, weight, bias, means, scales = ctx.saved_tensors
    dx, dweight, dbias = torch.ops.wavecast.group_norm_backward(
        dy, x, ctx.groups, weight, bias, means, scales, ctx.silu
    )
    weights = (None if weight is None else dweight, None if bias is None else dbias)
    return dx, None, *weights, None, None


def _whole_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {
        "BLOCK": (triton.next_power_of_2(problem["positions"]),),
        "num_warps": (8, 4, 16, 2, 1),
        "num_stages": (1,),
    }


def _whole_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    """Eight elements of each channel per lane make one wide load."""
    width = problem["channels"] // problem["groups"]
    size = problem["images"] * problem["channels"] * problem["positions"] * problem["bytes"]
    lane = settings["BLOCK"] / (settings["num_warps"] * Chip.of(device).lanes)
    found = estimates.streaming(
        device,
        settings,
        workgroups=problem["images"] * problem["groups"],
        read=size,
        written=size,
        elements=settings["BLOCK"] * width,
        operations=8.0,
        held=0.75,
    )
    return found * (1.0 + 0.1 * max(0.0, 8 / lane - 1) + 0.02 * max(0.0, lane * width / 80 - 1))


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


def _join_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    width = triton.next_power_of_2(problem["width"])
    spans = min(triton.next_power_of_2(problem["spans"]), max(1, 1024 // width))
    return {"CHANNELS": (width,), "SPANS": (spans,), "num_warps": (1, 4), "num_stages": (1,)}


def _join_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    """Small: a wave for what it can hold at ease."""
    return 1e-6 * abs(settings["CHANNELS"] * settings["SPANS"] / settings["num_warps"] - 256)


WHOLE = Space(
    kernel="group_norm_whole_kernel",
    axes=_whole_axes,
    seconds=_whole_seconds,
    classes=("images",),
)
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


def _inputs(
    make: Make,
    images: int,
    channels: int,
    height: int,
    width: int,
    groups: int,
    dtype: str,
    last: bool = False,
    weight: bool = True,
    bias: bool = True,
    silu: bool = False,
) -> dict[str, Any]:
    x = make.normal((images, channels, height, width), dtype)
    return {
        "x": x.contiguous(memory_format=torch.channels_last) if last else x,
        "groups": groups,
        "weight": make.normal((channels,), dtype) if weight else None,
        "bias": make.normal((channels,), dtype) if bias and weight else None,
        "silu": silu,
    }


def _backward_inputs(make: Make, dtype: str, groups: int, **sizes: Any) -> dict[str, Any]:
    given = _inputs(make, dtype=dtype, groups=groups, **sizes)
    x = given["x"]
    kind = torch.promote_types(x.dtype, torch.float32)
    if make.values:
        _, means, scales = group_norm_reference(x, groups)
    else:
        means = scales = torch.empty((x.shape[0], groups), dtype=kind, device=x.device)
    dy = make.normal(x.shape, dtype).contiguous(memory_format=_layout(x))
    return {"dy": dy, **given, "means": means, "scales": scales}


def _work(tensors: int, operations: float) -> Any:
    def work(images: int, channels: int, height: int, width: int, dtype: str, **_: Any) -> Work:
        count = images * channels * height * width
        size = count * getattr(torch, dtype).itemsize
        flops = {"vector_fp32": operations * count}
        return Work(flops, (tensors - 1) * size, size, "formula", "formula")

    return work


def _sizes(images: int, channels: int, side: int, groups: int, dtype: str, **more: Any) -> Any:
    sizes = {"images": images, "channels": channels, "height": side, "width": side}
    return {**sizes, "groups": groups, "dtype": dtype, **more}


_CASES = (
    _sizes(2, 6, 5, 3, "bfloat16"),
    _sizes(2, 12, 19, 2, "float16", silu=True),
    _sizes(2, 70, 9, 10, "float32", last=True, silu=True),
    _sizes(1, 4, 190, 2, "bfloat16"),
)
_THOROUGH = (
    _sizes(1, 32, 1, 32, "float32"),
    _sizes(2, 6, 20, 1, "bfloat16", weight=False),
    _sizes(2, 6, 20, 3, "bfloat16", bias=False, silu=True),
    _sizes(1, 130, 7, 2, "float16", silu=True),
    _sizes(2, 20, 33, 2, "bfloat16", last=True, bias=False),
)
_SHAPES = (
    _sizes(32, 320, 64, 32, "float16"),
    _sizes(32, 320, 64, 32, "float16", silu=True),
    _sizes(32, 320, 64, 32, "float16", last=True, silu=True),
    _sizes(1, 128, 512, 32, "bfloat16", silu=True),
)

OPERATORS = (
    Operator(
        name="group_norm",
        summary="normalisation of groups of channels over all positions, SiLU if asked",
        call=group_norm,
        reference=group_norm_reference,
        inputs=_inputs,
        work=_work(2, 8.0),
        batch=Batch(("x",), merged=True),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(WHOLE, MOMENTS, JOIN, APPLY),
        tolerance=Tolerance(ulps=4.0, accumulated=1e-5),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="group_norm_backward",
        summary="gradients of group_norm",
        call=group_norm_backward,
        reference=group_norm_backward_reference,
        inputs=_backward_inputs,
        work=_work(3, 16.0),
        cases=_CASES,
        thorough=_THOROUGH[1:],
        shapes=_SHAPES,
        spaces=(SUMS, SLOPES),
        tolerance=Tolerance(ulps=1.0, accumulated=3e-5),
    ),
)
