"""RMS norm: y = x / sqrt(mean(x²) + eps) · (weight + offset), over the last dimension."""

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
    signature,
    work,
)

TENSORS = signature("x", "weight")
RESIDUAL_TENSORS = signature("x", "residual", "weight", results=("y", "sum"))
BACKWARD_TENSORS = signature("x", "dy", "weight", "dsum", results=("dx",))


@TENSORS.checked
def rms_norm(
    x: Tensor, weight: Tensor | None = None, eps: float = 1e-6, offset: float = 0.0
) -> Tensor:
    """Root mean square normalisation of the last dimension.

    `x` is [..., columns] of float32, float16 or bfloat16, `weight` [columns] of any of these (None:
    ones), to which `offset` is added (Gemma: 1); computed in float32, returned in the dtype of `x`.
    The norm of queries and keys is this one, on [..., heads, head size]. Raises ArgumentError.
    """
    return rows.forward(x, None, weight, None, eps, offset, centred=False)[0]


def rms_norm_reference(x, weight=None, eps=1e-6, offset=0.0):
    wide = widened(x)
    scale = None if weight is None else weight.to(wide.dtype) + offset
    found = torch.nn.functional.rms_norm(wide, x.shape[-1:], scale, eps)
    return found.to(x.dtype).contiguous()


@RESIDUAL_TENSORS.checked
def rms_norm_residual(
    x: Tensor,
    residual: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-6,
    offset: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """(rms_norm(s), s) with s = x + residual in one pass.

    `residual` has shape and dtype of `x`; s is rounded to it before it is normalised, so that
    results are those of an addition followed by `rms_norm`, which documents the rest.
    """
    y, total = rows.forward(x, residual, weight, None, eps, offset, centred=False)
    assert total is not None
    return y, total


def rms_norm_residual_reference(x, residual, weight=None, eps=1e-6, offset=0.0):
    total = (x + residual).contiguous()
    return rms_norm_reference(total, weight, eps, offset), total


@BACKWARD_TENSORS.checked
def rms_norm_backward(
    dy: Tensor,
    x: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-6,
    offset: float = 0.0,
    dsum: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The gradients of `rms_norm` with respect to `x` and `weight`, in their dtypes.

    `dy` and `x` are [..., columns]; `dsum`, of shape and dtype of `x`, is added to its gradient
    (what flows into the sum of `rms_norm_residual`). Without a weight its gradient has no elements.
    Sums are in float32 in a fixed order. Raises ArgumentError.
    """
    dx, dweight, _ = rows.backward(dy, dsum, x, weight, eps, offset, centred=False)
    return dx, dweight.to(x.dtype if weight is None else weight.dtype)


def rms_norm_backward_reference(dy, x, weight=None, eps=1e-6, offset=0.0, dsum=None):
    wide = widened(x)
    dy = grad = dy.to(wide.dtype)
    if weight is not None:
        grad = grad * (weight.to(wide.dtype) + offset)
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    normal = wide * scale
    dx = (grad - normal * (grad * normal).mean(-1, keepdim=True)) * scale
    if dsum is not None:
        dx = dx + dsum.to(wide.dtype)
    dx = dx.to(x.dtype).contiguous()
    if weight is None:
        return dx, x.new_empty((0,))
    return dx, (dy * normal).reshape(-1, x.shape[-1]).sum(0).to(weight.dtype)


def _residual_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, _, weight, ctx.eps, ctx.offset = inputs
    ctx.save_for_backward(output[1], weight)


def _residual_gradient(ctx: Any, dy: Tensor, dsum: Tensor) -> tuple[Any, ...]:
    total, weight = ctx.saved_tensors
    dx, dweight = torch.ops.wavecast.rms_norm_backward(dy, total, weight, ctx.eps, ctx.offset, dsum)
    return dx, dx, None if weight is None else dweight, None, None


_FLAGS = (
    {"rows": 3, "columns": 100, "dtype": "bfloat16", "weight": False},
    {"rows": 3, "columns": 100, "dtype": "bfloat16", "offset": 1.0},
)

OPERATORS = (
    Operator(
        summary="root mean square normalisation of the last dimension",
        call=rms_norm,
        reference=rms_norm_reference,
        tensors=TENSORS,
        work=work(1, 1, 4.0),
        cases=CASES,
        thorough=THOROUGH + _FLAGS,
        shapes=SHAPES + HEADS,
        gradient=derivative.by_operator(
            rms_norm,
            "rms_norm_backward",
            grads=("dy",),
            saved=("x", "weight", "eps", "offset"),
            of=("x", "weight"),
        ),
        batch=Batch(("x",)),
    ),
    Operator(
        summary="addition and root mean square normalisation in one pass",
        call=rms_norm_residual,
        reference=rms_norm_residual_reference,
        tensors=RESIDUAL_TENSORS,
        work=work(2, 2, 5.0),
        batch=Batch(("x", "residual")),
        cases=CASES,
        thorough=THOROUGH + _FLAGS,
        shapes=SHAPES,
        tolerance=Tolerance(ulps=1.5),
        gradient=derivative.Gradient(_residual_setup, _residual_gradient),
    ),
    Operator(
        summary="gradients of rms_norm and rms_norm_residual",
        call=rms_norm_backward,
        reference=rms_norm_backward_reference,
        tensors=BACKWARD_TENSORS,
        gradient=derivative.by_reference(rms_norm_backward_reference),
        inputs=BACKWARD_TENSORS.inputs(absent=("dsum",)),
        work=work(2, 1, 10.0),
        cases=CASES,
        thorough=(
            *THOROUGH[1:],
            {"rows": 9, "columns": 100, "dtype": "bfloat16", "dsum": True},
            {"rows": 2, "columns": 17000, "dtype": "bfloat16", "dsum": True},
            *_FLAGS,
            {"rows": 700, "columns": 100, "dtype": "float32", "offset": 1.0},
        ),
        shapes=SHAPES[:2] + HEADS,
        tolerance=Tolerance(ulps=1.0, accumulated=1e-5),
    ),
)
