"""Layer norm: y = (x - mean(x)) / sqrt(var(x) + eps) · weight + bias, over the last dimension."""

from typing import Any

import torch
from torch import Tensor

from wavecast.kernels.describe import Gradient, sizes, widened
from wavecast.kernels.norm import description, rows
from wavecast.kernels.norm.description import check_bias, signature

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
    x: Tensor, residual: Tensor, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor]:  # fmt: skip
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
    dy: Tensor, x: Tensor, weight: Tensor | None = None, eps: float = 1e-5, biased: bool = True,
    dsum: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
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
    return description.backward_reference(dy, x, weight, eps, dsum, centred=True, biased=biased)


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


_SIZES = "rows columns dtype"

OPERATORS = description.operators(
    "layer",
    (TENSORS, RESIDUAL_TENSORS, BACKWARD_TENSORS),
    (layer_norm, layer_norm_residual, layer_norm_backward),
    (layer_norm_reference, layer_norm_residual_reference, layer_norm_backward_reference),
    gradients=(Gradient(_setup, _gradient), Gradient(_setup, _gradient)),
    operations=(7.0, 8.0, 14.0),
    flags=(
        *sizes(f"{_SIZES} weight bias", (3, 100, "bfloat16", False, False)),
        *sizes(f"{_SIZES} bias", (3, 100, "float16", False)),
    ),
    backward_flags=(
        *sizes(f"{_SIZES} dsum biased", (9, 100, "bfloat16", True)),
        *sizes(f"{_SIZES} dsum biased", (2, 17000, "bfloat16", True, False)),
        *sizes(f"{_SIZES} weight", (3, 100, "float16", False)),
        *sizes(f"{_SIZES} biased", (700, 100, "float32", False)),
    ),
)
