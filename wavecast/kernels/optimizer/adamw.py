"""AdamW, one step in place: reads and writes each tensor once."""

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.describe import Operator, Tolerance, Work, checks, choice, sizes, wide_dtype
from wavecast.kernels.pointwise import elementwise

SCALARS = [
    "decay", "beta1", "one_minus_beta1", "beta2", "one_minus_beta2", "eps", "step_size",
    "inv_sqrt_bias", "grad_scale",
]  # fmt: skip


@triton.jit
def stepped(
    param, grad, exp_avg, exp_avg_sq,
    decay, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, step_size, inv_sqrt_bias,
):  # fmt: skip
    """(parameters, moving averages) after a step; all of float32. What is fused is written out, so
    that every kernel gives the same bits."""
    exp_avg = tl.fma(exp_avg, beta1, grad * one_minus_beta1)
    exp_avg_sq = tl.fma(exp_avg_sq, beta2, grad * grad * one_minus_beta2)
    update = step_size * exp_avg / tl.fma(tl.sqrt(exp_avg_sq), inv_sqrt_bias, eps)
    return tl.fma(param, decay, -update), exp_avg, exp_avg_sq


@triton.jit
def step_elements(
    param_ptr, master_ptr, grad_ptr, exp_avg_ptr, exp_avg_sq_ptr, offs, mask,
    decay, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, step_size, inv_sqrt_bias,
    grad_scale, MASTER: tl.constexpr,
):  # fmt: skip
    """A step on the elements at `offs`."""
    grad = tl.load(grad_ptr + offs, mask=mask, other=0.0).to(tl.float32) * grad_scale
    exp_avg = tl.load(exp_avg_ptr + offs, mask=mask, other=0.0)
    exp_avg_sq = tl.load(exp_avg_sq_ptr + offs, mask=mask, other=0.0)
    if MASTER:
        param = tl.load(master_ptr + offs, mask=mask, other=0.0)
    else:
        param = tl.load(param_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    param, exp_avg, exp_avg_sq = stepped(
        param, grad, exp_avg, exp_avg_sq,
        decay, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, step_size, inv_sqrt_bias,
    )  # fmt: skip
    tl.store(exp_avg_ptr + offs, exp_avg, mask=mask)
    tl.store(exp_avg_sq_ptr + offs, exp_avg_sq, mask=mask)
    if MASTER:
        tl.store(master_ptr + offs, param, mask=mask)
    tl.store(param_ptr + offs, param.to(param_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=SCALARS)
def adamw_kernel(
    param_ptr, master_ptr, grad_ptr, exp_avg_ptr, exp_avg_sq_ptr, count,
    decay, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, step_size, inv_sqrt_bias,
    grad_scale, MASTER: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    start = (pid.to(tl.int64) if WIDE else pid) * BLOCK
    offs = tl.arange(0, BLOCK)
    step_elements(
        param_ptr + start, master_ptr + start, grad_ptr + start, exp_avg_ptr + start,
        exp_avg_sq_ptr + start, offs, offs < count - start,
        decay, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, step_size, inv_sqrt_bias,
        grad_scale, MASTER,
    )  # fmt: skip


ADAMW = elementwise.flat_kernel(adamw_kernel, instructions=30.0, live_registers=6.0, narrowest=512)


def adamw(
    param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, step: int, lr: float,
    beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, weight_decay: float = 0.01,
    grad_scale: float = 1.0,
) -> None:  # fmt: skip
    """One step of AdamW (decoupled weight decay), in place.

    `param` and `grad` are float32, float16 or bfloat16, the moving averages `exp_avg` and
    `exp_avg_sq` float32; all of one shape, `param` and the averages contiguous. `step` counts from
    1 and corrects the bias; the gradient is multiplied by `grad_scale` first. In float32:
    param · (1 - lr · weight_decay) - lr · m̂ / (sqrt(v̂) + eps). A CUDA graph replays the numbers it
    was captured with. Raises ArgumentError.
    """
    numbers = scalars("adamw", step, lr, beta1, beta2, eps, weight_decay, grad_scale)
    _run("adamw", param, grad, {"exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq}, numbers)


def adamw_master(
    param: Tensor, master: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, step: int,
    lr: float, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
    weight_decay: float = 0.01, grad_scale: float = 1.0,
) -> None:  # fmt: skip
    """`adamw` with the parameters kept in float32: the step is on `master`, of the shape of
    `param`, and `param` gets it rounded. Raises ArgumentError."""
    numbers = scalars("adamw_master", step, lr, beta1, beta2, eps, weight_decay, grad_scale)
    states = {"exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq, "master": master}
    _run("adamw_master", param, grad, states, numbers)


def _run(
    operator: str, param: Tensor, grad: Tensor, states: dict[str, Tensor], numbers: dict[str, float]
) -> None:
    """`states` are the averages, and the parameters of float32 where they are kept."""
    check_tensors(operator, param, grad, states)
    if not param.numel():
        return
    master = "master" in states
    operands = {"param": param, "grad": grad.contiguous(), "master": param, **states}
    averages_and_updated = tuple(operands[name] for name in ("exp_avg", "exp_avg_sq", "master"))
    written = (*averages_and_updated, param) if master else averages_and_updated
    problem = {
        "count": param.numel(),
        **elementwise.traffic_entries((*averages_and_updated, grad), written),
        "master": master,
        "mixed": torch.float32 != param.dtype or torch.float32 != grad.dtype,
    }
    choice.run(ADAMW, problem, **operands, **numbers)


def check_tensors(operator: str, param: Tensor, grad: Tensor, states: Mapping[str, Tensor]) -> None:
    """Raise ArgumentError for tensors a step cannot be taken on."""
    checks.dtype_in(operator, "param", param, checks.FLOATS)
    checks.dtype_in(operator, "grad", grad, checks.FLOATS)
    checks.same_device(operator, param=param, grad=grad, **states)
    checks.shape_is(operator, "grad", grad, param.shape)
    for name, state in states.items():
        checks.dtype_in(operator, name, state, (torch.float32,))
        checks.shape_is(operator, name, state, param.shape)
    for name, written in {"param": param, **states}.items():
        checks.require(written.is_contiguous(), operator, f"{name} is not contiguous")


def scalars(
    operator: str, step: int, lr: float, beta1: float, beta2: float, eps: float,
    weight_decay: float, grad_scale: float,
) -> dict[str, float]:  # fmt: skip
    """`SCALARS` of a kernel: `step_size` is the learning rate over the bias of the mean,
    `inv_sqrt_bias` 1 / the square root of the bias of the squares. Raises ArgumentError."""
    checks.require(step >= 1, operator, f"step is {step}; it counts from 1")
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        checks.require(0 <= beta < 1, operator, f"{name} is {beta}, expected 0 <= {name} < 1")
    return {
        "decay": 1 - lr * weight_decay,
        "beta1": beta1,
        "one_minus_beta1": 1 - beta1,
        "beta2": beta2,
        "one_minus_beta2": 1 - beta2,
        "eps": eps,
        "step_size": lr / (1 - beta1**step),
        "inv_sqrt_bias": (1 - beta2**step) ** -0.5,
        "grad_scale": float(grad_scale),
    }


def adamw_reference(
    param, grad, exp_avg, exp_avg_sq, step, lr,
    beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01, grad_scale=1.0,
):  # fmt: skip
    """Step by step as the paper has it, in float32 at least."""
    dtype = wide_dtype(param)
    wide = param.to(dtype)
    scaled = grad.to(dtype) * grad_scale
    exp_avg.lerp_(scaled.to(exp_avg.dtype), 1 - beta1)
    exp_avg_sq.mul_(beta2).add_(scaled.square().to(exp_avg_sq.dtype), alpha=1 - beta2)
    mean = exp_avg.to(dtype) / (1 - beta1**step)
    square = exp_avg_sq.to(dtype) / (1 - beta2**step)
    param.copy_(wide * (1 - lr * weight_decay) - lr * mean / (square.sqrt() + eps))


def adamw_master_reference(
    param, master, grad, exp_avg, exp_avg_sq, step, lr,
    beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01, grad_scale=1.0,
):  # fmt: skip
    numbers = step, lr, beta1, beta2, eps, weight_decay, grad_scale
    adamw_reference(master, grad, exp_avg, exp_avg_sq, *numbers)
    param.copy_(master)


def _inputs(make, count, dtype, grad="", step=3, **options):
    return {
        "param": make.normal((count,), dtype),
        "grad": make.normal((count,), grad or dtype),
        "exp_avg": make.normal((count,), "float32", 0.1),
        "exp_avg_sq": make.uniform((count,), "float32", 0.01, 1.0),
        "step": step,
        "lr": 1e-2,
        **options,
    }


def _master_inputs(make, count, dtype, **options):
    arguments = _inputs(make, count, dtype, **options)
    master = make.normal((count,), "float32")
    return {"param": arguments.pop("param"), "master": master, **arguments}


def _work(states: int) -> Any:
    """`states` of float32 read and written; the parameters are read where they are not among
    them."""

    def work(count, dtype, grad="", **_):
        size, grad_size = getattr(torch, dtype).itemsize, getattr(torch, grad or dtype).itemsize
        read = count * (4 * states + grad_size + (size if states == 2 else 0))
        flops = {"vector_fp32": 14.0 * count}
        return Work(flops, read, count * (4 * states + size), "formula", "formula")

    return work


MUTATED = ("param", "exp_avg", "exp_avg_sq")
_CASES = (
    {"count": 300, "dtype": "float32"},
    {"count": 5001, "dtype": "bfloat16", "grad_scale": 0.5, "weight_decay": 0.1},
)
_THOROUGH = (
    {"count": 77, "dtype": "float16", "grad": "float32", "step": 1},
    {"count": 2100, "dtype": "float32", "grad": "bfloat16", "beta1": 0.8, "beta2": 0.95},
    {"count": 513, "dtype": "float32", "step": 1000, "eps": 1e-6, "weight_decay": 0.0},
)
_SHAPES = sizes("count dtype", (1 << 27, "float32"), (1 << 27, "bfloat16"))
NOTES = "Works in place on contiguous tensors; it has no gradient."

OPERATORS = (
    Operator(
        summary="one step of AdamW in place",
        call=adamw,
        inputs=_inputs,
        work=_work(2),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        mutates=MUTATED,
        tolerance=Tolerance(ulps=1.0, accumulated=2e-6),
        notes=NOTES,
    ),
    Operator(
        summary="one step of AdamW in place on a float32 copy of the parameters",
        call=adamw_master,
        inputs=_master_inputs,
        work=_work(3),
        cases=tuple({**case, "dtype": "bfloat16"} for case in _CASES),
        thorough=tuple({**case, "dtype": "float16"} for case in _THOROUGH),
        shapes=_SHAPES[1:],
        mutates=("master", *MUTATED),
        notes=NOTES,
    ),
)
