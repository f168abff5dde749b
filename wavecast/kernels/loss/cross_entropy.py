"""Cross entropy of rows of logits, forward and backward; the vocabulary is streamed in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.derivative import by_reference
from wavecast.kernels.inputs import Make
from wavecast.kernels.loss import terms
from wavecast.kernels.loss.terms import capped, loss_of, slope_of, weights_of
from wavecast.kernels.norm.rows import flat, preference
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import contiguous
from wavecast.model.bounds import Work

_LOWEST = tl.constexpr(-1e30)
"""Below every logit, and finite, so that differences are."""
_RUN = 8
"""Neighbouring logits of a lane, which rescales its sum once for all of them."""


@triton.jit
def cross_entropy_kernel(
    logits_ptr, targets_ptr, loss_ptr, lse_ptr, columns, stride, ignored, smoothing, z_loss, cap,
    BLOCK: tl.constexpr, RUN: tl.constexpr, SMOOTHED: tl.constexpr, CAPPED: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """One row per program. Every lane has a maximum and a sum of its own until the end."""
    row = tl.program_id(0)
    source = logits_ptr + (tl.cast(row, tl.int64) if WIDE else row) * stride
    within = tl.arange(0, BLOCK // RUN)[:, None] * RUN + tl.arange(0, RUN)[None, :]
    most = tl.full((BLOCK // RUN,), _LOWEST, tl.float32)
    total = tl.zeros((BLOCK // RUN,), tl.float32)
    plain = tl.zeros((BLOCK // RUN,), tl.float32)
    for start in range(0, columns, BLOCK):
        place = start + within
        x = tl.load(source + place, mask=place < columns, other=-float("inf")).to(tl.float32)
        if CAPPED:
            x = tl.where(place < columns, capped(x, cap, CAPPED), -float("inf"))
        before = most
        most = tl.maximum(most, tl.max(x, axis=1))
        total = total * tl.exp(before - most) + tl.sum(tl.exp(x - most[:, None]), axis=1)
        if SMOOTHED:
            plain += tl.sum(tl.where(place < columns, x, 0.0), axis=1)
    top = tl.max(most, axis=0)
    lse = top + tl.log(tl.sum(total * tl.exp(most - top), axis=0))
    target = tl.load(targets_ptr + row)
    known = tl.minimum(tl.maximum(target, 0), columns - 1)
    chosen = capped(tl.load(source + known).to(tl.float32), cap, CAPPED)
    mean = tl.sum(plain, axis=0) / columns
    loss = loss_of(lse, chosen, mean, target, columns, ignored, smoothing, z_loss)
    tl.store(loss_ptr + row, loss)
    tl.store(lse_ptr + row, lse)


@triton.jit
def cross_entropy_backward_kernel(
    dloss_ptr, dlse_ptr, logits_ptr, targets_ptr, lse_ptr, slope_ptr,
    columns, stride, ignored, smoothing, z_loss, cap,
    BLOCK: tl.constexpr, CAPPED: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One block of one row per program."""
    blocks = tl.cdiv(columns, BLOCK)
    row = tl.program_id(0) // blocks
    place = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    lse = tl.load(lse_ptr + row)
    target = tl.load(targets_ptr + row)
    dlse = tl.load(dlse_ptr + row) if dlse_ptr is not None else 0.0
    along, dloss = weights_of(lse, tl.load(dloss_ptr + row), dlse, target == ignored, z_loss)
    wide = tl.cast(row, tl.int64) if WIDE else row
    x = tl.load(logits_ptr + wide * stride + place, mask=place < columns, other=0.0)
    slope = slope_of(
        x.to(tl.float32), place, lse, target, along, dloss, columns, smoothing, cap, CAPPED
    )
    to = slope_ptr + wide * columns + place
    tl.store(to, slope.to(slope_ptr.dtype.element_ty), mask=place < columns)


