"""RMS norm: y = x / sqrt(mean(x²) + eps) · (weight + offset), over the last dimension."""

from __future__ import annotations

from typing import Any

import torch

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


def rms_norm(
    x: torch.Tensor, weight: torch.Tensor | None = None, eps: float = 1e-6, offset: float = 0.0
) -> torch.Tensor:
    """Root mean square normalisation of the last dimension.

    `x` is [..., columns] of float32, float16 or bfloat16, `weight` [columns] of any of these (None:
    ones), to which `offset` is added (Gemma: 1); computed in float32, returned in the dtype of `x`.
    The norm of queries and keys is this one, on [..., heads, head size]. Raises ArgumentError.
    """
    check("rms_norm", x, weight=weight)
    return rows.forward(x, None, weight, None, eps, offset, centred=False)[0]


def rms_norm_reference(
    x: torch.Tensor, weight: torch.Tensor | None = None, eps: float = 1e-6, offset: float = 0.0
) -> torch.Tensor:
    """`torch.nn.functional.rms_norm`, in float32 at least."""
    kind = widest(x)
    scale = None if weight is None else weight.to(kind) + offset
    found = torch.nn.functional.rms_norm(x.to(kind), x.shape[-1:], scale, eps)
    return found.to(x.dtype).contiguous()


def rms_norm_residual(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor | None = None,
    eps: float = 1e-6,
    offset: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(rms_norm(s), s) with s = x + residual in one pass.

    `residual` has shape and dtype of `x`; s is rounded to it before it is normalised, so that
    results are those of an addition followed by `rms_norm`, which documents the rest.
    """
    check("rms_norm_residual", x, residual=residual, weight=weight)
    y, total = rows.forward(x, residual, weight, None, eps, offset, centred=False)
    assert total is not None
    return y, total


def rms_norm_residual_reference(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor | None = None,
    eps: float = 1e-6,
    offset: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """An addition, then the norm."""
    total = rounded_sum(x, residual)
    return rms_norm_reference(total, weight, eps, offset), total


def rms_norm_backward(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    eps: float = 1e-6,
    offset: float = 0.0,
    dsum: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `rms_norm` with respect to `x` and `weight`, in their dtypes.

    `dy` and `x` are [..., columns]; `dsum`, of shape and dtype of `x`, is added to its gradient
    (what flows into the sum of `rms_norm_residual`). Without a weight its gradient has no elements.
    Sums are in float32 in a fixed order. Raises ArgumentError.
    """
    check("rms_norm_backward", x, dy=dy, weight=weight, dsum=dsum)
    dx, dweight, _ = rows.backward(dy, dsum, x, weight, eps, offset, centred=False)
    return dx, dweight.to(x.dtype if weight is None else weight.dtype)


def rms_norm_backward_reference(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    eps: float = 1e-6,
    offset: float = 0.0,
    dsum: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """By the formula, in float32 at least."""
    kind = widest(x)
    wide, slope = x.to(kind), dy.to(kind)
    if weight is not None:
        slope = slope * (weight.to(kind) + offset)
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    normal = wide * scale
    dx = (slope - normal * (slope * normal).mean(-1, keepdim=True)) * scale
    if dsum is not None:
        dx = dx + dsum.to(kind)
    dx = dx.to(x.dtype).contiguous()
    if weight is None:
        return dx, x.new_empty((0,))
    dweight = (dy.to(kind) * normal).reshape(-1, x.shape[-1]).sum(0)
    return dx, dweight.to(weight.dtype)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, weight, ctx.eps, ctx.offset = inputs
    ctx.save_for_backward(x, weight)


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    x, weight = ctx.saved_tensors
    dx, dweight = torch.ops.wavecast.rms_norm_backward(dy, x, weight, ctx.eps, ctx.offset)
    return dx, None if weight is None else dweight, None, None


def _residual_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    _, _, weight, ctx.eps, ctx.offset = inputs
    ctx.save_for_backward(output[1], weight)


def _residual_gradient(ctx: Any, dy: torch.Tensor, dsum: torch.Tensor) -> tuple[Any, ...]:
    total, weight = ctx.saved_tensors
    dx, dweight = torch.ops.wavecast.rms_norm_backward(dy, total, weight, ctx.eps, ctx.offset, dsum)
    return dx, dx, None if weight is None else dweight, None, None


_WITHOUT_WEIGHT = ({"rows": 3, "columns": 100, "dtype": "bfloat16", "weight": False},)
_OFFSET = ({"rows": 3, "columns": 100, "dtype": "bfloat16", "offset": 1.0},)
_SUMS = Tolerance(ulps=1.0, accumulated=1e-5)

OPERATORS = (
    Operator(
        name="rms_norm",
        summary="root mean square normalisation of the last dimension",
        call=rms_norm,
        reference=rms_norm_reference,
        inputs=inputs("x", "weight"),
        work=work(1, 1, 4.0),
        cases=CASES,
        thorough=THOROUGH + _WITHOUT_WEIGHT + _OFFSET,
        shapes=SHAPES + HEADS,
        spaces=(rows.FORWARD,),
        gradient=Gradient(_setup, _gradient),
        batch=Batch(("x",)),
    ),
    Operator(
        name="rms_norm_residual",
        summary="addition and root mean square normalisation in one pass",
        call=rms_norm_residual,
        reference=rms_norm_residual_reference,
        inputs=inputs("x", "residual", "weight"),
        work=work(2, 2, 5.0),
        batch=Batch(("x", "residual")),
        cases=CASES,
        thorough=THOROUGH + _WITHOUT_WEIGHT + _OFFSET,
        shapes=SHAPES,
        spaces=(rows.FORWARD,),
        tolerance=Tolerance(ulps=1.5),
        gradient=Gradient(_residual_setup, _residual_gradient),
    ),
    Operator(
        name="rms_norm_backward",
        summary="gradients of rms_norm and rms_norm_residual",
        call=rms_norm_backward,
        reference=rms_norm_backward_reference,
        gradient=by_reference(rms_norm_backward_reference),
        inputs=inputs("dy", "x", "weight", optional=("dsum",)),
        work=work(2, 1, 10.0),
        cases=CASES,
        thorough=(
            *THOROUGH[1:],
            {"rows": 9, "columns": 100, "dtype": "bfloat16", "dsum": True},
            {"rows": 2, "columns": 17000, "dtype": "bfloat16", "dsum": True},
            *_WITHOUT_WEIGHT,
            *_OFFSET,
            {"rows": 700, "columns": 100, "dtype": "float32", "offset": 1.0},
        ),
        shapes=SHAPES[:2] + HEADS,
        spaces=(rows.BACKWARD,),
        tolerance=_SUMS,
    ),
)
