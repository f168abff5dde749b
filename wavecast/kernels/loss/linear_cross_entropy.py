"""Cross entropy of logits that are a product, hidden · weightᵀ, without ever having all of them.

Forward, every tile of logits leaves the largest, the sum of exponentials and, where asked, the
plain sum of its rows; a second kernel joins the tiles of a row in their order. Backward, the
gradient of logits is made again for a part of the vocabulary at a time, from which two products
give the part's rows of the weight's gradient and its share of that of the hidden states.
"""

from __future__ import annotations

from typing import Any

import torch
import triton

from wavecast.kernels import checks, gpu, tiles
from wavecast.kernels.choice import launch
from wavecast.kernels.derivative import by_reference
from wavecast.kernels.gemm.product import NAMES, Epilogue, product
from wavecast.kernels.inputs import Make
from wavecast.kernels.loss import terms
from wavecast.kernels.loss.linear_kernels import (
    JOIN,
    LOGITS,
    SLOPES,
    linear_cross_entropy_join_kernel,
    linear_cross_entropy_kernel,
    linear_cross_entropy_slopes_kernel,
)
from wavecast.kernels.norm.rows import flat
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.kernels.quantise.formats import LEAST
from wavecast.kernels.space import Settings
from wavecast.kernels.strides import contiguous
from wavecast.model.bounds import Work

_SLOPES = 2**28
"""Bytes that the gradient of a part's logits may take."""
_PARTS = 3
"""Where the tiles' results stand among the arguments of `linear_cross_entropy_kernel`."""


def linear_cross_entropy(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss, lse) of every row of logits hidden · weightᵀ, which never exist as a whole.

    `hidden` is [rows, size], `weight` [classes, size], of one dtype: float32, float16 or bfloat16;
    logits are not rounded. `targets`, options and results are those of `cross_entropy`. Raises
    ArgumentError.
    """
    name = "linear_cross_entropy"
    _check(name, hidden, weight, targets)
    rows, size = hidden.shape
    classes = weight.shape[0]
    terms.check(name, rows, targets, label_smoothing, soft_cap)
    loss = torch.empty((rows,), dtype=torch.float32, device=hidden.device)
    lse = torch.empty_like(loss)
    if not rows:
        return loss, lse
    a, b, targets = flat(hidden), flat(weight), targets.contiguous()
    chosen = torch.empty_like(loss)
    smoothed = label_smoothing > 0
    arguments: list[Any] = [
        *(a, b, targets, loss, chosen, rows, classes, size),
        *(a.stride(0), b.stride(0), soft_cap),
    ]
    across: list[int] = []

    def grid(settings: Settings) -> tuple[int, ...]:
        # The launch takes the arguments after it has the grid: the workspace of these settings.
        across[:] = [triton.cdiv(classes, settings["BLOCK_N"])]
        arguments[_PARTS] = loss.new_empty((3 if smoothed else 2, across[0], rows))
        return (triton.cdiv(rows, settings["BLOCK_M"]) * across[0],)

    launch(
        linear_cross_entropy_kernel,
        grid,
        arguments,
        LOGITS,
        _problem(a, b, soft_cap, smoothed=smoothed),
        SMOOTHED=smoothed,
        CAPPED=soft_cap > 0,
        **_constants(a, b),
    )
    launch(
        linear_cross_entropy_join_kernel,
        lambda settings: (triton.cdiv(rows, settings["BLOCK"]),),
        (
            *(arguments[_PARTS], chosen, targets, loss, lse, rows, across[0], classes),
            *(ignore_index, label_smoothing, z_loss),
        ),
        JOIN,
        {"rows": rows, "across": across[0], "smoothed": smoothed},
        SMOOTHED=smoothed,
    )
    return loss, lse


def linear_cross_entropy_reference(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A product and the formula, in float32 at least."""
    kind = torch.promote_types(hidden.dtype, torch.float32)
    logits = hidden.to(kind) @ weight.to(kind).T
    return terms.reference(logits, targets, ignore_index, label_smoothing, z_loss, soft_cap)