def cross_entropy(
    logits: torch.Tensor,
    targets: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss, lse) of every row: cross entropy and the logarithm of the sum of exponentials.

    `logits` are [rows, classes] of float32, float16 or bfloat16, `targets` [rows] of int64 or
    int32; results are [rows] of float32. loss = lse - (1 - s) · x[target] - s · mean(x) +
    z_loss · lse² with s = `label_smoothing` and, with a `soft_cap` over 0, x = cap · tanh(x / cap)
    of the logits. Rows whose target is `ignore_index` have loss 0 (their lse is right); any other
    target that is no class gives NaN. Both results have gradients. Raises ArgumentError.
    """
    name = "cross_entropy"
    _check(name, logits, targets)
    rows, classes = logits.shape
    terms.check(name, rows, targets, label_smoothing, soft_cap)
    loss = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    lse = torch.empty_like(loss)
    if not rows:
        return loss, lse
    source = flat(logits)
    launch(
        cross_entropy_kernel,
        lambda _: (rows,),
        (
            source,
            targets.contiguous(),
            loss,
            lse,
            classes,
            source.stride(0),
            ignore_index,
            label_smoothing,
            z_loss,
            soft_cap,
        ),
        FORWARD,
        {
            "rows": rows,
            "columns": classes,
            "bytes": logits.element_size(),
            "smoothed": label_smoothing > 0,
            "capped": soft_cap > 0,
        },
        RUN=_RUN,
        SMOOTHED=label_smoothing > 0,
        CAPPED=soft_cap > 0,
        WIDE=checks.wide(source),
    )
    return loss, lse


def cross_entropy_reference(
    logits: torch.Tensor,
    targets: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """By the formula, in float32 at least."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return terms.reference(wide, targets, ignore_index, label_smoothing, z_loss, soft_cap)


