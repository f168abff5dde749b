"""Layer norm: y = (x - mean(x)) / sqrt(var(x) + eps) · weight + bias, over the last dimension."""

import torch
from torch import Tensor

from wavecast.kernels.describe import sizes, widened
from wavecast.kernels.norm import description, rows
from wavecast.kernels.norm.description import check_bias, signature

TENSORS = signature("x", "weight", "bias")
RESIDUAL_TENSORS = signature("x", "residual", "weight", "bias", results=("y", "sum"))
BACKWARD_TENSORS = signature("x", "dy", "weight", "dsum", results=("dx",))


@TENSORS.checked
def layer_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Layer normalisation of the last dimension.

    `x` is [..., columns] of float32, float16 or bfloat16, `weight` and `bias` [columns] of any of
    these (None: ones and zeros; a bias needs a weight); computed in float32, the variance from
    differences to the mean, returned in the dtype of `x`. Raises ArgumentError.
    """
    check_bias("layer_norm", weight, bias)
    return rows.forward(x, None, weight, bias, eps, centred=True)[0]


def layer_norm_reference(x, weight=None, bias=None, eps=1e-5):
    wide = widened(x)
    scale, shift = (
        None if parameter is None else parameter.to(wide.dtype) for parameter in (weight, bias)
    )
    y = torch.nn.functional.layer_norm(wide, x.shape[-1:], scale, shift, eps)
    return y.to(x.dtype).contiguous()


@RESIDUAL_TENSORS.checked
def layer_norm_residual(
    x: Tensor, residual: Tensor, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(layer_norm(s), s) with s = x + residual in one pass.

    `residual` has shape and dtype of `x`; s is rounded to it before it is normalised, so that
    results are those of an addition followed by `layer_norm`, which documents the rest.
    """
    check_bias("layer_norm_residual", weight, bias)
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


_SIZES = "rows columns dtype"

OPERATORS = description.operators(
    "layer",
    (layer_norm, layer_norm_residual, layer_norm_backward),
    of=("x", "weight", "bias"),
    saved=("x", "weight", "eps"),
    biased=lambda bias, **_: bias is not None,
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
