"""Softmax and its logarithm over the last dimension, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.derivative import by_reference
from wavecast.kernels.inputs import Make
from wavecast.kernels.norm.rows import flat, preference
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.bounds import Work

_WHOLE_ROW = 32768
"""Columns a program holds at once; longer rows are walked twice."""
_BITS = tl.constexpr(1.4426950408889634)
"""Powers of two in one of e."""
_LOWEST = tl.constexpr(-1e30)
"""Below every logit, and finite, so that differences are."""


@triton.jit
def softmax_kernel(
    x_ptr, y_ptr, rows, columns, stride,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, LOG: tl.constexpr, WHOLE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    if WIDE:
        row = row.to(tl.int64)
    valid = (row < rows)[:, None]
    source = x_ptr + row[:, None] * stride
    target = y_ptr + row[:, None] * columns
    kind = y_ptr.dtype.element_ty
    if WHOLE:
        place = tl.arange(0, BLOCK)[None, :]
        inside = valid & (place < columns)
        x = tl.load(source + place, mask=inside, other=-float("inf"))
        most = tl.max(x.to(tl.float32), axis=1, keep_dims=True)
        bits = (x.to(tl.float32) - most) * _BITS  # all that a logarithm must keep in registers
        powers = tl.exp2(bits)
        total = tl.sum(powers, axis=1, keep_dims=True)
        share = 1.0 / total  # pyright: ignore[reportOperatorIssue]
        y = (bits - tl.log2(total)) * (1.0 / _BITS) if LOG else powers * share
        tl.store(target + place, y.to(kind), mask=inside)
    else:
        most = tl.full((ROWS, 1), _LOWEST, tl.float32)
        total = tl.zeros((ROWS, 1), tl.float32)
        for start in range(0, columns, BLOCK):
            place = start + tl.arange(0, BLOCK)[None, :]
            inside = valid & (place < columns)
            x = tl.load(source + place, mask=inside, other=-float("inf")).to(tl.float32)
            before = most
            most = tl.maximum(most, tl.max(x, axis=1, keep_dims=True))
            total = total * tl.exp(before - most) + tl.sum(tl.exp(x - most), axis=1, keep_dims=True)
        for start in range(0, columns, BLOCK):
            place = start + tl.arange(0, BLOCK)[None, :]
            inside = valid & (place < columns)
            x = tl.load(source + place, mask=inside, other=-float("inf")).to(tl.float32) - most
            y = x - tl.log(total) if LOG else tl.exp(x) * (1.0 / total)
            tl.store(target + place, y.to(kind), mask=inside)


@triton.jit
def softmax_backward_kernel(
    dy_ptr, y_ptr, dx_ptr, rows, columns,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, LOG: tl.constexpr, WHOLE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    if WIDE:
        row = row.to(tl.int64)
    valid = (row < rows)[:, None]
    first = row[:, None] * columns
    kind = dx_ptr.dtype.element_ty
    if WHOLE:
        place = tl.arange(0, BLOCK)[None, :]
        inside = valid & (place < columns)
        y = tl.load(y_ptr + first + place, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + first + place, mask=inside, other=0.0).to(tl.float32)
        if LOG:
            dx = dy - tl.exp(y) * tl.sum(dy, axis=1, keep_dims=True)
        else:
            dx = y * (dy - tl.sum(dy * y, axis=1, keep_dims=True))
        tl.store(dx_ptr + first + place, dx.to(kind), mask=inside)
    else:
        total = tl.zeros((ROWS,), tl.float32)
        for start in range(0, columns, BLOCK):
            place = start + tl.arange(0, BLOCK)[None, :]
            inside = valid & (place < columns)
            dy = tl.load(dy_ptr + first + place, mask=inside, other=0.0).to(tl.float32)
            if not LOG:
                dy *= tl.load(y_ptr + first + place, mask=inside, other=0.0).to(tl.float32)
            total += tl.sum(dy, axis=1)
        for start in range(0, columns, BLOCK):
            place = start + tl.arange(0, BLOCK)[None, :]
            inside = valid & (place < columns)
            y = tl.load(y_ptr + first + place, mask=inside, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + first + place, mask=inside, other=0.0).to(tl.float32)
            dx = dy - tl.exp(y) * total[:, None] if LOG else y * (dy - total[:, None])
            tl.store(dx_ptr + first + place, dx.to(kind), mask=inside)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax of the last dimension, exp(x) / sum(exp(x)).

    `x` is [..., columns] of float32, float16 or bfloat16; computed in float32, returned in its
    dtype. A row of nothing but -inf gives NaN. Raises ArgumentError.
    """
    return _forward("softmax", x, log=False)


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    """Logarithm of the softmax of the last dimension, x - log(sum(exp(x))).

    `x` is [..., columns] of float32, float16 or bfloat16; computed in float32, returned in its
    dtype. A row of nothing but -inf gives NaN. Raises ArgumentError.
    """
    return _forward("log_softmax", x, log=True)


