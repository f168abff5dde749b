"""Cross entropy of rows of logits, forward and backward; the vocabulary is streamed in blocks."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.describe import (
    Axes,
    Batch,
    Demand,
    Device,
    Gradient,
    KernelSpec,
    Operator,
    Problem,
    Settings,
    Signature,
    StreamingKernel,
    Tolerance,
    Work,
    checks,
    choice,
    derivative,
    widened,
)
from wavecast.kernels.loss import terms
from wavecast.kernels.loss.terms import capped, grad_of, loss_of, weights_of
from wavecast.kernels.norm.rows import flat, preference
from wavecast.kernels.strides import contiguous

_LOWEST = tl.constexpr(-1e30)
"""Below every logit, and finite, so that differences are."""
_RUN = 8
"""Neighbouring logits of a lane, which rescales its sum once for all of them."""
_GIVEN = ("logits: [rows, classes] float", "targets: [rows] index")
TENSORS = Signature(*_GIVEN, returns=terms.LOSS)
BACKWARD_TENSORS = Signature(*_GIVEN, *terms.PER_ROW, returns=("dlogits: [rows, classes] =logits",))


@triton.jit
def cross_entropy_kernel(
    logits_ptr, targets_ptr, loss_ptr, lse_ptr, columns, stride, ignored, smoothing, z_loss, cap,
    BLOCK: tl.constexpr, RUN: tl.constexpr, SMOOTHED: tl.constexpr, CAPPED: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """One row per program. Every lane has a maximum and a sum of its own until the end."""
    row = tl.program_id(0)
    logits_row = logits_ptr + (tl.cast(row, tl.int64) if WIDE else row) * stride
    offs = tl.arange(0, BLOCK // RUN)[:, None] * RUN + tl.arange(0, RUN)[None, :]
    lane_max = tl.full((BLOCK // RUN,), _LOWEST, tl.float32)
    lane_sum = tl.zeros((BLOCK // RUN,), tl.float32)
    logit_sum = tl.zeros((BLOCK // RUN,), tl.float32)
    for start in range(0, columns, BLOCK):
        offs_n = start + offs
        x = tl.load(logits_row + offs_n, mask=offs_n < columns, other=-float("inf")).to(tl.float32)
        if CAPPED:
            x = tl.where(offs_n < columns, capped(x, cap, CAPPED), -float("inf"))
        previous_max = lane_max
        lane_max = tl.maximum(lane_max, tl.max(x, axis=1))
        lane_sum = lane_sum * tl.exp(previous_max - lane_max) + tl.sum(
            tl.exp(x - lane_max[:, None]), axis=1
        )
        if SMOOTHED:
            logit_sum += tl.sum(tl.where(offs_n < columns, x, 0.0), axis=1)
    row_max = tl.max(lane_max, axis=0)
    lse = row_max + tl.log(tl.sum(lane_sum * tl.exp(lane_max - row_max), axis=0))
    target = tl.load(targets_ptr + row)
    target_index = tl.minimum(tl.maximum(target, 0), columns - 1)
    target_logit = capped(tl.load(logits_row + target_index).to(tl.float32), cap, CAPPED)
    mean = tl.sum(logit_sum, axis=0) / columns
    loss = loss_of(lse, target_logit, mean, target, columns, ignored, smoothing, z_loss)
    tl.store(loss_ptr + row, loss)
    tl.store(lse_ptr + row, lse)


@triton.jit
def cross_entropy_backward_kernel(
    dloss_ptr, dlse_ptr, logits_ptr, targets_ptr, lse_ptr, grad_ptr,
    columns, stride, ignored, smoothing, z_loss, cap,
    BLOCK: tl.constexpr, CAPPED: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One block of one row per program."""
    num_blocks = tl.cdiv(columns, BLOCK)
    row = tl.program_id(0) // num_blocks
    offs_n = tl.program_id(0) % num_blocks * BLOCK + tl.arange(0, BLOCK)
    lse = tl.load(lse_ptr + row)
    target = tl.load(targets_ptr + row)
    dlse = tl.load(dlse_ptr + row) if dlse_ptr is not None else 0.0
    weight, dloss = weights_of(lse, tl.load(dloss_ptr + row), dlse, target == ignored, z_loss)
    row_offset = tl.cast(row, tl.int64) if WIDE else row
    x = tl.load(logits_ptr + row_offset * stride + offs_n, mask=offs_n < columns, other=0.0)
    grad = grad_of(
        x.to(tl.float32), offs_n, lse, target, weight, dloss, columns, smoothing, cap, CAPPED
    )
    grad_row = grad_ptr + row_offset * columns + offs_n
    tl.store(grad_row, grad.to(grad_ptr.dtype.element_ty), mask=offs_n < columns)