def linear_cross_entropy_backward(
    dloss: torch.Tensor,
    dlse: torch.Tensor | None,
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    lse: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `linear_cross_entropy` for `hidden` and `weight`, in their dtype.

    `dloss` and `dlse` (None: zeros) are [rows] of float32 like `lse`, which is that of the forward
    pass. The gradient of logits is rounded to that dtype (float16: times a power of two, without
    which small ones would be denormal), for part of the vocabulary at a time (256 MiB); shares of
    `hidden`'s are summed in float32 in a fixed order. Raises ArgumentError.
    """
    name = "linear_cross_entropy_backward"
    _check(name, hidden, weight, targets, dloss=dloss, dlse=dlse, lse=lse)
    rows, size = hidden.shape
    classes = weight.shape[0]
    terms.check(name, rows, targets, label_smoothing, soft_cap, dloss=dloss, dlse=dlse, lse=lse)
    dhidden = torch.zeros_like(hidden, memory_format=torch.contiguous_format)
    dweight = torch.zeros_like(weight, memory_format=torch.contiguous_format)
    if not rows:
        return dhidden, dweight
    a, b, targets = flat(hidden), flat(weight), targets.contiguous()
    dloss, lse = dloss.contiguous(), lse.contiguous()
    dlse = contiguous(dlse)
    power = _power(dloss, dlse) if hidden.dtype == torch.float16 else None
    inverse = None if power is None else power.reciprocal()
    part = _part(rows, classes, hidden.element_size())
    slopes = torch.empty((rows * part,), dtype=hidden.dtype, device=hidden.device)
    total = dhidden
    if part < classes and hidden.dtype != torch.float32:
        total = torch.empty(hidden.shape, dtype=torch.float32, device=hidden.device)
    for first in range(0, classes, part):
        ours = b[first : first + part]
        count = ours.shape[0]
        here = slopes[: rows * count].view(rows, count)
        launch(
            linear_cross_entropy_slopes_kernel,
            lambda s, n=count: (triton.cdiv(rows, s["BLOCK_M"]) * triton.cdiv(n, s["BLOCK_N"]),),
            (
                *(a, ours, targets, dloss, dlse, lse, power, here, rows, count, size),
                *(first, classes, a.stride(0), b.stride(0)),
                *(ignore_index, label_smoothing, z_loss, soft_cap),
            ),
            SLOPES,
            _problem(a, ours, soft_cap, dlse=dlse is not None),
            CAPPED=soft_cap > 0,
            **_constants(a, ours),
        )
        before = Epilogue(residual=total if first else None, scale_a=inverse)
        last = first + part >= classes
        product(here[None], ours[None], (dhidden if last else total)[None], before)
        after = Epilogue(scale_a=inverse)
        product(here.T[None], a[None], dweight[None, first : first + count], after)
    return dhidden, dweight


def linear_cross_entropy_backward_reference(
    dloss: torch.Tensor,
    dlse: torch.Tensor | None,
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    lse: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Products and the formula, in float32 at least."""
    kind = torch.promote_types(hidden.dtype, torch.float32)
    a, b = hidden.to(kind), weight.to(kind)
    slope = terms.reference_slope(
        a @ b.T, targets, dloss, dlse, ignore_index, label_smoothing, z_loss, soft_cap
    )
    dhidden, dweight = (slope @ b).to(hidden.dtype), (slope.T @ a).to(weight.dtype)
    return dhidden.contiguous(), dweight.contiguous()


def _check(
    operator: str,
    hidden: torch.Tensor,
    weight: torch.Tensor,
    targets: torch.Tensor,
    **others: torch.Tensor | None,
) -> None:
    checks.dtype_in(operator, "hidden", hidden, checks.FLOATS)
    checks.shape_is(operator, "hidden", hidden, (-1, -1))
    checks.dtype_in(operator, "weight", weight, (hidden.dtype,))
    checks.shape_is(operator, "weight", weight, (-1, hidden.shape[1]))
    checks.require(weight.numel() > 0, operator, "weight is empty")
    checks.same_device(operator, hidden=hidden, weight=weight, targets=targets, **others)


def _power(dloss: torch.Tensor, dlse: torch.Tensor | None) -> torch.Tensor:
    """The power of two that brings the largest gradient of logits near 2^8, [1] of float32."""
    most = dloss.abs().amax() if dlse is None else torch.maximum(dloss.abs(), dlse.abs()).amax()
    most = most.nan_to_num(nan=1.0, posinf=1.0).clamp(min=LEAST)
    return torch.exp2(8.0 - torch.log2(most).ceil()).reshape(1)


def _part(rows: int, classes: int, size: int) -> int:
    """Classes whose logits' gradients are made at a time: parts of about one size."""
    count = triton.cdiv(classes * rows * size, _SLOPES)
    return min(classes, triton.cdiv(triton.cdiv(classes, count), 256) * 256)


def _constants(a: torch.Tensor, b: torch.Tensor) -> dict[str, Any]:
    k = a.shape[1]
    return {
        "K_DIVISOR": min(512, k & -k),
        "PRECISION": "ieee",
        "WIDE": checks.wide(a, b) or a.shape[0] * b.shape[0] >= 2**31,
        "XCDS": tiles.xcds(gpu.launching()),
    }


def _problem(a: torch.Tensor, b: torch.Tensor, soft_cap: float, **flags: bool) -> dict[str, Any]:
    return {
        "m": a.shape[0],
        "n": b.shape[0],
        "k": a.shape[1],
        "dtype": NAMES[a.dtype],
        "bytes": a.element_size(),
        "constants": str(_constants(a, b)),
        "aligned": (a.stride(0) | b.stride(0)) % 8 == 0,
        "capped": soft_cap > 0,
        **flags,
    }


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    hidden, weight, targets, *ctx.options = inputs
    ctx.save_for_backward(hidden, weight, targets, output[1])


def _gradient(ctx: Any, dloss: torch.Tensor, dlse: torch.Tensor) -> tuple[Any, ...]:
    found = torch.ops.wavecast.linear_cross_entropy_backward(
        dloss, dlse, *ctx.saved_tensors, *ctx.options
    )
    return (*found, None, None, None, None, None)


def _inputs(
    make: Make, rows: int, size: int, classes: int, dtype: str, **options: Any
) -> dict[str, Any]:
    """The last of several targets is ignored."""
    targets = make.integers((rows,), 0, classes)
    if rows > 1:
        targets[-1] = -100
    return {
        "hidden": make.normal((rows, size), dtype),
        "weight": make.normal((classes, size), dtype, 2.0 / size**0.5),
        "targets": targets,
        **options,
    }


def _backward_inputs(
    make: Make, rows: int, size: int, classes: int, dtype: str, dlse: bool = True, **options: Any
) -> dict[str, Any]:
    given = _inputs(make, rows, size, classes, dtype, **options)
    kind = "float64" if dtype == "float64" else "float32"
    lse = make.normal((rows,), kind)
    if make.values:
        lse = linear_cross_entropy_reference(**given)[1]
    return {
        "dloss": make.normal((rows,), kind),
        "dlse": make.normal((rows,), kind) if dlse else None,
        **given,
        "lse": lse,
    }


def _work(products: int) -> Any:
    def work(rows: int, size: int, classes: int, dtype: str, **_: Any) -> Work:
        kind = getattr(torch, dtype)
        flops = {NAMES[kind]: 2.0 * products * rows * size * classes}
        factors = float((rows + classes) * size * kind.itemsize)
        written = factors if products > 1 else 8.0 * rows
        return Work(flops, factors, written, "formula", "formula")

    return work


_CASES = (
    {"rows": 5, "size": 24, "classes": 70, "dtype": "bfloat16"},
    {
        "rows": 70, "size": 40, "classes": 300, "dtype": "float16",
        "label_smoothing": 0.1, "z_loss": 0.01,
    },
    {"rows": 3, "size": 100, "classes": 513, "dtype": "float32", "soft_cap": 3.0},
)  # fmt: skip
_THOROUGH = (
    {"rows": 1, "size": 1, "classes": 1, "dtype": "float32"},
    {
        "rows": 130, "size": 72, "classes": 600, "dtype": "bfloat16",
        "label_smoothing": 0.2, "z_loss": 0.01, "soft_cap": 5.0,
    },
)  # fmt: skip
_SHAPES = ({"rows": 4096, "size": 4096, "classes": 128256, "dtype": "bfloat16"},)

OPERATORS = (
    Operator(
        name="linear_cross_entropy",
        summary="cross entropy of a product's logits, which never exist as a whole",
        call=linear_cross_entropy,
        reference=linear_cross_entropy_reference,
        inputs=_inputs,
        work=_work(1),
        batch=Batch(("hidden", "targets"), merged=True),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(LOGITS, JOIN),
        tolerance=Tolerance(ulps=8.0, accumulated=1e-5),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="linear_cross_entropy_backward",
        summary="gradients of linear_cross_entropy",
        call=linear_cross_entropy_backward,
        reference=linear_cross_entropy_backward_reference,
        gradient=by_reference(linear_cross_entropy_backward_reference),
        inputs=_backward_inputs,
        work=_work(3),
        cases=_CASES,
        thorough=(
            *_THOROUGH,
            {"rows": 9, "size": 50, "classes": 90, "dtype": "bfloat16", "dlse": False},
        ),
        shapes=_SHAPES,
        spaces=(SLOPES,),
        tolerance=Tolerance(ulps=2.0, accumulated=3e-5),
    ),
)
