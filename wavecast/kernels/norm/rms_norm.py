"""RMS norm: y = x / sqrt(mean(x²) + eps) · (weight + offset), over the last dimension."""

import torch
from torch import Tensor

from wavecast.kernels.describe import sizes, widened
from wavecast.kernels.norm import description, rows
from wavecast.kernels.norm.description import signature

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
    y = torch.nn.functional.rms_norm(wide, x.shape[-1:], scale, eps)
    return y.to(x.dtype).contiguous()


@RESIDUAL_TENSORS.checked
def rms_norm_residual(
    x: Tensor, residual: Tensor, weight: Tensor | None = None, eps: float = 1e-6,
    offset: float = 0.0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
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
    dy: Tensor, x: Tensor, weight: Tensor | None = None, eps: float = 1e-6, offset: float = 0.0,
    dsum: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The gradients of `rms_norm` with respect to `x` and `weight`, in their dtypes.

    `dy` and `x` are [..., columns]; `dsum`, of shape and dtype of `x`, is added to its gradient
    (what flows into the sum of `rms_norm_residual`). Without a weight its gradient has no elements.
    Sums are in float32 in a fixed order. Raises ArgumentError.
    """
    dx, dweight, _ = rows.backward(dy, dsum, x, weight, eps, offset, centred=False)
    return dx, dweight.to(x.dtype if weight is None else weight.dtype)


def rms_norm_backward_reference(dy, x, weight=None, eps=1e-6, offset=0.0, dsum=None):
    return description.backward_reference(dy, x, weight, eps, dsum, offset, centred=False)[:2]


_SIZES = "rows columns dtype"
_FLAGS = (
    *sizes(f"{_SIZES} weight", (3, 100, "bfloat16", False)),
    *sizes(f"{_SIZES} offset", (3, 100, "bfloat16", 1.0)),
)

OPERATORS = description.operators(
    "root mean square",
    (rms_norm, rms_norm_residual, rms_norm_backward),
    of=("x", "weight"),
    saved=("x", "weight", "eps", "offset"),
    operations=(4.0, 5.0, 10.0),
    flags=_FLAGS,
    backward_flags=(
        *sizes(f"{_SIZES} dsum", (9, 100, "bfloat16", True), (2, 17000, "bfloat16", True)),
        *_FLAGS,
        *sizes(f"{_SIZES} offset", (700, 100, "float32", 1.0)),
    ),
)
