"""Convolutions of one, two and three spatial dimensions, and the gradient of their input."""

from __future__ import annotations

import math
from typing import Any

import torch

from wavecast.kernels import checks
from wavecast.kernels.conv import combine, depthwise, implicit, layout, weights
from wavecast.kernels.conv.geometry import (
    ACTIVATIONS,
    Geometry,
    empty,
    formatted,
    geometry,
    keeps_last,
)
from wavecast.kernels.conv.ranking import DTYPES
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Gradient, Operator, Sizes, Tolerance
from wavecast.model.bounds import Work


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
    way = _filled(stride, padding, dilation)
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
    way = _filled(stride, padding, dilation)
    return convolution_reference(x, weight, bias, *way, groups, activation)


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
    _same(name, dy=dy, weight=weight)
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
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `convolution` (without activation) with respect to its weight, whose spatial
    sizes are `kernel`, and its bias.

    `dy` is [batch, filters, …] and `x` [batch, channels, …], both of float32, float16 or bfloat16;
    the results have their dtype, the first the memory format of `x`. Sums are in float32 in a fixed
    order: over parts of all positions, then over the parts. Raises ArgumentError.
    """
    name = "convolution_backward_weight"
    g = _weight_geometry(name, dy, x, kernel, stride, padding, dilation, groups)
    checks.dtype_in(name, "x", x, checks.FLOATS)
    _same(name, dy=dy, x=x)
    last = keeps_last(x)
    if not g.batch:
        dw = empty(g.weight_shape(), last, x.dtype, x.device)
        return dw.zero_(), torch.zeros(g.filters, dtype=x.dtype, device=x.device)
    dw = (
        depthwise.weight_gradient(dy, x, g, last)
        if g.depthwise
        else weights.gradient(dy, x, g, last)
    )
    return dw, _bias_gradient(dy).to(x.dtype)


def convolution_backward_weight_reference(
    dy: torch.Tensor,
    x: torch.Tensor,
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int = 1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """PyTorch's gradient, in float32 at least."""
    name = "convolution_backward_weight"
    g = _weight_geometry(name, dy, x, kernel, stride, padding, dilation, groups)
    kind = torch.promote_types(x.dtype, torch.float32)
    weight = x.new_empty(g.weight_shape(), dtype=kind)
    dw = _aten(dy.to(kind), x.to(kind), weight, stride, padding, dilation, groups, 1)
    db = _bias_gradient(dy.to(kind)).to(x.dtype)
    return formatted(dw.to(x.dtype), keeps_last(x)), db


def _filled(
    stride: list[int] | None, padding: list[int] | None, dilation: list[int] | None
) -> tuple[list[int], list[int], list[int]]:
    """What a convolution of images takes for arguments left out."""
    return stride or [1, 1], padding or [0, 0], dilation or [1, 1]


def _bias_gradient(dy: torch.Tensor) -> torch.Tensor:
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
    _same(operator, x=x, weight=weight)
    if bias is not None:
        checks.shape_is(operator, "bias", bias, (g.filters,))
        checks.same_device(operator, x=x, bias=bias)
    return g


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


def _same(operator: str, **tensors: torch.Tensor) -> None:
    checks.same_device(operator, **tensors)
    (first, a), (second, b) = tensors.items()
    checks.require(a.dtype == b.dtype, operator, f"{first} is {a.dtype}, {second} {b.dtype}")


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, weight, bias, stride, padding, dilation, groups, activation = inputs
    ctx.save_for_backward(x, weight, bias, output if activation == "relu" else None)
    ctx.given = (*_filled(stride, padding, dilation), groups)
    ctx.activation = activation


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
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
            dy, x, list(weight.shape[2:]), *ctx.given
        )
    elif bias is not None and ctx.needs_input_grad[2]:
        db = _bias_gradient(dy)
    if bias is None or db is None or not ctx.needs_input_grad[2]:
        return dx, dw, None, None, None, None, None, None
    return dx, dw, db.to(bias.dtype), None, None, None, None, None


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split("x")]


