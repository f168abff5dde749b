"""Cross entropy of rows of logits, forward and backward; the vocabulary is streamed in blocks."""

from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, derivative, describe
from wavecast.kernels.describe import Device, Problem, Settings, widened
from wavecast.kernels.loss import terms
from wavecast.kernels.loss.terms import LossOptions, capped, grad_of, loss_of, weights_of
from wavecast.kernels.norm.rows import preference
from wavecast.kernels.strides import rows_of

_LOWEST = tl.constexpr(-1e30)
"""Below every logit, and finite, so that differences are."""
_RUN = 8
"""Neighbouring logits of a lane, which rescales its sum once for all of them."""
_GIVEN = ("logits: [rows, classes] float", "targets: [rows] index")
TENSORS = describe.Signature(*_GIVEN, returns=terms.LOSS)
BACKWARD_TENSORS = describe.Signature(
    *_GIVEN, *terms.PER_ROW, returns=("dlogits: [rows, classes] =logits",)
)


@triton.jit
def cross_entropy_kernel(
    logits_ptr, targets_ptr, loss_ptr, lse_ptr, columns, stride, ignored, smoothing, z_loss, cap,
    BLOCK: tl.constexpr, RUN: tl.constexpr, SMOOTHED: tl.constexpr, CAPPED: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """One row per program. Every lane has its own maximum and sum until the end."""
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


def _forward_slowed(kernel: Any, problem: Problem, settings: Settings, device: Device) -> float:
    return preference(kernel.elements, settings, device)


def _backward_slowed(kernel: Any, problem: Problem, settings: Settings, device: Device) -> float:
    padded = kernel.workgroups * kernel.elements / (problem["rows"] * problem["columns"])
    return padded * preference(kernel.elements, settings, device)


_SHARED: dict[str, Any] = {
    "axes": {
        "BLOCK": "up_to(max(64, next_power_of_2(columns)), 4096, 2048, 8192, 16384)",
        "num_warps": (4, 8, 2, 1, 16),
    },
    "read": "rows * columns * bytes",
    "elements": "BLOCK",
    "live_registers": 2.0,
    "strides": {"logits": "stride"},
    "rounded": ("rows",),
}
FORWARD = describe.KernelSpec.streaming(
    cross_entropy_kernel,
    grid="rows",
    fits="BLOCK >= 256 * num_warps or num_warps == 1",
    written="8 * rows",
    instructions="(12.0 + 12 * capped) * cdiv(columns, BLOCK)",
    slowed=_forward_slowed,
    contiguous=("targets",),
    **_SHARED,
)
BACKWARD = describe.KernelSpec.streaming(
    cross_entropy_backward_kernel,
    grid="rows * cdiv(columns, BLOCK)",
    written="rows * columns * bytes",
    instructions="10.0 + 12 * capped",
    slowed=_backward_slowed,
    contiguous=("targets", "dloss", "dlse", "lse"),
    **_SHARED,
)


def cross_entropy(
    logits: Tensor, targets: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0,
    z_loss: float = 0.0, soft_cap: float = 0.0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(loss, lse) of every row: cross entropy and the logarithm of the sum of exponentials.

    `logits` are [rows, classes] of float32, float16 or bfloat16, `targets` [rows] of int64 or
    int32; results are [rows] of float32. loss = lse - (1 - s) · x[target] - s · mean(x) +
    z_loss · lse² with s = `label_smoothing` and, with a `soft_cap` over 0, x = cap · tanh(x / cap)
    of the logits. Rows whose target is `ignore_index` have loss 0 (their lse is right); a target
    outside the classes gives NaN otherwise. Both results have gradients. Raises ArgumentError.
    """
    operands = {"logits": logits, "targets": targets}
    options = LossOptions(ignore_index, label_smoothing, z_loss, soft_cap)
    _check("cross_entropy", TENSORS, operands, options)
    loss = torch.empty((logits.shape[0],), dtype=torch.float32, device=logits.device)
    lse = torch.empty_like(loss)
    if not loss.numel():
        return loss, lse
    problem = {**_problem(logits, options), "smoothed": label_smoothing > 0}
    operands |= {"logits": rows_of(logits), "loss": loss, "lse": lse}
    choice.run(FORWARD, problem, **operands, **options.arguments, cap=soft_cap, RUN=_RUN)
    return loss, lse


def cross_entropy_reference(logits, targets, *options, **keywords):
    return terms.reference(widened(logits), targets, LossOptions(*options, **keywords))


def cross_entropy_backward(
    dloss: Tensor, dlse: Tensor | None, logits: Tensor, targets: Tensor, lse: Tensor,
    ignore_index: int = -100, label_smoothing: float = 0.0, z_loss: float = 0.0,
    soft_cap: float = 0.0,
) -> Tensor:  # fmt: skip
    """The gradient of `cross_entropy` with respect to the logits, in their dtype.

    `dloss` and `dlse` (None: zeros) are [rows] of float32 like `lse`, which is that of the forward
    pass. Raises ArgumentError.
    """
    operands = {"logits": logits, "targets": targets, "dloss": dloss, "dlse": dlse, "lse": lse}
    options = LossOptions(ignore_index, label_smoothing, z_loss, soft_cap)
    _check("cross_entropy_backward", BACKWARD_TENSORS, operands, options)
    dlogits = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    if not logits.shape[0]:
        return dlogits
    problem = {**_problem(logits, options), "dlse": dlse is not None}
    operands |= {"logits": rows_of(logits), "grad": dlogits}
    choice.run(BACKWARD, problem, **operands, **options.arguments, cap=soft_cap)
    return dlogits


def cross_entropy_backward_reference(dloss, dlse, logits, targets, lse, *options, **keywords):
    loss_options = LossOptions(*options, **keywords)
    grad = terms.reference_gradient(widened(logits), targets, dloss, dlse, loss_options)
    return grad.to(logits.dtype).contiguous()


def _check(
    operator: str, tensors: describe.Signature, arguments: Any, options: LossOptions
) -> None:
    terms.check(operator, tensors, arguments, options)
    checks.require(arguments["logits"].shape[1] > 0, operator, "there are no classes")


def _problem(logits: Tensor, options: LossOptions) -> dict[str, Any]:
    rows, columns = logits.shape
    size = {"rows": rows, "columns": columns, "bytes": logits.element_size()}
    return {**size, "capped": options.soft_cap > 0}


def _inputs(make, rows, columns, dtype, scale=3.0, **options):
    logits = make.normal((rows, columns), dtype, scale)
    return {"logits": logits, "targets": terms.made_targets(make, rows, columns), **options}


def _work(written: int) -> Any:
    def work(rows, columns, dtype, **_):
        size = rows * columns * getattr(torch, dtype).itemsize
        flops = {"vector_fp32": 4.0 * rows * columns}
        return describe.Work(flops, size, written * size + 8 * rows, "formula", "formula")

    return work


_case = partial(dict, rows=3)
CROSS_ENTROPY = describe.Operator(
    summary="cross entropy of rows of logits, with smoothing, z-loss and soft cap",
    call=cross_entropy,
    tensors=TENSORS,
    inputs=_inputs,
    work=_work(0),
    batch=describe.Batch(("logits", "targets"), merged=True),
    cases=(
        _case(rows=5, columns=300, dtype="bfloat16"),
        _case(columns=17, dtype="float32", label_smoothing=0.1, z_loss=0.01),
        _case(rows=2, columns=20001, dtype="float16", soft_cap=5.0),
    ),
    thorough=(
        _case(rows=1, columns=1, dtype="float32"),
        _case(columns=5000, dtype="bfloat16", label_smoothing=0.2, z_loss=0.01, soft_cap=30.0),
        _case(columns=9000, dtype="float32", scale=30.0),
    ),
    shapes=describe.sizes(
        "rows columns dtype", (4096, 128256, "bfloat16"), (8192, 32000, "bfloat16")
    ),
    tolerance=describe.Tolerance(ulps=4.0, accumulated=1e-5),
    gradient=derivative.by_operator(
        cross_entropy, "cross_entropy_backward", grads=("dloss", "dlse"), of=("logits",),
        saved=("logits", "targets", "lse", *LossOptions._fields), outputs=("loss", "lse"),
    ),
)  # fmt: skip
BACKWARD_OPERATOR = derivative.operator(
    CROSS_ENTROPY,
    cross_entropy_backward,
    tensors=BACKWARD_TENSORS,
    inputs=terms.backward_inputs(_inputs, cross_entropy_reference),
    work=_work(1),
    batch=describe.Batch(("dloss", "dlse", "logits", "targets", "lse"), merged=True),
    thorough=(*CROSS_ENTROPY.thorough, _case(columns=50, dtype="bfloat16", dlse=False)),
    tolerance=describe.Tolerance(ulps=1.0, accumulated=3e-5),
)
OPERATORS = (CROSS_ENTROPY, BACKWARD_OPERATOR)
