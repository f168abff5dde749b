"""Convolutions of one, two and three spatial dimensions, and their gradients."""

from typing import Any

import torch
from torch import Tensor

from wavecast.kernels import checks
from wavecast.kernels.conv import depthwise, implicit, weights
from wavecast.kernels.conv.geometry import (
    ACTIVATIONS,
    Geometry,
    empty,
    geometry,
    keeps_last,
    same,
    to_memory_format,
)
from wavecast.kernels.operator import Gradient
from wavecast.kernels.references import wide_dtype, widened


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], groups: int = 1, activation: str = "none",
) -> Tensor:  # fmt: skip
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
    g = _geometry(x, weight, bias, activation, stride, padding, dilation, groups)
    checks.dtype_in("convolution", "x", x, checks.FLOATS)
    if bias is not None:
        checks.dtype_in("convolution", "bias", bias, checks.FLOATS)
        bias = bias.contiguous()
    last = keeps_last(x)
    if not g.batch:
        return empty(g.output_shape(), last, x.dtype, x.device)
    convolve = depthwise.convolve if g.depthwise else implicit.product
    return convolve(x, weight, bias, g, activation, last)


def convolution_reference(
    x, weight, bias, stride, padding, dilation, groups=1, activation="none"
):  # fmt: skip
    _geometry(x, weight, bias, activation, stride, padding, dilation, groups)
    dtype = wide_dtype(x)
    wide = (x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype))
    none = [0] * len(stride)
    y = torch.convolution(*wide, stride, padding, dilation, False, none, groups)
    if activation != "none":
        y = getattr(torch.nn.functional, activation)(y)
    return to_memory_format(y.to(x.dtype), keeps_last(x))


def conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: list[int] | None = None,
    padding: list[int] | None = None, dilation: list[int] | None = None, groups: int = 1,
    activation: str = "none",
) -> Tensor:  # fmt: skip
    """`convolution` of images: `x` [batch, channels, height, width], `weight` [filters,
    channels / groups, height, width]; strides and dilations left out are one, padding is none; the
    rest as `convolution` says. Raises ArgumentError."""
    checks.require(x.dim() == 4, "conv2d", f"x has {x.dim()} dimensions, expected 4")
    return convolution(
        x, weight, bias, *_fill_defaults(stride, padding, dilation), groups, activation
    )


def conv2d_reference(
    x, weight, bias=None, stride=None, padding=None, dilation=None, groups=1, activation="none"
):  # fmt: skip
    checks.require(x.dim() == 4, "conv2d", f"x has {x.dim()} dimensions, expected 4")
    window = _fill_defaults(stride, padding, dilation)
    return convolution_reference(x, weight, bias, *window, groups, activation)


