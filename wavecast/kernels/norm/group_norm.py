"""Group norm over channels and positions of images, with SiLU after it where asked.

Where the channels of a group lie together and fit a program's registers, one kernel reads them
once (`group_whole`); else kernels over slabs read them twice (`group_slabs` and
`group_slabs_backward`).
"""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels import checks
from wavecast.kernels.derivative import by_reference, pulled_back
from wavecast.kernels.inputs import Make
from wavecast.kernels.norm import group_slabs, group_slabs_backward, group_whole
from wavecast.kernels.norm.group_slab import Shape
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.kernels.strides import contiguous
from wavecast.model.bounds import Work


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
    [images, groups], and are what `group_norm_backward` wants. Raises ArgumentError.
    """
    name = "group_norm"
    _check(name, x, groups, weight, bias)
    source = x.contiguous(memory_format=_layout(x))
    y = torch.empty_like(source)
    means = torch.empty((x.shape[0], groups), dtype=torch.float32, device=x.device)
    scales = torch.empty_like(means)
    if not x.numel():
        return y, means.zero_(), scales.fill_(eps**-0.5 if eps else float("inf"))
    shape = Shape(source, groups)
    way = group_whole if group_whole.holds(shape, shape.bytes) else group_slabs
    way.forward(
        shape, source, contiguous(weight), contiguous(bias), y, means, scales, eps, silu=silu
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
    y = y.to(x.dtype).contiguous(memory_format=_layout(x))
    return y, *_statistics(wide, groups, eps)


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
    shape = Shape(source, groups)
    both = shape.bytes + slope.element_size()
    way = group_whole if group_whole.holds(shape, both) else group_slabs_backward
    plain, along = way.backward(
        shape, slope, source, contiguous(weight), contiguous(bias), means.contiguous(),
        scales.contiguous(), dx, silu=silu,
    )  # fmt: skip
    dweight = x.new_empty(0) if weight is None else along.sum(0).to(weight.dtype)
    return dx, dweight, x.new_empty(0) if bias is None else plain.sum(0).to(bias.dtype)


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


def _layout(x: torch.Tensor) -> torch.memory_format:
    """Channels-last for tensors that are so and not plainly contiguous."""
    last = x.dim() == 4 and not x.is_contiguous()
    last = last and x.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last else torch.contiguous_format


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
    ctx.set_materialize_grads(False)
    x, ctx.groups, weight, bias, ctx.eps, ctx.silu = inputs
    ctx.save_for_backward(x, weight, bias, output[1], output[2])


def _gradient(
    ctx: Any, dy: torch.Tensor | None, dmeans: torch.Tensor | None, dscales: torch.Tensor | None
) -> tuple[Any, ...]:
    x, weight, bias, means, scales = ctx.saved_tensors
    dx, dweight, dbias = torch.ops.wavecast.group_norm_backward(
        torch.zeros_like(x) if dy is None else dy,
        *(x, ctx.groups, weight, bias, means, scales, ctx.silu),
    )
    if dmeans is not None or dscales is not None:  # gradients of gradients come this way
        slopes = [
            torch.zeros_like(one) if slope is None else slope
            for one, slope in ((means, dmeans), (scales, dscales))
        ]
        dx = dx + pulled_back(_statistics, (x, ctx.groups, ctx.eps), (0,), slopes)[0]
    weights = (None if weight is None else dweight, None if bias is None else dbias)
    return dx, None, *weights, None, None


def _statistics(x: torch.Tensor, groups: int, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(means, scales) in float32 at least."""
    kind = torch.promote_types(x.dtype, torch.float32)
    if not x.numel():
        means = torch.zeros((x.shape[0], groups), dtype=kind, device=x.device)
        return means, torch.rsqrt(means + eps)
    parts = x.to(kind).reshape(x.shape[0], groups, -1)
    variances, means = torch.var_mean(parts, -1, correction=0)
    return means, torch.rsqrt(variances + eps)


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
        spaces=(group_whole.FORWARD, group_slabs.MOMENTS, group_slabs.JOIN, group_slabs.APPLY),
        tolerance=Tolerance(ulps=4.0, accumulated=1e-5),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="group_norm_backward",
        summary="gradients of group_norm",
        call=group_norm_backward,
        reference=group_norm_backward_reference,
        gradient=by_reference(group_norm_backward_reference),
        inputs=_backward_inputs,
        work=_work(3, 16.0),
        cases=_CASES,
        thorough=_THOROUGH[1:],
        shapes=_SHAPES,
        spaces=(group_whole.BACKWARD, group_slabs_backward.SUMS, group_slabs_backward.SLOPES),
        tolerance=Tolerance(ulps=1.0, accumulated=3e-5),
    ),
)
