"""Weighted sums of two tensors: y = x + alpha · other."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.kernels import checks
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Gradient, Operator
from wavecast.kernels.pointwise import elementwise
from wavecast.kernels.space import Settings


@triton.jit(do_not_specialize=["alpha"])
def add_kernel(x_ptr, other_ptr, y_ptr, count, alpha, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    program = tl.program_id(0)
    start = (program.to(tl.int64) if WIDE else program) * BLOCK
    place = tl.arange(0, BLOCK)
    inside = place < count - start
    x = tl.load(x_ptr + start + place, mask=inside, other=0.0).to(tl.float32)
    other = tl.load(other_ptr + start + place, mask=inside, other=0.0).to(tl.float32)
    y = x + other * alpha
    tl.store(y_ptr + start + place, y.to(y_ptr.dtype.element_ty), mask=inside)


def add(x: torch.Tensor, other: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    """x + alpha · other of one shape, each of float32, float16 or bfloat16, in float32, returned in
    the dtype of `x`. Raises ArgumentError."""
    checks.dtype_in("add", "x", x, checks.FLOATS)
    checks.dtype_in("add", "other", other, checks.FLOATS)
    checks.shape_is("add", "other", other, x.shape)
    checks.same_device("add", x=x, other=other)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    count = x.numel()
    if not count:
        return y

    def grid(settings: Settings) -> tuple[int, ...]:
        return (triton.cdiv(count, settings["BLOCK"]),)

    moved = {"read": elementwise.bytes_of(x, other), "written": x.element_size()}
    launch(
        add_kernel,
        grid,
        (x.contiguous(), other.contiguous(), y, count, float(alpha)),
        SPACE,
        {"count": count, **moved, "mixed": other.dtype != x.dtype},
        WIDE=checks.wide(y),
    )
    return y


def add_reference(x: torch.Tensor, other: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    """`torch.add`, in float32 at least."""
    kind = torch.promote_types(x.dtype, torch.float32)
    return torch.add(x.to(kind), other.to(kind), alpha=alpha).to(x.dtype).contiguous()


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    ctx.kinds = inputs[0].dtype, inputs[1].dtype
    ctx.alpha = inputs[2]


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    return dy.to(ctx.kinds[0]), (dy * ctx.alpha).to(ctx.kinds[1]), None


SPACE = elementwise.flat_space("add_kernel", operations=8.0, held=2.0)


def _inputs(make: Make, rows: int, columns: int, dtype: str, alpha: float = 1.0) -> dict[str, Any]:
    other = make.normal((rows, columns), dtype)
    return {"x": make.normal((rows, columns), dtype), "other": other, "alpha": alpha}


def _elements(rows: int, columns: int, **_: Any) -> float:
    return rows * columns


OPERATORS = (
    Operator(
        name="add",
        summary="x + alpha · other",
        call=add,
        reference=add_reference,
        inputs=_inputs,
        work=elementwise.work(_elements, 2, 1, 2.0),
        batch=Batch(("x", "other")),
        cases=(
            {"rows": 3, "columns": 301, "dtype": "float32", "alpha": -0.5},
            {"rows": 5, "columns": 700, "dtype": "bfloat16"},
        ),
        thorough=({"rows": 33, "columns": 64, "dtype": "float16", "alpha": 3.0},),
        shapes=({"rows": 8192, "columns": 8192, "dtype": "bfloat16"},),
        spaces=(SPACE,),
        gradient=Gradient(_setup, _gradient),
    ),
)