def _axes(problem: Problem, device: Device) -> Axes:
    most = max(64, triton.next_power_of_2(problem["columns"]))
    return {
        "BLOCK": [min(n, most) for n in (4096, 2048, 8192, 16384) if n <= most] or [most],
        "num_warps": (4, 8, 2, 1, 16),
        "num_stages": (1,),
    }


def _forward_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    return settings["BLOCK"] >= 256 * settings["num_warps"] or settings["num_warps"] == 1


def _forward_demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    rows, columns, block = problem["rows"], problem["columns"], settings["BLOCK"]
    found = StreamingKernel(
        workgroups=rows,
        read=rows * columns * problem["bytes"],
        written=8 * rows,
        elements=block,
        instructions=(12.0 + 12 * problem["capped"]) * triton.cdiv(columns, block),
        live_registers=2.0,
    )
    return found.slowed(preference(block, settings, device, few=False))


def _backward_grid(problem: Problem, settings: Settings) -> tuple[int]:
    return (problem["rows"] * triton.cdiv(problem["columns"], settings["BLOCK"]),)


def _backward_demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    rows, columns, block = problem["rows"], problem["columns"], settings["BLOCK"]
    workgroups = _backward_grid(problem, settings)[0]
    found = StreamingKernel(
        workgroups=workgroups,
        read=rows * columns * problem["bytes"],
        written=rows * columns * problem["bytes"],
        elements=block,
        instructions=10.0 + 12 * problem["capped"],
        live_registers=2.0,
    )
    padded = workgroups * block / (rows * columns)
    return found.slowed(padded * preference(block, settings, device, few=False))


FORWARD = KernelSpec(
    function=cross_entropy_kernel,
    grid=lambda problem, settings: (problem["rows"],),
    axes=_axes,
    fits=_forward_fits,
    demand=_forward_demand,
    rounded=("rows",),
)
BACKWARD = KernelSpec(
    function=cross_entropy_backward_kernel,
    grid=_backward_grid,
    axes=_axes,
    demand=_backward_demand,
    rounded=("rows",),
)