def _shapes(sizes: Sizes) -> tuple[list[int], list[int], dict[str, Any]]:
    """Shapes of input and weight, and the other arguments, of a call given in plain sizes."""
    size, taps = _numbers(sizes["size"]), _numbers(sizes["kernel"])
    dims, groups = len(size), sizes.get("groups", 1)
    rest = {
        "stride": _numbers(sizes.get("stride", "x".join("1" * dims))),
        "padding": _numbers(sizes.get("padding", "x".join("0" * dims))),
        "dilation": _numbers(sizes.get("dilation", "x".join("1" * dims))),
        "groups": groups,
    }
    x = [sizes["batch"], sizes["channels"], *size]
    return x, [sizes["filters"], sizes["channels"] // groups, *taps], rest


def _given(sizes: Sizes) -> Geometry:
    x, weight, rest = _shapes(sizes)
    return geometry("convolution", x, weight, **rest)


def _tensor(make: Make, shape: Any, sizes: Sizes, scale: float = 1.0) -> torch.Tensor:
    last = sizes.get("layout", "last") == "last"
    if not last:
        return make.normal(shape, sizes["dtype"], scale)
    drawn = make.normal((shape[0], *shape[2:], shape[1]), sizes["dtype"], scale)
    return drawn.movedim(-1, 1)


def _inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    x, weight, rest = _shapes(sizes)
    scale = math.prod(weight[1:]) ** -0.5
    bias = make.normal((weight[0],), sizes["dtype"]) if sizes.get("bias") else None
    return {
        "x": _tensor(make, x, sizes),
        "weight": _tensor(make, weight, sizes, scale),
        "bias": bias,
        **rest,
        "activation": sizes.get("activation", "none"),
    }


def _data_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    x, weight, rest = _shapes(sizes)
    return {
        "dy": _tensor(make, _given(sizes).output_shape(), sizes),
        "weight": _tensor(make, weight, sizes, math.prod(weight[1:]) ** -0.5),
        "size": x[2:],
        **rest,
    }


def _weight_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    x, weight, rest = _shapes(sizes)
    dy = _tensor(make, _given(sizes).output_shape(), sizes)
    return {"dy": dy, "x": _tensor(make, x, sizes), "kernel": weight[2:], **rest}


def _work(way: str) -> Any:
    def work(**sizes: Any) -> Work:
        g = _given(sizes)
        kind = getattr(torch, sizes["dtype"])
        x, y, w = (math.prod(s()) for s in (g.input_shape, g.output_shape, g.weight_shape))
        written = {"forward": y, "data": x, "weight": w + g.filters}[way]
        taps = math.prod(g.taps)
        products = 2.0 * y * (g.channels // g.groups) * taps
        name = "vector_fp32" if g.depthwise else DTYPES[kind]
        read = x + y + w + (g.filters if way == "weight" else 0) - written
        if way == "forward" and sizes.get("bias"):
            read += g.filters
        size = kind.itemsize
        return Work({name: products}, read * size, written * size, "formula", "formula")

    return work


def _net(
    channels: int, filters: int, size: int, taps: int, batch: int = 32, stride: int = 1, **more: Any
) -> dict[str, Any]:
    """A layer of an image network."""
    pad = taps // 2
    return {
        "batch": batch,
        "channels": channels,
        "filters": filters,
        "size": f"{size}x{size}",
        "kernel": f"{taps}x{taps}",
        "stride": f"{stride}x{stride}",
        "padding": f"{pad}x{pad}",
        "dtype": "float16",
        **more,
    }


_CASES: tuple[dict[str, Any], ...] = (
    {
        "batch": 2,
        "channels": 4,
        "filters": 6,
        "size": "5x4",
        "kernel": "3x2",
        "stride": "2x1",
        "padding": "1x1",
        "groups": 2,
        "dtype": "float32",
        "bias": True,
    },
    {
        "batch": 2,
        "channels": 40,
        "filters": 72,
        "size": "9x7",
        "kernel": "3x3",
        "padding": "1x1",
        "dtype": "float16",
        "bias": True,
        "activation": "relu",
    },
    {
        "batch": 1,
        "channels": 3,
        "filters": 20,
        "size": "17x15",
        "kernel": "7x7",
        "stride": "2x2",
        "padding": "3x3",
        "dtype": "bfloat16",
        "layout": "first",
    },
    {
        "batch": 3,
        "channels": 36,
        "filters": 36,
        "size": "11x6",
        "kernel": "3x3",
        "stride": "2x1",
        "padding": "1x1",
        "groups": 36,
        "dtype": "float16",
    },
    {
        "batch": 1,
        "channels": 200,
        "filters": 24,
        "size": "8x4",
        "kernel": "1x1",
        "dtype": "bfloat16",
        "bias": True,
        "activation": "silu",
    },
)
_THOROUGH: tuple[dict[str, Any], ...] = (
    {
        "batch": 2,
        "channels": 24,
        "filters": 18,
        "size": "30",
        "kernel": "5",
        "stride": "3",
        "padding": "2",
        "dilation": "2",
        "dtype": "float16",
    },
    {
        "batch": 1,
        "channels": 16,
        "filters": 18,
        "size": "5x6x7",
        "kernel": "2x3x3",
        "stride": "1x2x1",
        "padding": "1x1x0",
        "dilation": "1x1x2",
        "dtype": "bfloat16",
    },
    {
        "batch": 2,
        "channels": 10,
        "filters": 20,
        "size": "3x6x5",
        "kernel": "2x3x1",
        "stride": "2x1x2",
        "padding": "1x1x0",
        "groups": 10,
        "dtype": "float32",
        "layout": "first",
        "activation": "gelu",
    },
    {
        "batch": 2,
        "channels": 40,
        "filters": 24,
        "size": "4x12",
        "kernel": "1x1",
        "dtype": "float16",
        "layout": "first",
        "activation": "gelu",
        "bias": True,
    },
    {
        "batch": 2,
        "channels": 12,
        "filters": 18,
        "size": "9x8",
        "kernel": "3x2",
        "stride": "1x2",
        "padding": "1x0",
        "dilation": "2x1",
        "groups": 3,
        "dtype": "bfloat16",
        "layout": "first",
    },
    {
        "batch": 1,
        "channels": 24,
        "filters": 17,
        "size": "7x7",
        "kernel": "1x1",
        "stride": "3x2",
        "dtype": "float32",
    },
    {
        "batch": 2,
        "channels": 33,
        "filters": 20,
        "size": "6x7",
        "kernel": "3x3",
        "dilation": "1x2",
        "dtype": "float32",
        "layout": "first",
        "activation": "silu",
    },
    {
        "batch": 1,
        "channels": 8,
        "filters": 8,
        "size": "40",
        "kernel": "4",
        "padding": "3",
        "groups": 8,
        "dtype": "bfloat16",
        "activation": "silu",
        "bias": True,
    },
)
_SHAPES = (
    _net(3, 64, 224, 7, stride=2),
    _net(64, 64, 56, 1),
    _net(64, 64, 56, 3),
    _net(64, 64, 56, 3, layout="first"),
    _net(64, 256, 56, 1, batch=256),
    _net(256, 128, 56, 1, layout="first"),
    _net(128, 128, 56, 3, stride=2),
    _net(128, 128, 28, 3, batch=256),
    _net(256, 256, 14, 3, batch=1),
    _net(256, 256, 14, 3),
    _net(1024, 512, 7, 1, batch=1),
    _net(512, 512, 7, 3, batch=256),
    _net(144, 144, 56, 3, groups=144),
)
_GRADIENT_SHAPES = (
    _net(64, 64, 56, 3),
    _net(256, 128, 56, 1),
    _net(128, 128, 56, 3, stride=2),
)
_TOLERANCE = Tolerance(ulps=1.0, accumulated=1e-5)


def _plain(cases: tuple[dict[str, Any], ...]) -> tuple[Sizes, ...]:
    """Cases without what gradients do not have."""
    return tuple(
        {name: value for name, value in case.items() if name not in ("bias", "activation")}
        for case in cases
    )


_SPACES = (implicit.FORWARD, depthwise.DEPTHWISE, layout.SPACE, combine.SPACE)
_CASES_2D = tuple(case for case in (*_CASES, *_THOROUGH) if case["size"].count("x") == 1)

OPERATORS = (
    Operator(
        name="convolution",
        summary="convolution of one, two or three dimensions with bias and activation",
        call=convolution,
        reference=convolution_reference,
        inputs=_inputs,
        work=_work("forward"),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=_SPACES,
        tolerance=_TOLERANCE,
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="conv2d",
        summary="convolution of images with bias and activation",
        call=conv2d,
        reference=conv2d_reference,
        inputs=_inputs,
        work=_work("forward"),
        cases=_CASES_2D[:2],
        thorough=_CASES_2D[2:5],
        shapes=_SHAPES[2:3],
        spaces=_SPACES,
        tolerance=_TOLERANCE,
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="convolution_backward_data",
        summary="gradient of a convolution's input",
        call=convolution_backward_data,
        reference=convolution_backward_data_reference,
        inputs=_data_inputs,
        work=_work("data"),
        cases=_plain(_CASES),
        thorough=_plain(_THOROUGH),
        shapes=_GRADIENT_SHAPES,
        spaces=_SPACES,
        tolerance=_TOLERANCE,
    ),
    Operator(
        name="convolution_backward_weight",
        summary="gradients of a convolution's weight and bias",
        call=convolution_backward_weight,
        reference=convolution_backward_weight_reference,
        inputs=_weight_inputs,
        work=_work("weight"),
        cases=_plain(_CASES),
        thorough=_plain(_THOROUGH),
        shapes=_GRADIENT_SHAPES,
        spaces=(weights.WEIGHTS, depthwise.DEPTHWISE_WEIGHT, layout.SPACE, combine.SPACE),
        tolerance=_TOLERANCE,
    ),
)
