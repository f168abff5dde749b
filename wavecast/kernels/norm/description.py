"""What the descriptions of row normalisations have in common: tensors, inputs, work, sizes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels import checks, derivative, describe
from wavecast.kernels.describe import Signature, Sizes, sizes, streamed, widened

CASES = sizes(
    "rows columns dtype",
    *((5, 300, "bfloat16"), (3, 17, "float32"), (133, 64, "float16"), (2, 20000, "bfloat16")),
)
THOROUGH = sizes(
    "rows columns dtype",
    *((1, 1, "float32"), (700, 128, "bfloat16"), (3, 16385, "float32"), (2, 7168, "float16")),
)
SHAPES = sizes(
    "rows columns dtype",
    *((8192, 4096, "bfloat16"), (8192, 8192, "bfloat16")),
    *((64, 7168, "bfloat16"), (1, 4096, "bfloat16")),
)
HEADS = sizes("rows columns dtype", (262144, 128, "bfloat16"))
"""The heads of a q/k norm."""


def signature(*names: str, results: tuple[str, ...] = ("y",)) -> Signature:
    """Tensors of a norm of rows: x and those like it, `dy` of any dtype, `weight` and `bias` of one
    row. All but x and dy can be None where a call has them as options."""
    row = {"weight": "weight?: [columns] float", "bias": "bias?: [columns] =weight"}
    line = {**row, "x": "x: [..., columns] float", "dy": "dy: [..., columns] float"}
    line |= {"residual?": "residual?: [..., columns] =x", "dsum": "dsum?: [..., columns] =x"}
    like = [line.get(name, f"{name}: [..., columns] =x") for name in names]
    return Signature(*like, returns=tuple(f"{name}: [..., columns] =x" for name in results))


def check_bias(operator: str, weight: Tensor | None, bias: Tensor | None) -> None:
    """A bias needs a weight. Raises ArgumentError."""
    checks.require(bias is None or weight is not None, operator, "a bias needs a weight")


def backward_reference(dy, x, weight, eps, dsum, offset=0.0, *, centred, biased=False):
    """(dx, dweight, dbias) of a norm of rows, `centred` or not, in float32 at least; gradients of
    what is not given, and of a bias unless `biased`, have no elements."""
    wide = widened(x)
    dy = grad = dy.to(wide.dtype)
    if weight is not None:
        grad = grad * (weight.to(wide.dtype) + offset)
    shifted = wide - wide.mean(-1, keepdim=True) if centred else wide
    scale = torch.rsqrt(shifted.square().mean(-1, keepdim=True) + eps)
    normal = shifted * scale
    projection = normal * (grad * normal).mean(-1, keepdim=True)
    dx = (grad - grad.mean(-1, keepdim=True) if centred else grad) - projection
    dx = dx * scale if dsum is None else dx * scale + dsum.to(wide.dtype)
    sums = {"weight": dy * normal, "bias": dy}
    needs_grad = {"weight": weight is not None, "bias": weight is not None and biased}
    dtype = x.dtype if weight is None else weight.dtype
    parameters = (
        sums[name].reshape(-1, x.shape[-1]).sum(0).to(dtype)
        if is_needed
        else x.new_empty(0, dtype=dtype)
        for name, is_needed in needs_grad.items()
    )
    return dx.to(x.dtype).contiguous(), *parameters


def operators(
    what: str, calls: tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]],
    operations: tuple[float, float, float], flags: tuple[Sizes, ...],
    backward_flags: tuple[Sizes, ...], **gradient: Any,
) -> tuple[describe.Operator, describe.Operator, describe.Operator]:  # fmt: skip
    """A norm of rows, the norm of a sum, and the gradients of both, with float32 `operations` per
    element; `flags` are sizes to test in addition to the usual ones, `gradient` arguments of
    `derivative.by_operator`."""
    names = [call.__name__ for call in calls]
    differentiated = partial(derivative.by_operator, backward=names[2], **gradient)
    norm = describe.Operator(
        summary=f"{what} normalisation of the last dimension",
        call=calls[0],
        work=streamed(1, 1, operations[0]),
        batch=describe.Batch(("x",)),
        cases=CASES,
        thorough=THOROUGH + flags,
        shapes=SHAPES + HEADS,
        gradient=differentiated(calls[0], grads=("dy",)),
    )
    residual = describe.Operator(
        summary=f"addition and {what} normalisation in one pass",
        call=calls[1],
        work=streamed(2, 2, operations[1]),
        batch=describe.Batch(("x", "residual")),
        cases=CASES,
        thorough=THOROUGH + flags,
        shapes=SHAPES,
        tolerance=describe.Tolerance(ulps=1.5),
        gradient=differentiated(
            calls[1], grads=("dy", "dsum"), outputs=("y", "x"), shared={"residual": "x"}
        ),
    )
    backward = derivative.operator(
        norm,
        calls[2],
        summary=f"gradients of {names[0]} and {names[1]}",
        inputs=vars(calls[2])["tensors"].inputs(absent=("dsum",)),
        work=streamed(2, 1, operations[2]),
        thorough=THOROUGH[1:] + backward_flags,
        shapes=SHAPES[:2] + HEADS,
        tolerance=describe.Tolerance(ulps=1.0, accumulated=1e-5),
    )
    return norm, residual, backward
