"""Cross entropy of logits that are a product, hidden · weightᵀ, without ever having all of them.

Forward, every tile of logits leaves the largest, the sum of exponentials and, where asked, the
plain sum of its rows; a second kernel joins the tiles of a row in their order. Backward, the
gradient of logits is made again for a part of the vocabulary at a time, from which two products
give the part's rows of the weight's gradient and its part of that of the hidden states.
"""

from functools import partial
from typing import Any

import torch
import triton
from torch import Tensor

from wavecast.kernels import checks, choice, derivative, describe
from wavecast.kernels.describe import widened
from wavecast.kernels.gemm.product import Epilogue, product, rate_of
from wavecast.kernels.loss import terms
from wavecast.kernels.loss.linear_kernels import JOIN, LOGITS, LOGITS_GRADIENT
from wavecast.kernels.loss.terms import LossOptions
from wavecast.kernels.quantise.formats import LEAST
from wavecast.kernels.strides import rows_of

_GRADIENT_BYTES = 2**28
"""Bytes that the gradient of a part's logits may take."""
_GIVEN = (
    *("hidden: [rows, size] float", "weight: [classes, size] =hidden"),
    "targets: [rows] index",
)
TENSORS = describe.Signature(*_GIVEN, returns=terms.LOSS)
BACKWARD_TENSORS = describe.Signature(
    *(*_GIVEN, *terms.PER_ROW),
    returns=("dhidden: [rows, size] =hidden", "dweight: [classes, size] =weight"),
)


