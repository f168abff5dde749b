"""AdamW, one step in place: reads and writes each tensor once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.kernels import checks
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator, Tolerance
from wavecast.kernels.pointwise import elementwise
from wavecast.kernels.space import Settings
from wavecast.model.bounds import Work

SCALARS = [
    "decay", "beta1", "rest1", "beta2", "rest2", "eps", "rate", "root", "grad_scale",
]  # fmt: skip


@triton.jit
def advanced(param, grad, mean, square, decay, beta1, rest1, beta2, rest2, eps, rate, root):
    """(parameters, moving averages) after a step; all of float32. What is fused is written out, so
    that every kernel gives the same bits."""
    mean = tl.fma(mean, beta1, grad * rest1)
    square = tl.fma(square, beta2, grad * grad * rest2)
    change = rate * mean / tl.fma(tl.sqrt(square), root, eps)
    return tl.fma(param, decay, -change), mean, square


@triton.jit
def advance(
    param_ptr, master_ptr, grad_ptr, mean_ptr, square_ptr, place, inside,
    decay, beta1, rest1, beta2, rest2, eps, rate, root, grad_scale, MASTER: tl.constexpr,
):  # fmt: skip
    """A step on the elements at `place`."""
    grad = tl.load(grad_ptr + place, mask=inside, other=0.0).to(tl.float32) * grad_scale
    mean = tl.load(mean_ptr + place, mask=inside, other=0.0)
    square = tl.load(square_ptr + place, mask=inside, other=0.0)
    if MASTER:
        param = tl.load(master_ptr + place, mask=inside, other=0.0)
    else:
        param = tl.load(param_ptr + place, mask=inside, other=0.0).to(tl.float32)
    param, mean, square = advanced(
        param, grad, mean, square, decay, beta1, rest1, beta2, rest2, eps, rate, root
    )
    tl.store(mean_ptr + place, mean, mask=inside)
    tl.store(square_ptr + place, square, mask=inside)
    if MASTER:
        tl.store(master_ptr + place, param, mask=inside)
    tl.store(param_ptr + place, param.to(param_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=SCALARS)
def adamw_kernel(
    param_ptr, master_ptr, grad_ptr, mean_ptr, square_ptr, count,
    decay, beta1, rest1, beta2, rest2, eps, rate, root, grad_scale,
    MASTER: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    start = (program.to(tl.int64) if WIDE else program) * BLOCK
    place = tl.arange(0, BLOCK)
    advance(
        param_ptr + start, master_ptr + start, grad_ptr + start, mean_ptr + start,
        square_ptr + start, place, place < count - start,
        decay, beta1, rest1, beta2, rest2, eps, rate, root, grad_scale, MASTER,
    )  # fmt: skip


def adamw(
    param: torch.Tensor,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    step: int,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    grad_scale: float = 1.0,
) -> None:
    """One step of AdamW (decoupled weight decay), in place.

    `param` and `grad` are float32, float16 or bfloat16, the moving averages `exp_avg` and
    `exp_avg_sq` float32; all of one shape, `param` and the averages contiguous. `step` counts from
    1 and corrects the bias; the gradient is multiplied by `grad_scale` first. In float32:
    param · (1 - lr · weight_decay) - lr · m̂ / (sqrt(v̂) + eps). A CUDA graph replays the numbers it
    was captured with. Raises ArgumentError.
    """
    numbers = scalars("adamw", step, lr, beta1, beta2, eps, weight_decay, grad_scale)
    _run("adamw", param, None, grad, exp_avg, exp_avg_sq, numbers)


def adamw_master(
    param: torch.Tensor,
    master: torch.Tensor,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    step: int,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    grad_scale: float = 1.0,
) -> None:
    """`adamw` with the parameters kept in float32: the step is on `master`, and `param` gets it
    rounded. Raises ArgumentError."""
    numbers = scalars("adamw_master", step, lr, beta1, beta2, eps, weight_decay, grad_scale)
    _run("adamw_master", param, master, grad, exp_avg, exp_avg_sq, numbers)


def _run(
    operator: str,
    param: torch.Tensor,
    master: torch.Tensor | None,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    numbers: tuple[float, ...],
) -> None:
    states = {"exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq}
    if master is not None:
        states["master"] = master
    check_tensors(operator, param, grad, states)
    count = param.numel()
    if not count:
        return

    def grid(settings: Settings) -> tuple[int, ...]:
        return (triton.cdiv(count, settings["BLOCK"]),)

    moved = elementwise.bytes_of(exp_avg, exp_avg_sq, param if master is None else master)
    written = moved + (param.element_size() if master is not None else 0)
    launch(
        adamw_kernel,
        grid,
        (
            *(param, param if master is None else master, grad.contiguous()),
            *(exp_avg, exp_avg_sq, count, *numbers),
        ),
        SPACE,
        {
            "count": count,
            "read": moved + grad.element_size(),
            "written": written,
            "master": master is not None,
            "mixed": torch.float32 != param.dtype or torch.float32 != grad.dtype,
        },
        MASTER=master is not None,
        WIDE=checks.wide(param),
    )


def check_tensors(
    operator: str, param: torch.Tensor, grad: torch.Tensor, states: Mapping[str, torch.Tensor]
) -> None:
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
    operator: str,
    step: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    grad_scale: float,
) -> tuple[float, ...]:
    """`SCALARS` of a kernel: `rate` is the learning rate over the bias of the mean, `root`
    1 / the root of the bias of the squares. Raises ArgumentError."""
    checks.require(step >= 1, operator, f"step is {step}; it counts from 1")
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        checks.require(0 <= beta < 1, operator, f"{name} is {beta}, expected 0 <= {name} < 1")
    rate, root = lr / (1 - beta1**step), (1 - beta2**step) ** -0.5
    return (
        *(1 - lr * weight_decay, beta1, 1 - beta1, beta2, 1 - beta2),
        *(eps, rate, root, float(grad_scale)),
    )


def adamw_reference(
    param: torch.Tensor,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    step: int,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    grad_scale: float = 1.0,
) -> None:
    """Step by step as the paper has it, in float32 at least."""
    kind = torch.promote_types(param.dtype, torch.float32)
    wide = param.to(kind)
    slope = grad.to(kind) * grad_scale
    exp_avg.lerp_(slope.to(exp_avg.dtype), 1 - beta1)
    exp_avg_sq.mul_(beta2).add_(slope.square().to(exp_avg_sq.dtype), alpha=1 - beta2)
    mean = exp_avg.to(kind) / (1 - beta1**step)
    square = exp_avg_sq.to(kind) / (1 - beta2**step)
    wide = wide * (1 - lr * weight_decay) - lr * mean / (square.sqrt() + eps)
    param.copy_(wide)


def adamw_master_reference(
    param: torch.Tensor,
    master: torch.Tensor,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    step: int,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    grad_scale: float = 1.0,
) -> None:
    """`adamw_reference` on the master copy."""
    adamw_reference(
        master, grad, exp_avg, exp_avg_sq,
        step, lr, beta1, beta2, eps, weight_decay, grad_scale,
    )  # fmt: skip
    param.copy_(master)


SPACE = elementwise.flat_space("adamw_kernel", operations=30.0, held=6.0, narrowest=512)


def _inputs(
    make: Make, count: int, dtype: str, grad: str = "", step: int = 3, **named: Any
) -> dict[str, Any]:
    mean = make.normal((count,), "float32", 0.1)
    return {
        "param": make.normal((count,), dtype),
        "grad": make.normal((count,), grad or dtype),
        "exp_avg": mean,
        "exp_avg_sq": make.uniform((count,), "float32", 0.01, 1.0),
        "step": step,
        "lr": 1e-2,
        **named,
    }


def _master_inputs(make: Make, count: int, dtype: str, **named: Any) -> dict[str, Any]:
    given = _inputs(make, count, dtype, **named)
    return {
        "param": given.pop("param"),
        "master": make.normal((count,), "float32"),
        **given,
    }


def _work(read: int, written: int, copies: int) -> Any:
    """`copies` of the parameters written besides the float32 states."""

    def work(count: int, dtype: str, grad: str = "", **_: Any) -> Work:
        size = getattr(torch, dtype).itemsize
        slope = getattr(torch, grad or dtype).itemsize
        gone = count * (4 * read + slope + (size if not copies else 0))
        there = count * (4 * written + size)
        return Work({"vector_fp32": 14.0 * count}, gone, there, "formula", "formula")

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
_SHAPES = (
    {"count": 1 << 27, "dtype": "float32"},
    {"count": 1 << 27, "dtype": "bfloat16"},
)
NOTES = "Works in place on contiguous tensors; it has no gradient."

OPERATORS = (
    Operator(
        name="adamw",
        summary="one step of AdamW in place",
        call=adamw,
        reference=adamw_reference,
        inputs=_inputs,
        work=_work(2, 2, 0),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(SPACE,),
        mutates=MUTATED,
        tolerance=Tolerance(ulps=1.0, accumulated=2e-6),
        notes=NOTES,
    ),
    Operator(
        name="adamw_master",
        summary="one step of AdamW in place on a float32 copy of the parameters",
        call=adamw_master,
        reference=adamw_master_reference,
        inputs=_master_inputs,
        work=_work(3, 3, 1),
        cases=tuple({**sizes, "dtype": "bfloat16"} for sizes in _CASES),
        thorough=tuple({**sizes, "dtype": "float16"} for sizes in _THOROUGH),
        shapes=_SHAPES[1:],
        spaces=(SPACE,),
        mutates=("master", *MUTATED),
        notes=NOTES,
    ),
)
