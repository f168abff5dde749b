"""Group norm over channels and positions of images, with SiLU after it where asked.

Where the channels of a group lie together and fit a program's registers, one kernel reads them
once (`group_whole`); else kernels over slabs read them twice (`group_slabs` and
`group_slabs_backward`).
"""

from typing import Any

import torch
from torch import Tensor

from wavecast.kernels import checks, derivative, describe
from wavecast.kernels.describe import sizes, wide_dtype, widened
from wavecast.kernels.norm import group_slabs, group_slabs_backward, group_whole
from wavecast.kernels.norm.description import check_bias
from wavecast.kernels.norm.group_slab import Shape

_PARAMETERS = ("weight?: [channels] float", "bias?: [channels] =weight")
_STATISTICS = ("means: [images, groups] float32", "scales: [images, groups] float32")
TENSORS = describe.Signature(
    "x: [images, channels, ...] float",
    *_PARAMETERS,
    returns=("y: [images, channels, ...] =x", *_STATISTICS),
)
BACKWARD_TENSORS = describe.Signature(
    *("x: [images, channels, ...] float", "dy: [images, channels, ...] float"),
    *(*_PARAMETERS, *_STATISTICS),
    returns=("dx: [images, channels, ...] =x",),
)


def group_norm(
    x: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5, silu: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(y, means, scales): every group of channels of an image normalised over all its positions.

    `x` is [images, channels, …] of float32, float16 or bfloat16, `weight` and `bias` [channels] of
    any of these, of one dtype (None: ones and zeros; a bias needs a weight). With `silu` y goes
    through SiLU. Computed in float32; y has the dtype of `x` and, for four dimensions in
    channels-last layout, that layout. The means and scales, 1 / sqrt(var + eps), are float32
    [images, groups], and are what `group_norm_backward` wants. Raises ArgumentError.
    """
    _check("group_norm", TENSORS, groups, {"x": x, "weight": weight, "bias": bias})
    source = x.contiguous(memory_format=_layout(x))
    y = torch.empty_like(source)
    means = torch.empty((x.shape[0], groups), dtype=torch.float32, device=x.device)
    scales = torch.empty_like(means)
    if not x.numel():
        return y, means.zero_(), scales.fill_(eps**-0.5 if eps else float("inf"))
    shape = Shape(source, groups)
    kernels = group_whole if group_whole.holds(shape, shape.bytes) else group_slabs
    tensors = {"x": source, "y": y, "mean": means, "scale": scales}
    kernels.forward(shape, {**tensors, "weight": weight, "bias": bias}, eps, silu=silu)
    return y, means, scales


def group_norm_reference(x, groups, weight=None, bias=None, eps=1e-5, silu=False):
    dtype = wide_dtype(x)
    wide = x.to(dtype).contiguous()
    factor, shift = (
        None if parameter is None else parameter.to(dtype) for parameter in (weight, bias)
    )
    y = torch.group_norm(wide, groups, factor, shift, eps)
    if silu:
        y = torch.nn.functional.silu(y)
    y = y.to(x.dtype).contiguous(memory_format=_layout(x))
    return y, *_statistics(wide, groups, eps)


def group_norm_backward(
    dy: Tensor, x: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, means: Tensor,
    scales: Tensor, silu: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of `group_norm` with respect to `x`, `weight` and `bias`, in their dtypes.

    `dy` is like `x`, `means` and `scales` those of the forward pass. Of what was not given the
    gradient has no elements. Sums are in float32 in a fixed order. Raises ArgumentError.
    """
    operands = {"x": x, "dy": dy, "weight": weight, "bias": bias, "means": means, "scales": scales}
    _check("group_norm_backward", BACKWARD_TENSORS, groups, operands)
    source = x.contiguous(memory_format=_layout(x))
    grad = dy.contiguous(memory_format=_layout(x))
    dx = torch.empty_like(source)
    if not x.numel():
        none = [
            x.new_empty(0) if parameter is None else torch.zeros_like(parameter)
            for parameter in (weight, bias)
        ]
        return dx, none[0], none[1]
    shape = Shape(source, groups)
    both = shape.bytes + grad.element_size()
    kernels = group_whole if group_whole.holds(shape, both) else group_slabs_backward
    tensors = {"dy": grad, "x": source, "weight": weight, "bias": bias}
    tensors |= {"mean": means, "scale": scales, "dx": dx}
    grad_sums, grad_x_sums = kernels.backward(shape, tensors, silu=silu)
    dweight = x.new_empty(0) if weight is None else grad_x_sums.sum(0).to(weight.dtype)
    return dx, dweight, x.new_empty(0) if bias is None else grad_sums.sum(0).to(bias.dtype)


def group_norm_backward_reference(dy, x, groups, weight, bias, means, scales, silu=False):
    dtype = wide_dtype(x)
    images, channels = x.shape[:2]
    shape = (images, groups, channels // groups, -1) if x.numel() else (images, groups, 1, 0)
    normal = x.to(dtype).reshape(shape) - means.to(dtype)[:, :, None, None]
    normal = normal * scales.to(dtype)[:, :, None, None]
    grad = dy.to(dtype).reshape(shape)
    factor = torch.ones((), dtype=dtype, device=x.device)
    if weight is not None and x.numel():
        factor = weight.to(dtype).reshape(groups, -1, 1)
    if silu:
        z = normal * factor
        if bias is not None and x.numel():
            z = z + bias.to(dtype).reshape(groups, -1, 1)
        sigmoid = torch.sigmoid(z)
        grad = grad * sigmoid * (1 + z * (1 - sigmoid))
    direct = grad * factor
    dx = direct - direct.mean((2, 3), keepdim=True)
    dx = (dx - normal * (direct * normal).mean((2, 3), keepdim=True)) * scales.to(dtype)[
        :, :, None, None
    ]
    dx = dx.reshape(x.shape).to(x.dtype).contiguous(memory_format=_layout(x))
    sums = [(grad * normal).sum((0, 3)).reshape(-1), grad.sum((0, 3)).reshape(-1)]
    if not x.numel():
        sums = [torch.zeros(x.shape[1], dtype=dtype, device=x.device)] * 2
    grads = [
        x.new_empty(0) if parameter is None else total.to(parameter.dtype, copy=True)
        for parameter, total in zip((weight, bias), sums, strict=True)
    ]
    return dx, grads[0], grads[1]


def _layout(x: Tensor) -> torch.memory_format:
    """Channels-last for tensors that are so and not plainly contiguous."""
    last = x.dim() == 4 and not x.is_contiguous()
    last = last and x.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last else torch.contiguous_format


def _check(
    operator: str, tensors: describe.Signature, groups: int, arguments: dict[str, Any]
) -> None:
    x, weight, bias = arguments["x"], arguments["weight"], arguments["bias"]
    checks.require(x.dim() >= 2, operator, f"x has {x.dim()} dimensions, expected 2 or more")
    check_bias(operator, weight, bias)
    channels = x.shape[1]
    even = groups > 0 and channels > 0 and channels % groups == 0
    checks.require(even, operator, f"{channels} channels do not make {groups} groups")
    tensors.check(operator, arguments, groups=groups)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)
    x, ctx.groups, weight, bias, ctx.eps, ctx.silu = inputs
    ctx.save_for_backward(x, weight, bias, output[1], output[2])


def _gradient(
    ctx: Any, dy: Tensor | None, dmeans: Tensor | None, dscales: Tensor | None
) -> tuple[Any, ...]:
    x, weight, bias, means, scales = ctx.saved_tensors
    dx, dweight, dbias = torch.ops.wavecast.group_norm_backward(
        torch.zeros_like(x) if dy is None else dy,
        *(x, ctx.groups, weight, bias, means, scales, ctx.silu),
    )
    if dmeans is not None or dscales is not None:  # gradients of gradients come this way
        grads = [
            torch.zeros_like(statistic) if grad is None else grad
            for statistic, grad in ((means, dmeans), (scales, dscales))
        ]
        dx = dx + derivative.pulled_back(_statistics, (x, ctx.groups, ctx.eps), (0,), grads)[0]
    weights = (None if weight is None else dweight, None if bias is None else dbias)
    return dx, None, *weights, None, None


def _statistics(x: Tensor, groups: int, eps: float) -> tuple[Tensor, Tensor]:
    """(means, scales) in float32 at least."""
    if not x.numel():
        means = torch.zeros((x.shape[0], groups), dtype=wide_dtype(x), device=x.device)
        return means, torch.rsqrt(means + eps)
    flat = widened(x).reshape(x.shape[0], groups, -1)
    variances, means = torch.var_mean(flat, -1, correction=0)
    return means, torch.rsqrt(variances + eps)


def _inputs(
    make, images, channels, height, width, groups, dtype, last=False, weight=True, bias=True,
    silu=False,
):  # fmt: skip
    x = make.normal((images, channels, height, width), dtype)
    return {
        "x": x.contiguous(memory_format=torch.channels_last) if last else x,
        "groups": groups,
        "weight": make.normal((channels,), dtype) if weight else None,
        "bias": make.normal((channels,), dtype) if bias and weight else None,
        "silu": silu,
    }


def _backward_inputs(make, dtype, groups, **case):
    operands = _inputs(make, dtype=dtype, groups=groups, **case)
    x = operands["x"]
    if make.values:
        _, means, scales = group_norm_reference(x, groups)
    else:
        means = scales = torch.empty((x.shape[0], groups), dtype=wide_dtype(x), device=x.device)
    dy = make.normal(x.shape, dtype).contiguous(memory_format=_layout(x))
    return {"dy": dy, **operands, "means": means, "scales": scales}


def _square(images: int, channels: int, side: int, *groups_dtype: Any, **flags: Any) -> Any:
    names = "images channels height width groups dtype"
    return {**sizes(names, (images, channels, side, side, *groups_dtype))[0], **flags}


GROUP_NORM = describe.Operator(
    summary="normalisation of groups of channels over all positions, SiLU if asked",
    call=group_norm,
    tensors=TENSORS,
    inputs=_inputs,
    work=describe.streamed(1, 1, 8.0, "images channels height width"),
    batch=describe.Batch(("x",), merged=True),
    cases=(
        _square(2, 6, 5, 3, "bfloat16"),
        _square(2, 12, 19, 2, "float16", silu=True),
        _square(2, 70, 9, 10, "float32", last=True, silu=True),
        _square(1, 4, 190, 2, "bfloat16"),
    ),
    thorough=(
        _square(1, 32, 1, 32, "float32"),
        _square(2, 6, 20, 1, "bfloat16", weight=False),
        _square(2, 6, 20, 3, "bfloat16", bias=False, silu=True),
        _square(1, 130, 7, 2, "float16", silu=True),
        _square(2, 20, 33, 2, "bfloat16", last=True, bias=False),
    ),
    shapes=(
        _square(32, 320, 64, 32, "float16"),
        _square(32, 320, 64, 32, "float16", silu=True),
        _square(32, 320, 64, 32, "float16", last=True, silu=True),
        _square(1, 128, 512, 32, "bfloat16", silu=True),
    ),
    tolerance=describe.Tolerance(ulps=4.0, accumulated=1e-5),
    gradient=describe.Gradient(_setup, _gradient),
)
BACKWARD = derivative.operator(
    GROUP_NORM,
    group_norm_backward,
    tensors=BACKWARD_TENSORS,
    inputs=_backward_inputs,
    work=describe.streamed(2, 1, 16.0, "images channels height width"),
    thorough=GROUP_NORM.thorough[1:],
    tolerance=describe.Tolerance(ulps=1.0, accumulated=3e-5),
)
OPERATORS = (GROUP_NORM, BACKWARD)
