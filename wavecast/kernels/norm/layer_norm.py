"""Layer norm: y = (x - mean(x)) / sqrt(var(x) + eps) · weight + bias, over the last dimension."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels import checks
from wavecast.kernels.derivative import by_reference
from wavecast.kernels.norm import rows
from wavecast.kernels.norm.description import (
    CASES,
    HEADS,
    SHAPES,
    THOROUGH,
    check,
    inputs,
    rounded_sum,
    widest,
    work,
)
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance


def layer_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Layer normalisation of the last dimension.

    `x` is [..., columns] of float32, float16 or bfloat16, `weight` and `bias` [columns] of any of
    these (None: ones and zeros; a bias needs a weight); computed in float32, the variance from
    differences to the mean, returned in the dtype of `x`. Raises ArgumentError.
    """
    _check("layer_norm", x, weight, bias)
    return rows.forward(x, None, weight, bias, eps, centred=True)[0]


def layer_norm_reference(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """`torch.nn.functional.layer_norm`, in float32 at least."""
    kind = widest(x)
    scale, shift = (None if one is None else one.to(kind) for one in (weight, bias))
    found = torch.nn.functional.layer_norm(x.to(kind), x.shape[-1:], scale, shift, eps)
    return found.to(x.dtype).contiguous()


def layer_norm_residual(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(layer_norm(s), s) with s = x + residual in one pass.

    `residual` has shape and dtype of `x`; s is rounded to it before it is normalised, so that
    results are those of an addition followed by `layer_norm`, which documents the rest.
    """
    _check("layer_norm_residual", x, weight, bias, residual=residual)
    y, total = rows.forward(x, residual, weight, bias, eps, centred=True)
    assert total is not None
    return y, total


def layer_norm_residual_reference(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[torch.Tensor, torch.Tensor]:
    """An addition, then the norm."""
    total = rounded_sum(x, residual)
    return layer_norm_reference(total, weight, bias, eps), total


def layer_norm_backward(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    eps: float = 1e-5,
    biased: bool = True,
    dsum: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of `layer_norm` with respect to `x`, `weight` and bias, in their dtypes.

    `dy` and `x` are [..., columns]; `dsum`, of shape and dtype of `x`, is added to its gradient
    (what flows into the sum of `layer_norm_residual`). Without a weight its gradient and that of
    the bias have no elements, neither has that of the bias unless `biased`. Sums are in float32 in
    a fixed order. Raises ArgumentError.
    """
    check("layer_norm_backward", x, dy=dy, weight=weight, dsum=dsum)
    biased = biased and weight is not None
    found = rows.backward(dy, dsum, x, weight, eps, centred=True, biased=biased)
    kind = x.dtype if weight is None else weight.dtype
    return found[0], found[1].to(kind), found[2].to(kind)


def layer_norm_backward_reference(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    eps: float = 1e-5,
    biased: bool = True,
    dsum: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """By the formula, in float32 at least."""
    kind = widest(x)
    wide, slope = x.to(kind), dy.to(kind)
    if weight is not None:
        slope = slope * weight.to(kind)
    centred = wide - wide.mean(-1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    normal = centred * scale
    along = normal * (slope * normal).mean(-1, keepdim=True)
    dx = (slope - slope.mean(-1, keepdim=True) - along) * scale
    if dsum is not None:
        dx = dx + dsum.to(kind)
    dx = dx.to(x.dtype).contiguous()
    if weight is None:
        return dx, x.new_empty((0,)), x.new_empty((0,))
    columns = x.shape[-1]
    dweight = (dy.to(kind) * normal).reshape(-1, columns).sum(0).to(weight.dtype)
    if not biased:
        return dx, dweight, weight.new_empty((0,))
    return dx, dweight, dy.to(kind).reshape(-1, columns).sum(0).to(weight.dtype)


def _check(
    operator: str,
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    **like: torch.Tensor | None,
) -> None:
    check(operator, x, weight=weight, bias=bias, **like)
    checks.require(bias is None or weight is not None, operator, "a bias needs a weight")
    if weight is not None and bias is not None:
        checks.dtype_in(operator, "bias", bias, (weight.dtype,))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, weight, bias, ctx.eps = inputs
    ctx.biased = bias is not None
    ctx.save_for_backward(x, weight)


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    x, weight = ctx.saved_tensors
    return _gradients(ctx, dy, x, weight, None)


def _residual_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    _, _, weight, bias, ctx.eps = inputs
    ctx.biased = bias is not None
    ctx.save_for_backward(output[1], weight)


def _residual_gradient(ctx: Any, dy: torch.Tensor, dsum: torch.Tensor) -> tuple[Any, ...]:
    total, weight = ctx.saved_tensors
    dx, *others = _gradients(ctx, dy, total, weight, dsum)
    return dx, dx, *others


def _gradients(
    ctx: Any,
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None,
    dsum: torch.Tensor | None,
) -> tuple[Any, ...]:
    dx, dweight, dbias = torch.ops.wavecast.layer_norm_backward(
        dy, x, weight, ctx.eps, ctx.biased, dsum
    )
    return dx, None if weight is None else dweight, dbias if ctx.biased else None, None


_FLAGS = (
    {"rows": 3, "columns": 100, "dtype": "bfloat16", "weight": False, "bias": False},
    {"rows": 3, "columns": 100, "dtype": "float16", "bias": False},
)

OPERATORS = (
    Operator(
        name="layer_norm",
        summary="layer normalisation of the last dimension",
        call=layer_norm,
        reference=layer_norm_reference,
        inputs=inputs("x", "weight", "bias"),
        work=work(1, 1, 7.0),
        batch=Batch(("x",)),
        cases=CASES,
        thorough=THOROUGH + _FLAGS,
        shapes=SHAPES + HEADS,
        spaces=(rows.FORWARD,),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="layer_norm_residual",
        summary="addition and layer normalisation in one pass",
        call=layer_norm_residual,
        reference=layer_norm_residual_reference,
        inputs=inputs("x", "residual", "weight", "bias"),
        work=work(2, 2, 8.0),
        batch=Batch(("x", "residual")),
        cases=CASES,
        thorough=THOROUGH + _FLAGS,
        shapes=SHAPES,
        spaces=(rows.FORWARD,),
        tolerance=Tolerance(ulps=1.5),
        gradient=Gradient(_residual_setup, _residual_gradient),
    ),
    Operator(
        name="layer_norm_backward",
        summary="gradients of layer_norm and layer_norm_residual",
        call=layer_norm_backward,
        reference=layer_norm_backward_reference,
        gradient=by_reference(layer_norm_backward_reference),
        inputs=inputs("dy", "x", "weight", optional=("dsum",)),
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
        spaces=(rows.BACKWARD,),
        tolerance=Tolerance(ulps=1.0, accumulated=1e-5),
    ),
)
