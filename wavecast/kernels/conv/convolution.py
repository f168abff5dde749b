"""Convolutions of one, two and three spatial dimensions, and how they are differentiated."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels import checks
from wavecast.kernels.conv import depthwise, implicit
from wavecast.kernels.conv.geometry import (
    ACTIVATIONS,
    Geometry,
    empty,
    formatted,
    geometry,
    keeps_last,
    same,
)
from wavecast.kernels.conv.gradients import bias_gradient


def convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int = 1,
    activation: str = "none",
) -> torch.Tensor:
    """Convolution of one, two or three spatial dimensions, as `torch.nn.functional.conv2d` has it,
    and an activation function of the result.

    `x` is [batch, channels, …] of float32, float16 or bfloat16 with one to three sizes after the
    channels, `weight` [filters, channels / groups, …] of the same dtype, `bias` [filters] of any of
    these. `stride`, `padding` (zeros on both sides) and `dilation` are one number per spatial
    dimension. `activation` is none, relu, silu or gelu (with erf).

    Sums are in float32. The result [batch, filters, …] has the dtype of `x` and its memory format:
    with channels innermost where `x` has them so, else contiguous; channels innermost are faster.
    Raises ArgumentError.
    """
    g = _geometry("convolution", x, weight, bias, stride, padding, dilation, groups, activation)
    checks.dtype_in("convolution", "x", x, checks.FLOATS)
    if bias is not None:
        checks.dtype_in("convolution", "bias", bias, checks.FLOATS)
        bias = bias.contiguous()
    last = keeps_last(x)
    if not g.batch:
        return empty(g.output_shape(), last, x.dtype, x.device)
    if g.depthwise:
        return depthwise.convolve(x, weight, bias, g, activation, last)
    return implicit.product(x, weight, bias, g, activation, last)


def convolution_reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int = 1,
    activation: str = "none",
) -> torch.Tensor:
    """PyTorch's convolution, in float32 at least."""
    _geometry("convolution", x, weight, bias, stride, padding, dilation, groups, activation)
    kind = torch.promote_types(x.dtype, torch.float32)
    y = torch.convolution(
        x.to(kind),
        weight.to(kind),
        None if bias is None else bias.to(kind),
        stride,
        padding,
        dilation,
        False,
        [0] * len(stride),
        groups,
    )
    if activation != "none":
        y = getattr(torch.nn.functional, activation)(y)
    return formatted(y.to(x.dtype), keeps_last(x))


def conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: list[int] | None = None,
    padding: list[int] | None = None,
    dilation: list[int] | None = None,
    groups: int = 1,
    activation: str = "none",
) -> torch.Tensor:
    """`convolution` of images: `x` [batch, channels, height, width], `weight` [filters,
    channels / groups, height, width]; strides and dilations left out are one, padding is none; the
    rest as `convolution` says. Raises ArgumentError."""
    checks.require(x.dim() == 4, "conv2d", f"x has {x.dim()} dimensions, expected 4")
    way = filled(stride, padding, dilation)
    return convolution(x, weight, bias, *way, groups, activation)


def conv2d_reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: list[int] | None = None,
    padding: list[int] | None = None,
    dilation: list[int] | None = None,
    groups: int = 1,
    activation: str = "none",
) -> torch.Tensor:
    """PyTorch's convolution, in float32 at least."""
    checks.require(x.dim() == 4, "conv2d", f"x has {x.dim()} dimensions, expected 4")
    way = filled(stride, padding, dilation)
    return convolution_reference(x, weight, bias, *way, groups, activation)


def filled(
    stride: list[int] | None, padding: list[int] | None, dilation: list[int] | None
) -> tuple[list[int], list[int], list[int]]:
    """What a convolution of images takes for arguments left out."""
    return stride or [1, 1], padding or [0, 0], dilation or [1, 1]


def _geometry(
    operator: str,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    activation: str,
) -> Geometry:
    g = geometry(operator, x.shape, weight.shape, stride, padding, dilation, groups)
    checks.require(
        activation in ACTIVATIONS,
        operator,
        f"activation {activation!r}, expected {', '.join(ACTIVATIONS)}",
    )
    same(operator, x=x, weight=weight)
    if bias is not None:
        checks.shape_is(operator, "bias", bias, (g.filters,))
        checks.same_device(operator, x=x, bias=bias)
    return g


def setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, weight, bias, stride, padding, dilation, groups, activation = inputs
    ctx.save_for_backward(x, weight, bias, output if activation == "relu" else None)
    ctx.given = (*filled(stride, padding, dilation), groups)
    ctx.activation = activation


def gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    """Before silu and gelu the convolution is done again: nothing is kept for them."""
    x, weight, bias, output = ctx.saved_tensors
    if ctx.activation == "relu":
        dy = torch.ops.aten.threshold_backward(dy, output, 0)
    elif ctx.activation != "none":
        before = torch.ops.wavecast.convolution(x, weight, bias, *ctx.given, "none")
        slope = getattr(torch.ops.aten, f"{ctx.activation}_backward")
        dy = slope(dy, before)
    dx = dw = db = None
    if ctx.needs_input_grad[0]:
        dx = torch.ops.wavecast.convolution_backward_data(dy, weight, list(x.shape[2:]), *ctx.given)
    if ctx.needs_input_grad[1]:
        dw, db = torch.ops.wavecast.convolution_backward_weight(
            dy, x, list(weight.shape[2:]), *ctx.given, bias is not None
        )
    elif bias is not None and ctx.needs_input_grad[2]:
        db = bias_gradient(dy)
    if bias is None or db is None or not ctx.needs_input_grad[2]:
        return dx, dw, None, None, None, None, None, None
    return dx, dw, db.to(bias.dtype), None, None, None, None, None


__all__ = [
    "conv2d",
    "conv2d_reference",
    "convolution",
    "convolution_reference",
    "gradient",
    "setup",
]
