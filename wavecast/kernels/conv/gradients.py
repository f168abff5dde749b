"""The gradients of a convolution: of its input, and of its weight and bias."""

from __future__ import annotations

import torch

from wavecast.kernels import checks
from wavecast.kernels.conv import depthwise, implicit, weights
from wavecast.kernels.conv.geometry import Geometry, empty, formatted, geometry, keeps_last, same


def convolution_backward_data(
    dy: torch.Tensor,
    weight: torch.Tensor,
    size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int = 1,
) -> torch.Tensor:
    """The gradient of `convolution` (without activation) with respect to its input, whose spatial
    sizes are `size`: a transposed convolution.

    `dy` is [batch, filters, …] of float32, float16 or bfloat16, `weight` [filters, channels /
    groups, …] of the same dtype. The result has the dtype and the memory format of `dy`; sums are
    in float32 in a fixed order. Raises ArgumentError.
    """
    name = "convolution_backward_data"
    g = _backward_geometry(name, dy, weight, size, stride, padding, dilation, groups)
    checks.dtype_in(name, "dy", dy, checks.FLOATS)
    same(name, dy=dy, weight=weight)
    last = keeps_last(dy)
    if not g.batch:
        return empty(g.input_shape(), last, dy.dtype, dy.device)
    if g.depthwise:
        return depthwise.convolve(dy, weight, None, g, "none", last, transposed=True)
    return implicit.product(dy, weight, None, g, "none", last, transposed=True)


def convolution_backward_data_reference(
    dy: torch.Tensor,
    weight: torch.Tensor,
    size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int = 1,
) -> torch.Tensor:
    """PyTorch's gradient, in float32 at least."""
    name = "convolution_backward_data"
    g = _backward_geometry(name, dy, weight, size, stride, padding, dilation, groups)
    kind = torch.promote_types(dy.dtype, torch.float32)
    x = dy.new_empty(g.input_shape(), dtype=kind)
    dx = _aten(dy.to(kind), x, weight.to(kind), stride, padding, dilation, groups, 0)
    return formatted(dx.to(dy.dtype), keeps_last(dy))


def convolution_backward_weight(
    dy: torch.Tensor,
    x: torch.Tensor,
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int = 1,
    bias: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `convolution` (without activation) with respect to its weight, whose spatial
    sizes are `kernel`, and (`bias`; else an empty tensor) its bias.

    `dy` is [batch, filters, …] and `x` [batch, channels, …], both of float32, float16 or bfloat16;
    the results have their dtype, the first the memory format of `x`. Sums are in float32 in a fixed
    order: over parts of all positions, then over the parts. Raises ArgumentError.
    """
    name = "convolution_backward_weight"
    g = _weight_geometry(name, dy, x, kernel, stride, padding, dilation, groups)
    checks.dtype_in(name, "x", x, checks.FLOATS)
    same(name, dy=dy, x=x)
    last = keeps_last(x)
    if not g.batch:
        dw = empty(g.weight_shape(), last, x.dtype, x.device)
        return dw.zero_(), x.new_zeros(g.filters if bias else 0)
    dw = (
        depthwise.weight_gradient(dy, x, g, last)
        if g.depthwise
        else weights.gradient(dy, x, g, last)
    )
    return dw, bias_gradient(dy).to(x.dtype) if bias else x.new_empty(0)


def convolution_backward_weight_reference(
    dy: torch.Tensor,
    x: torch.Tensor,
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int = 1,
    bias: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """PyTorch's gradient, in float32 at least."""
    name = "convolution_backward_weight"
    g = _weight_geometry(name, dy, x, kernel, stride, padding, dilation, groups)
    kind = torch.promote_types(x.dtype, torch.float32)
    weight = x.new_empty(g.weight_shape(), dtype=kind)
    dw = _aten(dy.to(kind), x.to(kind), weight, stride, padding, dilation, groups, 1)
    db = bias_gradient(dy.to(kind)).to(x.dtype) if bias else x.new_empty(0)
    return formatted(dw.to(x.dtype), keeps_last(x)), db


def bias_gradient(dy: torch.Tensor) -> torch.Tensor:
    kind = torch.promote_types(dy.dtype, torch.float32)
    return dy.sum((0, *range(2, dy.dim())), dtype=kind)


def _aten(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    which: int,
) -> torch.Tensor:
    wanted = [which == 0, which == 1, False]
    none = [0] * len(stride)
    return torch.ops.aten.convolution_backward(
        dy, x, weight, None, stride, padding, dilation, False, none, groups, wanted
    )[which]


def _backward_geometry(
    operator: str,
    dy: torch.Tensor,
    weight: torch.Tensor,
    size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Geometry:
    checks.require(
        weight.dim() == len(size) + 2 == dy.dim(),
        operator,
        f"dy has {dy.dim()}, weight {weight.dim()} and size {len(size)} dimensions",
    )
    shape = (dy.shape[0], weight.shape[1] * groups, *size)
    g = geometry(operator, shape, weight.shape, stride, padding, dilation, groups)
    checks.shape_is(operator, "dy", dy, g.output_shape())
    return g


def _weight_geometry(
    operator: str,
    dy: torch.Tensor,
    x: torch.Tensor,
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Geometry:
    checks.require(groups >= 1, operator, f"{groups} groups")
    checks.require(
        x.dim() == dy.dim() == len(kernel) + 2,
        operator,
        f"dy has {dy.dim()}, x {x.dim()} and kernel {len(kernel)} dimensions",
    )
    shape = (dy.shape[1], x.shape[1] // groups, *kernel)
    g = geometry(operator, x.shape, shape, stride, padding, dilation, groups)
    checks.shape_is(operator, "dy", dy, g.output_shape())
    return g


__all__ = [
    "bias_gradient",
    "convolution_backward_data",
    "convolution_backward_data_reference",
    "convolution_backward_weight",
    "convolution_backward_weight_reference",
]