def softmax_backward(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The gradient of `softmax` with respect to x, from its result `y` of the same shape, in the
    dtype of `y`. Raises ArgumentError."""
    return _backward("softmax_backward", dy, y, log=False)


def log_softmax_backward(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The gradient of `log_softmax` with respect to x, from its result `y` of the same shape, in
    the dtype of `y`. Raises ArgumentError."""
    return _backward("log_softmax_backward", dy, y, log=True)


def softmax_reference(x: torch.Tensor) -> torch.Tensor:
    """`torch.softmax`, in float32 at least."""
    return torch.softmax(x.to(_widest(x)), -1).to(x.dtype).contiguous()


def log_softmax_reference(x: torch.Tensor) -> torch.Tensor:
    """`torch.log_softmax`, in float32 at least."""
    return torch.log_softmax(x.to(_widest(x)), -1).to(x.dtype).contiguous()


def softmax_backward_reference(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """By the formula, in float32 at least."""
    slope, wide = dy.to(_widest(y)), y.to(_widest(y))
    dx = wide * (slope - (slope * wide).sum(-1, keepdim=True))
    return dx.to(y.dtype).contiguous()


def log_softmax_backward_reference(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """By the formula, in float32 at least."""
    slope, wide = dy.to(_widest(y)), y.to(_widest(y))
    return (slope - wide.exp() * slope.sum(-1, keepdim=True)).to(y.dtype).contiguous()


def _widest(x: torch.Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _forward(operator: str, x: torch.Tensor, *, log: bool) -> torch.Tensor:
    checks.require(x.dim() > 0, operator, "x is a scalar")
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return y
    source = flat(x)
    rows, columns = source.shape
    launch(
        softmax_kernel,
        lambda settings: (triton.cdiv(rows, settings["ROWS"]),),
        (source, y, rows, columns, source.stride(0)),
        FORWARD,
        {"rows": rows, "columns": columns, "bytes": x.element_size(), "log": log},
        LOG=log,
        WHOLE=columns <= _WHOLE_ROW,
        WIDE=checks.wide(source, y),
    )
    return y


def _backward(operator: str, dy: torch.Tensor, y: torch.Tensor, *, log: bool) -> torch.Tensor:
    checks.require(y.dim() > 0, operator, "y is a scalar")
    checks.dtype_in(operator, "y", y, checks.FLOATS)
    checks.dtype_in(operator, "dy", dy, checks.FLOATS)
    checks.shape_is(operator, "dy", dy, y.shape)
    checks.same_device(operator, dy=dy, y=y)
    dx = torch.empty(y.shape, dtype=y.dtype, device=y.device)
    if not y.numel():
        return dx
    columns = y.shape[-1]
    rows = y.numel() // columns
    launch(
        softmax_backward_kernel,
        lambda settings: (triton.cdiv(rows, settings["ROWS"]),),
        (dy.contiguous(), y.contiguous(), dx, rows, columns),
        BACKWARD,
        {"rows": rows, "columns": columns, "bytes": y.element_size(), "log": log},
        LOG=log,
        WHOLE=columns <= _WHOLE_ROW,
        WIDE=checks.wide(y),
    )
    return dx


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(output)


def _gradient(ctx: Any, dy: torch.Tensor) -> torch.Tensor:
    return torch.ops.wavecast.softmax_backward(dy, *ctx.saved_tensors)


def _log_gradient(ctx: Any, dy: torch.Tensor) -> torch.Tensor:
    return torch.ops.wavecast.log_softmax_backward(dy, *ctx.saved_tensors)


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    block = triton.next_power_of_2(problem["columns"])
    whole = problem["columns"] <= _WHOLE_ROW
    most = min(8192 // block, triton.next_power_of_2(problem["rows"]))
    return {
        "BLOCK": (block,) if whole else (4096, 8192, 16384),
        "ROWS": [n for n in (1, 2, 4, 8, 16, 32, 64) if n == 1 or n <= most],
        "num_warps": (4, 2, 8, 1, 16),
        "num_stages": (1,),
    }


def _seconds(reads: int) -> Callable[[Problem, Settings, Device], float]:
    def seconds(problem: Problem, settings: Settings, device: Device) -> float:
        rows, columns = problem["rows"], problem["columns"]
        passes = 1 if columns <= _WHOLE_ROW else 2
        size = rows * columns * problem["bytes"]
        workgroups = triton.cdiv(rows, settings["ROWS"])
        elements = settings["ROWS"] * settings["BLOCK"]
        found = estimates.streaming(
            device,
            settings,
            workgroups=workgroups,
            read=reads * size * passes,
            written=size,
            elements=elements,
            operations=12.0 * passes * triton.cdiv(columns, settings["BLOCK"]),
            held=1.0 + reads,
        )
        few = workgroups <= 2 * device.compute_units
        return found * preference(elements, settings, device, few=few)

    return seconds


FORWARD = Space(kernel="softmax_kernel", axes=_axes, seconds=_seconds(1), classes=("rows",))
BACKWARD = Space(
    kernel="softmax_backward_kernel", axes=_axes, seconds=_seconds(2), classes=("rows",)
)


def _inputs(make: Make, rows: int, columns: int, dtype: str) -> dict[str, Any]:
    return {"x": make.normal((rows, columns), dtype, 3.0)}


def _backward_inputs(log: bool) -> Callable[..., dict[str, Any]]:
    def made(make: Make, rows: int, columns: int, dtype: str) -> dict[str, Any]:
        x = make.normal((rows, columns), dtype, 3.0)
        if make.values:
            kind = _widest(x)
            y = torch.log_softmax(x.to(kind), -1) if log else torch.softmax(x.to(kind), -1)
            x = y.to(x.dtype)
        return {"dy": make.normal((rows, columns), dtype), "y": x}

    return made


def _work(tensors: int) -> Callable[..., Work]:
    def work(rows: int, columns: int, dtype: str) -> Work:
        size = rows * columns * getattr(torch, dtype).itemsize
        flops = {"vector_fp32": 5.0 * rows * columns}
        return Work(flops, (tensors - 1) * size, size, "formula", "formula")

    return work


_CASES = (
    {"rows": 5, "columns": 300, "dtype": "bfloat16"},
    {"rows": 3, "columns": 17, "dtype": "float32"},
    {"rows": 133, "columns": 64, "dtype": "float16"},
    {"rows": 2, "columns": 33000, "dtype": "bfloat16"},
)
_THOROUGH = (
    {"rows": 1, "columns": 1, "dtype": "float32"},
    {"rows": 2, "columns": 8000, "dtype": "float16"},
    {"rows": 2, "columns": 33000, "dtype": "float32"},
)
_SHAPES = (
    {"rows": 8192, "columns": 4096, "dtype": "bfloat16"},
    {"rows": 4096, "columns": 32768, "dtype": "bfloat16"},
)
_TOLERANCE = Tolerance(ulps=1.0, accumulated=1e-5)


def _pair(name: str, *, log: bool) -> tuple[Operator, Operator]:
    what = "logarithm of the softmax" if log else "softmax"
    return (
        Operator(
            name=name,
            summary=f"{what} of the last dimension",
            call=log_softmax if log else softmax,
            reference=log_softmax_reference if log else softmax_reference,
            inputs=_inputs,
            work=_work(2),
            batch=Batch(("x",)),
            cases=_CASES,
            thorough=_THOROUGH,
            shapes=_SHAPES,
            spaces=(FORWARD,),
            tolerance=_TOLERANCE,
            gradient=Gradient(_setup, _log_gradient if log else _gradient),
        ),
        Operator(
            name=f"{name}_backward",
            summary=f"gradient of {name}",
            call=log_softmax_backward if log else softmax_backward,
            reference=log_softmax_backward_reference if log else softmax_backward_reference,
            gradient=by_reference(
                log_softmax_backward_reference if log else softmax_backward_reference
            ),
            inputs=_backward_inputs(log),
            work=_work(3),
            batch=Batch(("dy", "y")),
            cases=_CASES,
            thorough=_THOROUGH,
            shapes=_SHAPES,
            spaces=(BACKWARD,),
            tolerance=_TOLERANCE,
        ),
    )


OPERATORS = _pair("softmax", log=False) + _pair("log_softmax", log=True)