def cross_entropy(
    logits: Tensor,
    targets: Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """(loss, lse) of every row: cross entropy and the logarithm of the sum of exponentials.

    `logits` are [rows, classes] of float32, float16 or bfloat16, `targets` [rows] of int64 or
    int32; results are [rows] of float32. loss = lse - (1 - s) · x[target] - s · mean(x) +
    z_loss · lse² with s = `label_smoothing` and, with a `soft_cap` over 0, x = cap · tanh(x / cap)
    of the logits. Rows whose target is `ignore_index` have loss 0 (their lse is right); any other
    target that is no class gives NaN. Both results have gradients. Raises ArgumentError.
    """
    given = {"logits": logits, "targets": targets}
    _check("cross_entropy", TENSORS, given, label_smoothing, soft_cap)
    loss = torch.empty((logits.shape[0],), dtype=torch.float32, device=logits.device)
    lse = torch.empty_like(loss)
    if not loss.numel():
        return loss, lse
    flags = {"smoothed": label_smoothing > 0, "capped": soft_cap > 0}
    choice.run(
        FORWARD,
        _problem(logits) | flags,
        **_options(logits, targets, ignore_index, label_smoothing, z_loss, soft_cap),
        loss=loss,
        lse=lse,
        RUN=_RUN,
        SMOOTHED=label_smoothing > 0,
    )
    return loss, lse


def cross_entropy_reference(
    logits, targets, ignore_index=-100, label_smoothing=0.0, z_loss=0.0, soft_cap=0.0
):
    options = ignore_index, label_smoothing, z_loss, soft_cap
    return terms.reference(widened(logits), targets, *options)


def cross_entropy_backward(
    dloss: Tensor,
    dlse: Tensor | None,
    logits: Tensor,
    targets: Tensor,
    lse: Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> Tensor:
    """The gradient of `cross_entropy` with respect to the logits, in their dtype.

    `dloss` and `dlse` (None: zeros) are [rows] of float32 like `lse`, which is that of the forward
    pass. Raises ArgumentError.
    """
    given = {"logits": logits, "targets": targets, "dloss": dloss, "dlse": dlse, "lse": lse}
    _check("cross_entropy_backward", BACKWARD_TENSORS, given, label_smoothing, soft_cap)
    dlogits = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    if not logits.shape[0]:
        return dlogits
    choice.run(
        BACKWARD,
        _problem(logits) | {"capped": soft_cap > 0, "dlse": dlse is not None},
        **_options(logits, targets, ignore_index, label_smoothing, z_loss, soft_cap),
        dloss=dloss.contiguous(),
        dlse=contiguous(dlse),
        lse=lse.contiguous(),
        grad=dlogits,
    )
    return dlogits


def cross_entropy_backward_reference(
    dloss,
    dlse,
    logits,
    targets,
    lse,
    ignore_index=-100,
    label_smoothing=0.0,
    z_loss=0.0,
    soft_cap=0.0,
):
    options = ignore_index, label_smoothing, z_loss, soft_cap
    grad = terms.reference_gradient(widened(logits), targets, dloss, dlse, *options)
    return grad.to(logits.dtype).contiguous()


def _check(operator: str, tensors: Signature, given: Any, smoothing: float, cap: float) -> None:
    terms.check(operator, tensors, given, smoothing, cap)
    checks.require(given["logits"].shape[1] > 0, operator, "there are no classes")


def _problem(logits: Tensor) -> dict[str, Any]:
    rows, columns = logits.shape
    return {"rows": rows, "columns": columns, "bytes": logits.element_size()}


def _options(
    logits: Tensor,
    targets: Tensor,
    ignore_index: int,
    label_smoothing: float,
    z_loss: float,
    soft_cap: float,
) -> dict[str, Any]:
    """The arguments both kernels take."""
    rows = flat(logits)
    return {
        "logits": rows,
        "stride": rows.stride(0),
        "targets": targets.contiguous(),
        "ignored": ignore_index,
        "smoothing": label_smoothing,
        "z_loss": z_loss,
        "cap": soft_cap,
        "CAPPED": soft_cap > 0,
    }


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    logits, targets, *ctx.options = inputs
    ctx.save_for_backward(logits, targets, output[1])


def _gradient(ctx: Any, dloss: Tensor, dlse: Tensor) -> tuple[Any, ...]:
    call = torch.ops.wavecast.cross_entropy_backward
    return call(dloss, dlse, *ctx.saved_tensors, *ctx.options), None, None, None, None, None


def _inputs(make, rows, columns, dtype, scale=3.0, **options):
    """The last of several targets is ignored."""
    targets = make.integers((rows,), 0, columns)
    if rows > 1:
        targets[-1] = -100
    return {"logits": make.normal((rows, columns), dtype, scale), "targets": targets, **options}


def _backward_inputs(make, rows, columns, dtype, dlse=True, **options):
    given = _inputs(make, rows, columns, dtype, **options)
    wide = "float64" if dtype == "float64" else "float32"
    lse = make.normal((rows,), wide)
    if make.values:
        logits = given["logits"].to(lse.dtype)
        cap = options.get("soft_cap", 0.0)
        lse = torch.logsumexp(cap * torch.tanh(logits / cap) if cap else logits, -1)
    return {
        "dloss": make.normal((rows,), wide),
        "dlse": make.normal((rows,), wide) if dlse else None,
        **given,
        "lse": lse,
    }


def _work(written: int) -> Any:
    def work(rows, columns, dtype, **_):
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
        summary="cross entropy of rows of logits, with smoothing, z-loss and soft cap",
        call=cross_entropy,
        reference=cross_entropy_reference,
        tensors=TENSORS,
        inputs=_inputs,
        work=_work(0),
        batch=Batch(("logits", "targets"), merged=True),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        kernels=(FORWARD,),
        tolerance=Tolerance(ulps=4.0, accumulated=1e-5),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        summary="gradient of cross_entropy",
        call=cross_entropy_backward,
        reference=cross_entropy_backward_reference,
        tensors=BACKWARD_TENSORS,
        gradient=derivative.by_reference(cross_entropy_backward_reference),
        inputs=_backward_inputs,
        work=_work(1),
        batch=Batch(("dloss", "dlse", "logits", "targets", "lse"), merged=True),
        cases=_CASES,
        thorough=(*_THOROUGH, {"rows": 3, "columns": 50, "dtype": "bfloat16", "dlse": False}),
        shapes=_SHAPES,
        kernels=(BACKWARD,),
        tolerance=Tolerance(ulps=1.0, accumulated=3e-5),
    ),
)