def linear_cross_entropy(
    hidden: Tensor, weight: Tensor, targets: Tensor, ignore_index: int = -100,
    label_smoothing: float = 0.0, z_loss: float = 0.0, soft_cap: float = 0.0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(loss, lse) of every row of logits hidden · weightᵀ, which never exist as a whole.

    `hidden` is [rows, size], `weight` [classes, size], of one dtype: float32, float16 or bfloat16;
    logits are not rounded. `targets`, options and results are those of `cross_entropy`. Raises
    ArgumentError.
    """
    operands = {"hidden": hidden, "weight": weight, "targets": targets}
    options = LossOptions(ignore_index, label_smoothing, z_loss, soft_cap)
    _check("linear_cross_entropy", TENSORS, operands, options)
    rows, classes = hidden.shape[0], weight.shape[0]
    loss = torch.empty((rows,), dtype=torch.float32, device=hidden.device)
    lse = torch.empty_like(loss)
    if not rows:
        return loss, lse
    a, b, smoothed = rows_of(hidden), rows_of(weight), label_smoothing > 0
    arguments = {"targets": targets.contiguous(), "target_logit": torch.empty_like(loss)}
    problem = _problem(a, b, soft_cap, smoothed=smoothed)
    parts = choice.run(LOGITS, problem, **_product(a, b), **arguments, cap=soft_cap).workspaces[
        "parts"
    ]
    problem = {"rows": rows, "across": parts.shape[1], "smoothed": smoothed}
    arguments |= {"parts": parts, "loss": loss, "lse": lse}
    choice.run(
        JOIN, problem, **arguments, **options.arguments, tiles_n=parts.shape[1], classes=classes
    )
    return loss, lse


def linear_cross_entropy_reference(hidden, weight, targets, *options, **keywords):
    logits = widened(hidden) @ widened(weight).T
    return terms.reference(logits, targets, LossOptions(*options, **keywords))


def linear_cross_entropy_backward(
    dloss: Tensor, dlse: Tensor | None, hidden: Tensor, weight: Tensor, targets: Tensor,
    lse: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0, z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The gradients of `linear_cross_entropy` for `hidden` and `weight`, in their dtype.

    `dloss` and `dlse` (None: zeros) are [rows] of float32 like `lse`, which is that of the forward
    pass. The gradient of logits is rounded to that dtype (float16: times a power of two, without
    which small ones would be denormal), for part of the vocabulary at a time (256 MiB); shares of
    `hidden`'s are summed in float32 in a fixed order. Raises ArgumentError.
    """
    operands = {"hidden": hidden, "weight": weight, "targets": targets}
    operands |= {"dloss": dloss, "dlse": dlse, "lse": lse}
    options = LossOptions(ignore_index, label_smoothing, z_loss, soft_cap)
    _check("linear_cross_entropy_backward", BACKWARD_TENSORS, operands, options)
    rows, classes = hidden.shape[0], weight.shape[0]
    dhidden = torch.zeros_like(hidden, memory_format=torch.contiguous_format)
    dweight = torch.zeros_like(weight, memory_format=torch.contiguous_format)
    if not rows:
        return dhidden, dweight
    a, b = rows_of(hidden), rows_of(weight)
    power = _power(dloss, dlse) if hidden.dtype == torch.float16 else None
    grads = {"targets": targets, "dloss": dloss, "dlse": dlse, "lse": lse, "power": power}
    inverse = None if power is None else power.reciprocal()
    part = _part(rows, classes, hidden.element_size())
    buffer = torch.empty((rows * part,), dtype=hidden.dtype, device=hidden.device)
    total = dhidden
    if part < classes and hidden.dtype != torch.float32:
        total = torch.empty(hidden.shape, dtype=torch.float32, device=hidden.device)
    for first in range(0, classes, part):
        weight_part = b[first : first + part]
        count = weight_part.shape[0]
        grad = buffer[: rows * count].view(rows, count)
        choice.run(
            LOGITS_GRADIENT, _problem(a, weight_part, soft_cap, dlse=dlse is not None),
            **_product(a, weight_part), **grads, grad=grad, first=first, classes=classes,
            **options.arguments, cap=soft_cap,
        )  # fmt: skip
        epilogue = Epilogue(residual=total if first else None, scale_a=inverse)
        last = first + part >= classes
        product(grad[None], weight_part[None], (dhidden if last else total)[None], epilogue)
        scaled = Epilogue(scale_a=inverse)
        product(grad.T[None], a[None], dweight[None, first : first + count], scaled)
    return dhidden, dweight


def linear_cross_entropy_backward_reference(
    dloss, dlse, hidden, weight, targets, lse, *options, **keywords
):
    a, b, loss_options = widened(hidden), widened(weight), LossOptions(*options, **keywords)
    grad = terms.reference_gradient(a @ b.T, targets, dloss, dlse, loss_options)
    dhidden, dweight = (grad @ b).to(hidden.dtype), (grad.T @ a).to(weight.dtype)
    return dhidden.contiguous(), dweight.contiguous()


def _check(
    operator: str, tensors: describe.Signature, arguments: Any, options: LossOptions
) -> None:
    terms.check(operator, tensors, arguments, options)
    checks.require(arguments["weight"].numel() > 0, operator, "weight is empty")


def _power(dloss: Tensor, dlse: Tensor | None) -> Tensor:
    """The power of two that brings the largest gradient of logits near 2^8, [1] of float32."""
    most = dloss.abs().amax() if dlse is None else torch.maximum(dloss.abs(), dlse.abs()).amax()
    most = most.nan_to_num(nan=1.0, posinf=1.0).clamp(min=LEAST)
    return torch.exp2(8.0 - torch.log2(most).ceil()).reshape(1)


def _part(rows: int, classes: int, size: int) -> int:
    """Classes whose logits' gradients are made at a time: parts of about one size."""
    count = triton.cdiv(classes * rows * size, _GRADIENT_BYTES)
    return min(classes, triton.cdiv(triton.cdiv(classes, count), 256) * 256)


def _constants(a: Tensor, b: Tensor) -> dict[str, Any]:
    k = a.shape[1]
    wide = checks.wide(a, b) or a.shape[0] * b.shape[0] >= 2**31
    return {"K_DIVISOR": min(512, k & -k), "PRECISION": "ieee", "WIDE": wide}


def _product(a: Tensor, b: Tensor) -> dict[str, Any]:
    """The arguments of a kernel that multiplies hidden states and weights."""
    return {"hidden": a, "weight": b, **_constants(a, b)}


def _problem(a: Tensor, b: Tensor, soft_cap: float, **flags: bool) -> dict[str, Any]:
    return {
        "m": a.shape[0],
        "n": b.shape[0],
        "k": a.shape[1],
        "dtype": rate_of(a.dtype),
        "bytes": a.element_size(),
        "constants": str(_constants(a, b)),
        "aligned": (a.stride(0) | b.stride(0)) % 8 == 0,
        "capped": soft_cap > 0,
        **flags,
    }


def _inputs(make, rows, size, classes, dtype, **options):
    return {
        "hidden": make.normal((rows, size), dtype),
        "weight": make.normal((classes, size), dtype, 2.0 / size**0.5),
        "targets": terms.made_targets(make, rows, classes),
        **options,
    }


def _work(products: int) -> Any:
    def work(rows, size, classes, dtype, **_):
        operand = getattr(torch, dtype)
        flops = {rate_of(operand): 2.0 * products * rows * size * classes}
        factors = float((rows + classes) * size * operand.itemsize)
        written = factors if products > 1 else 8.0 * rows
        return describe.Work(flops, factors, written, "formula", "formula")

    return work


_case = partial(dict, rows=3)
LINEAR = describe.Operator(
    summary="cross entropy of a product's logits, which never exist as a whole",
    call=linear_cross_entropy,
    tensors=TENSORS,
    inputs=_inputs,
    work=_work(1),
    batch=describe.Batch(("hidden", "targets"), merged=True),
    cases=(
        _case(rows=5, size=24, classes=70, dtype="bfloat16"),
        _case(rows=70, size=40, classes=300, dtype="float16", label_smoothing=0.1, z_loss=0.01),
        _case(size=100, classes=513, dtype="float32", soft_cap=3.0),
    ),
    thorough=(
        _case(rows=1, size=1, classes=1, dtype="float32"),
        _case(rows=130, size=72, classes=600, dtype="bfloat16", label_smoothing=0.2, z_loss=0.01,
              soft_cap=5.0),
    ),
    shapes=describe.sizes("rows size classes dtype", (4096, 4096, 128256, "bfloat16")),
    tolerance=describe.Tolerance(ulps=8.0, accumulated=1e-5),
    gradient=derivative.by_operator(
        linear_cross_entropy, "linear_cross_entropy_backward", grads=("dloss", "dlse"),
        saved=("hidden", "weight", "targets", "lse", *LossOptions._fields),
        of=("hidden", "weight"), outputs=("loss", "lse"),
    ),
)  # fmt: skip
BACKWARD = derivative.operator(
    LINEAR,
    linear_cross_entropy_backward,
    tensors=BACKWARD_TENSORS,
    inputs=terms.backward_inputs(_inputs, linear_cross_entropy_reference),
    work=_work(3),
    thorough=(*LINEAR.thorough, _case(rows=9, size=50, classes=90, dtype="bfloat16", dlse=False)),
    tolerance=describe.Tolerance(ulps=2.0, accumulated=3e-5),
)
OPERATORS = (LINEAR, BACKWARD)