def convolution_backward_data(
    dy: Tensor, weight: Tensor, size: list[int], stride: list[int], padding: list[int],
    dilation: list[int], groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `convolution` (without activation) with respect to its input, whose spatial
    sizes are `size`: a transposed convolution.

    `dy` is [batch, filters, …] of float32, float16 or bfloat16, `weight` [filters, channels /
    groups, …] of the same dtype. The result has the dtype and the memory format of `dy`; sums are
    in float32 in a fixed order. Raises ArgumentError.
    """
    g = _data_geometry(dy, weight, size, stride, padding, dilation, groups)
    checks.dtype_in("convolution_backward_data", "dy", dy, checks.FLOATS)
    same("convolution_backward_data", dy=dy, weight=weight)
    last = keeps_last(dy)
    if not g.batch:
        return empty(g.input_shape(), last, dy.dtype, dy.device)
    convolve = depthwise.convolve if g.depthwise else implicit.product
    return convolve(dy, weight, None, g, "none", last, transposed=True)


def convolution_backward_data_reference(
    dy, weight, size, stride, padding, dilation, groups=1
):  # fmt: skip
    g = _data_geometry(dy, weight, size, stride, padding, dilation, groups)
    x = dy.new_empty(g.input_shape(), dtype=wide_dtype(dy))
    wide = (widened(dy), x, weight.to(x.dtype))
    dx = _gradients(*wide, stride, padding, dilation, groups, [True, False, False])[0]
    return to_memory_format(dx.to(dy.dtype), keeps_last(dy))


def convolution_backward_weight(
    dy: Tensor, x: Tensor, kernel: list[int], stride: list[int], padding: list[int],
    dilation: list[int], groups: int = 1, bias: bool = True,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The gradients of `convolution` (without activation) with respect to its weight, whose spatial
    sizes are `kernel`, and (`bias`; else an empty tensor) its bias.

    `dy` is [batch, filters, …] and `x` [batch, channels, …], both of float32, float16 or bfloat16;
    the results have their dtype, the first the memory format of `x`. Sums are in float32 in a fixed
    order: over parts of all positions, then over the parts. Raises ArgumentError.
    """
    g = _weight_geometry(dy, x, kernel, stride, padding, dilation, groups)
    checks.dtype_in("convolution_backward_weight", "x", x, checks.FLOATS)
    same("convolution_backward_weight", dy=dy, x=x)
    last = keeps_last(x)
    if not g.batch:
        dw = empty(g.weight_shape(), last, x.dtype, x.device)
        return dw.zero_(), x.new_zeros(g.filters if bias else 0)
    gradient = depthwise.weight_gradient if g.depthwise else weights.gradient
    db = _bias_gradient(dy).to(x.dtype) if bias else x.new_empty(0)
    return gradient(dy, x, g, last), db


def convolution_backward_weight_reference(
    dy, x, kernel, stride, padding, dilation, groups=1, bias=True
):  # fmt: skip
    g = _weight_geometry(dy, x, kernel, stride, padding, dilation, groups)
    weight = x.new_empty(g.weight_shape(), dtype=wide_dtype(x))
    wide = (dy.to(weight.dtype), widened(x), weight)
    dw = _gradients(*wide, stride, padding, dilation, groups, [False, True, False])[1]
    db = _bias_gradient(wide[0]).to(x.dtype) if bias else x.new_empty(0)
    return to_memory_format(dw.to(x.dtype), keeps_last(x)), db


def _fill_defaults(
    stride: list[int] | None, padding: list[int] | None, dilation: list[int] | None
) -> tuple[list[int], list[int], list[int]]:
    """What a convolution of images takes for arguments left out."""
    return stride or [1, 1], padding or [0, 0], dilation or [1, 1]


def _bias_gradient(dy: Tensor) -> Tensor:
    return dy.sum((0, *range(2, dy.dim())), dtype=wide_dtype(dy))


def _gradients(dy, x, weight, stride, padding, dilation, groups, mask):
    options = (stride, padding, dilation, False, [0] * len(stride), groups)
    return torch.ops.aten.convolution_backward(dy, x, weight, None, *options, mask)


def _geometry(
    x: Tensor, weight: Tensor, bias: Tensor | None, activation: str, *rest: Any
) -> Geometry:
    """The geometry of checked arguments; `rest` is stride, padding, dilation and groups."""
    operator = "convolution"
    g = geometry(operator, x.shape, weight.shape, *rest)
    checks.one_of(operator, "activation", activation, ACTIVATIONS)
    same(operator, x=x, weight=weight)
    if bias is not None:
        checks.shape_is(operator, "bias", bias, (g.filters,))
        checks.same_device(operator, x=x, bias=bias)
    return g


def _data_geometry(
    dy: Tensor, weight: Tensor, size: list[int], *rest: Any
) -> Geometry:  # fmt: skip
    operator = "convolution_backward_data"
    checks.require(
        weight.dim() == len(size) + 2 == dy.dim(),
        operator,
        f"dy has {dy.dim()}, weight {weight.dim()} and size {len(size)} dimensions",
    )
    g = geometry(operator, (dy.shape[0], weight.shape[1] * rest[3], *size), weight.shape, *rest)
    checks.shape_is(operator, "dy", dy, g.output_shape())
    return g


def _weight_geometry(
    dy: Tensor, x: Tensor, kernel: list[int], *rest: Any
) -> Geometry:  # fmt: skip
    operator = "convolution_backward_weight"
    checks.require(rest[3] >= 1, operator, f"{rest[3]} groups")
    checks.require(
        x.dim() == dy.dim() == len(kernel) + 2,
        operator,
        f"dy has {dy.dim()}, x {x.dim()} and kernel {len(kernel)} dimensions",
    )
    g = geometry(operator, x.shape, (dy.shape[1], x.shape[1] // rest[3], *kernel), *rest)
    checks.shape_is(operator, "dy", dy, g.output_shape())
    return g


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, bias, stride, padding, dilation, groups, activation = inputs
    ctx.save_for_backward(x, weight, bias, output if activation == "relu" else None)
    ctx.given = (*_fill_defaults(stride, padding, dilation), groups)
    ctx.activation = activation


def _backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    """Before silu and gelu the convolution is computed again: nothing is saved for them."""
    x, weight, bias, output = ctx.saved_tensors
    if ctx.activation == "relu":
        dy = torch.ops.aten.threshold_backward(dy, output, 0)
    elif ctx.activation != "none":
        before = torch.ops.wavecast.convolution(x, weight, bias, *ctx.given, "none")
        dy = getattr(torch.ops.aten, f"{ctx.activation}_backward")(dy, before)
    dx = dw = db = None
    if ctx.needs_input_grad[0]:
        dx = torch.ops.wavecast.convolution_backward_data(dy, weight, list(x.shape[2:]), *ctx.given)
    if ctx.needs_input_grad[1]:
        dw, db = torch.ops.wavecast.convolution_backward_weight(
            dy, x, list(weight.shape[2:]), *ctx.given, bias is not None
        )
    elif bias is not None and ctx.needs_input_grad[2]:
        db = _bias_gradient(dy)
    if bias is None or db is None or not ctx.needs_input_grad[2]:
        return dx, dw, *(None,) * 6
    return dx, dw, db.to(bias.dtype), *(None,) * 5


GRADIENT = Gradient(_setup, _backward)
