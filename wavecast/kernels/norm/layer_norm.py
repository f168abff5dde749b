"""Layer norm: y = (x - mean(x)) / sqrt(var(x) + eps) · weight + bias, over the last dimension."""

from typing import Any

import torch
from torch import Tensor

from wavecast.kernels.describe import Batch, Operator, Tolerance, derivative, widened
from wavecast.kernels.norm import rows
from wavecast.kernels.norm.description import (
    CASES,
    HEADS,
    SHAPES,
    THOROUGH,
    check_bias,
    signature,
    work,
)

TENSORS = signature("x", "weight", "bias")
RESIDUAL_TENSORS = signature("x", "residual", "weight", "bias", results=("y", "sum"))
BACKWARD_TENSORS = signature("x", "dy", "weight", "dsum", results=("dx",))


def layer_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Layer normalisation of the last dimension.

    `x` is [..., columns] of float32, float16 or bfloat16, `weight` and `bias` [columns] of any of
    these (None: ones and zeros; a bias needs a weight); computed in float32, the variance from
    differences to the mean, returned in the dtype of `x`. Raises ArgumentError.
    """
    check_bias("layer_norm", weight, bias)
    TENSORS.check("layer_norm", {"x": x, "weight": weight, "bias": bias})
    return rows.forward(x, None, weight, bias, eps, centred=True)[0]


def layer_norm_reference(x, weight=None, bias=None, eps=1e-5):
    wide = widened(x)
    scale, shift = (None if one is None else one.to(wide.dtype) for one in (weight, bias))
    found = torch.nn.functional.layer_norm(wide, x.shape[-1:], scale, shift, eps)
    return found.to(x.dtype).contiguous()


def layer_norm_residual(
    x: Tensor,
    residual: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor]:
    """(layer_norm(s), s) with s = x + residual in one pass.

    `residual` has shape and dtype of `x`; s is rounded to it before it is normalised, so that
    results are those of an addition followed by `layer_norm`, which documents the rest.
    """
    name = "layer_norm_residual"
    check_bias(name, weight, bias)
    given = {"x": x, "residual": residual, "weight": weight, "bias": bias}
    RESIDUAL_TENSORS.check(name, given)
    y, total = rows.forward(x, residual, weight, bias, eps, centred=True)
    assert total is not None
    return y, total


def layer_norm_residual_reference(x, residual, weight=None, bias=None, eps=1e-5):
    total = (x + residual).contiguous()
    return layer_norm_reference(total, weight, bias, eps), total


@BACKWARD_TENSORS.checked
def layer_norm_backward(
    dy: Tensor,
    x: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-5,
    biased: bool = True,
    dsum: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `layer_norm` with respect to `x`, `weight` and bias, in their dtypes.

    `dy` and `x` are [..., columns]; `dsum`, of shape and dtype of `x`, is added to its gradient
    (what flows into the sum of `layer_norm_residual`). Without a weight its gradient and that of
    the bias have no elements, neither has that of the bias unless `biased`. Sums are in float32 in
    a fixed order. Raises ArgumentError.
    """
    biased = biased and weight is not None
    dx, dweight, dbias = rows.backward(dy, dsum, x, weight, eps, centred=True, biased=biased)
    dtype = x.dtype if weight is None else weight.dtype
    return dx, dweight.to(dtype), dbias.to(dtype)


def layer_norm_backward_reference(dy, x, weight=None, eps=1e-5, biased=True, dsum=None):
    wide = widened(x)
    dy = grad = dy.to(wide.dtype)
    if weight is not None:
        grad = grad * weight.to(wide.dtype)
    centred = wide - wide.mean(-1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    normal = centred * scale
    projection = normal * (grad * normal).mean(-1, keepdim=True)
    dx = (grad - grad.mean(-1, keepdim=True) - projection) * scale
    if dsum is not None:
        dx = dx + dsum.to(wide.dtype)
    dx = dx.to(x.dtype).contiguous()
    if weight is None:
        return dx, x.new_empty((0,)), x.new_empty((0,))
    dweight = (dy * normal).reshape(-1, x.shape[-1]).sum(0).to(weight.dtype)
    if not biased:
        return dx, dweight, weight.new_empty((0,))
    return dx, dweight, dy.reshape(-1, x.shape[-1]).sum(0).to(weight.dtype)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor | tuple[Tensor, ...]) -> None:
    *tensors, weight, bias, ctx.eps = inputs
    ctx.biased = bias is not None
    ctx.save_for_backward(output[1] if isinstance(output, tuple) else tensors[0], weight)


def _gradient(ctx: Any, dy: Tensor, dsum: Tensor | None = None) -> tuple[Any, ...]:
    x, weight = ctx.saved_tensors
    call = torch.ops.wavecast.layer_norm_backward
    dx, dweight, dbias = call(dy, x, weight, ctx.eps, ctx.biased, dsum)
    dinputs = (dx,) if dsum is None else (dx, dx)
    parameters = None if weight is None else dweight, dbias if ctx.biased else None
    return *dinputs, *parameters, None


_FLAGS = (
    {"rows": 3, "columns": 100, "dtype": "bfloat16", "weight": False, "bias": False},
    {"rows": 3, "columns": 100, "dtype": "float16", "bias": False},
)

OPERATORS = (
    Operator(
        summary="layer normalisation of the last dimension",
        call=layer_norm,
        reference=layer_norm_reference,
        tensors=TENSORS,
        work=work(1, 1, 7.0),
        batch=Batch(("x",)),
        cases=CASES,
        thorough=THOROUGH + _FLAGS,
        shapes=SHAPES + HEADS,
        gradient=derivative.Gradient(_setup, _gradient),
    ),
    Operator(
        summary="addition and layer normalisation in one pass",
        call=layer_norm_residual,
        reference=layer_norm_residual_reference,
        tensors=RESIDUAL_TENSORS,
        work=work(2, 2, 8.0),
        batch=Batch(("x", "residual")),
        cases=CASES,
        thorough=THOROUGH + _FLAGS,
        shapes=SHAPES,
        tolerance=Tolerance(ulps=1.5),
        gradient=derivative.Gradient(_setup, _gradient),
    ),
    Operator(
        summary="gradients of layer_norm and layer_norm_residual",
        call=layer_norm_backward,
        reference=layer_norm_backward_reference,
        tensors=BACKWARD_TENSORS,
        gradient=derivative.by_reference(layer_norm_backward_reference),
        inputs=BACKWARD_TENSORS.inputs(absent=("dsum",)),
        work=work(2, 1, 14.0),
        cases=CASES,
        thorough=(
            *THOROUGH[1:],
            {"rows": 9, "columns": 100, "dtype": "bfloat16", "dsum": True},
            {"rows": 2, "columns": 17000, "dtype": "bfloat16", "dsum": True, "biased": False},
            {"rows": 3, "columns": 100, "dtype": "float16", "weight": False},
            {"rows": 700, "columns": 100, "dtype": "float32", "biased": False},
        ),
        shapes=SHAPES[:2] + HEADS,
        tolerance=Tolerance(ulps=1.0, accumulated=1e-5),
    ),
)