def cross_entropy_backward(
    dloss: torch.Tensor,
    dlse: torch.Tensor | None,
    logits: torch.Tensor,
    targets: torch.Tensor,
    lse: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> torch.Tensor:
    """The gradient of `cross_entropy` with respect to the logits, in their dtype.

    `dloss` and `dlse` (None: zeros) are [rows] of float32 like `lse`, which is that of the forward
    pass. Raises ArgumentError.
    """
    name = "cross_entropy_backward"
    _check(name, logits, targets, dloss=dloss, dlse=dlse, lse=lse)
    rows, classes = logits.shape
    terms.check(name, rows, targets, label_smoothing, soft_cap, dloss=dloss, dlse=dlse, lse=lse)
    slope = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    if not rows:
        return slope
    source = flat(logits)
    launch(
        cross_entropy_backward_kernel,
        lambda settings: (rows * triton.cdiv(classes, settings["BLOCK"]),),
        (
            dloss.contiguous(),
            contiguous(dlse),
            source,
            targets.contiguous(),
            lse.contiguous(),
            slope,
            classes,
            source.stride(0),
            ignore_index,
            label_smoothing,
            z_loss,
            soft_cap,
        ),
        BACKWARD,
        {
            "rows": rows,
            "columns": classes,
            "bytes": logits.element_size(),
            "capped": soft_cap > 0,
            "dlse": dlse is not None,
        },
        CAPPED=soft_cap > 0,
        WIDE=checks.wide(source, slope),
    )
    return slope


def cross_entropy_backward_reference(
    dloss: torch.Tensor,
    dlse: torch.Tensor | None,
    logits: torch.Tensor,
    targets: torch.Tensor,
    lse: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> torch.Tensor:
    """By the formula, in float32 at least."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    slope = terms.reference_slope(
        wide, targets, dloss, dlse, ignore_index, label_smoothing, z_loss, soft_cap
    )
    return slope.to(logits.dtype).contiguous()


def _check(
    operator: str, logits: torch.Tensor, targets: torch.Tensor, **others: torch.Tensor | None
) -> None:
    checks.dtype_in(operator, "logits", logits, checks.FLOATS)
    checks.shape_is(operator, "logits", logits, (-1, -1))
    checks.require(logits.shape[1] > 0, operator, "there are no classes")
    checks.same_device(operator, logits=logits, targets=targets, **others)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    logits, targets, *ctx.options = inputs
    ctx.save_for_backward(logits, targets, output[1])


def _gradient(ctx: Any, dloss: torch.Tensor, dlse: torch.Tensor) -> tuple[Any, ...]:
    logits, targets, lse = ctx.saved_tensors
    slope = torch.ops.wavecast.cross_entropy_backward(
        dloss, dlse, logits, targets, lse, *ctx.options
    )
    return slope, None, None, None, None, None


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    most = max(64, triton.next_power_of_2(problem["columns"]))
    return {
        "BLOCK": [min(n, most) for n in (4096, 2048, 8192, 16384) if n <= most] or [most],
        "num_warps": (4, 8, 2, 1, 16),
        "num_stages": (1,),
    }


def _forward_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = problem["rows"], problem["columns"]
    block = settings["BLOCK"]
    found = estimates.streaming(
        device,
        settings,
        workgroups=rows,
        read=rows * columns * problem["bytes"],
        written=8 * rows,
        elements=block,
        operations=(12.0 + 12 * problem["capped"]) * triton.cdiv(columns, block),
        held=2.0,
    )
    return found * preference(block, settings, device, few=False)


def _backward_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = problem["rows"], problem["columns"]
    size, block = rows * columns * problem["bytes"], settings["BLOCK"]
    workgroups = rows * triton.cdiv(columns, block)
    found = estimates.streaming(
        device,
        settings,
        workgroups=workgroups,
        read=size,
        written=size,
        elements=block,
        operations=10.0 + 12 * problem["capped"],
        held=2.0,
    )
    waste = workgroups * block / (rows * columns)
    return found * waste * preference(block, settings, device, few=False)


FORWARD = Space(
    kernel="cross_entropy_kernel",
    axes=_axes,
    seconds=_forward_seconds,
    fits=lambda problem, settings, device: (
        settings["BLOCK"] >= 256 * settings["num_warps"] or settings["num_warps"] == 1
    ),
    classes=("rows",),
)
BACKWARD = Space(
    kernel="cross_entropy_backward_kernel",
    axes=_axes,
    seconds=_backward_seconds,
    classes=("rows",),
)


def _inputs(
    make: Make, rows: int, columns: int, dtype: str, scale: float = 3.0, **options: Any
) -> dict[str, Any]:
    """The last of several targets is ignored."""
    targets = make.integers((rows,), 0, columns)
    if rows > 1:
        targets[-1] = -100
    return {"logits": make.normal((rows, columns), dtype, scale), "targets": targets, **options}


def _backward_inputs(
    make: Make, rows: int, columns: int, dtype: str, dlse: bool = True, **options: Any
) -> dict[str, Any]:
    given = _inputs(make, rows, columns, dtype, **options)
    kind = "float64" if dtype == "float64" else "float32"
    lse = make.normal((rows,), kind)
    if make.values:
        wide = given["logits"].to(lse.dtype)
        cap = options.get("soft_cap", 0.0)
        lse = torch.logsumexp(cap * torch.tanh(wide / cap) if cap else wide, -1)
    return {
        "dloss": make.normal((rows,), kind),
        "dlse": make.normal((rows,), kind) if dlse else None,
        **given,
        "lse": lse,
    }


def _work(written: int) -> Any:
    def work(rows: int, columns: int, dtype: str, **_: Any) -> Work:
        size = rows * columns * getattr(torch, dtype).itemsize
        flops = {"vector_fp32": 4.0 * rows * columns}
        return Work(flops, size, written * size + 8 * rows, "formula", "formula")

    return work


_CASES = (
    {"rows": 5, "columns": 300, "dtype": "bfloat16"},
    {"rows": 3, "columns": 17, "dtype": "float32", "label_smoothing": 0.1, "z_loss": 0.01},
    {"rows": 2, "columns": 20001, "dtype": "float16", "soft_cap": 5.0},
)
_THOROUGH = (
    {"rows": 1, "columns": 1, "dtype": "float32"},
    {
        "rows": 3, "columns": 5000, "dtype": "bfloat16",
        "label_smoothing": 0.2, "z_loss": 0.01, "soft_cap": 30.0,
    },
    {"rows": 3, "columns": 9000, "dtype": "float32", "scale": 30.0},
)  # fmt: skip
_SHAPES = (
    {"rows": 4096, "columns": 128256, "dtype": "bfloat16"},
    {"rows": 8192, "columns": 32000, "dtype": "bfloat16"},
)

OPERATORS = (
    Operator(
        name="cross_entropy",
        summary="cross entropy of rows of logits, with smoothing, z-loss and soft cap",
        call=cross_entropy,
        reference=cross_entropy_reference,
        inputs=_inputs,
        work=_work(0),
        batch=Batch(("logits", "targets"), merged=True),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(FORWARD,),
        tolerance=Tolerance(ulps=4.0, accumulated=1e-5),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="cross_entropy_backward",
        summary="gradient of cross_entropy",
        call=cross_entropy_backward,
        reference=cross_entropy_backward_reference,
        gradient=by_reference(cross_entropy_backward_reference),
        inputs=_backward_inputs,
        work=_work(1),
        batch=Batch(("dloss", "dlse", "logits", "targets", "lse"), merged=True),
        cases=_CASES,
        thorough=(*_THOROUGH, {"rows": 3, "columns": 50, "dtype": "bfloat16", "dlse": False}),
        shapes=_SHAPES,
        spaces=(BACKWARD,),
        tolerance=Tolerance(ulps=1.0, accumulated=3e-5),
    ),
)
