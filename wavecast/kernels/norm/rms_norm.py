"""RMS norm: y = x / sqrt(mean(x²) + eps) · weight, over the last dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Gradient, Operator, Tolerance
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.bounds import Work

_WHOLE_ROW = 16384
"""Columns a program holds at once; longer rows are walked twice."""
_PROGRAMS_PER_UNIT = 4
"""Programs of the backward kernel per compute unit: each adds up one row of weight gradients."""


@triton.jit
def rms_norm_kernel(
    x_ptr, weight_ptr, y_ptr, rows, columns, stride, eps,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, WHOLE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0) * ROWS
    row = first + tl.arange(0, ROWS)
    if WIDE:
        row = row.to(tl.int64)
    place = tl.arange(0, BLOCK)
    valid = (row < rows)[:, None]
    from_row = x_ptr + row[:, None] * stride
    to_row = y_ptr + row[:, None] * columns
    if WHOLE:
        inside = valid & (place < columns)[None, :]
        x = tl.load(from_row + place[None, :], mask=inside, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(x * x, axis=1) / columns + eps)
        weight = tl.load(weight_ptr + place, mask=place < columns, other=0.0).to(tl.float32)
        y = x * scale[:, None] * weight[None, :]
        tl.store(to_row + place[None, :], y.to(y_ptr.dtype.element_ty), mask=inside)
    else:
        total = tl.zeros((ROWS, BLOCK), tl.float32)
        for start in range(0, columns, BLOCK):
            inside = valid & (start + place < columns)[None, :]
            x = tl.load(from_row + start + place[None, :], mask=inside, other=0.0).to(tl.float32)
            total += x * x
        scale = tl.rsqrt(tl.sum(total, axis=1) / columns + eps)
        for start in range(0, columns, BLOCK):
            inside = valid & (start + place < columns)[None, :]
            x = tl.load(from_row + start + place[None, :], mask=inside, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + start + place, mask=start + place < columns, other=0.0)
            y = x * scale[:, None] * weight.to(tl.float32)[None, :]
            tl.store(to_row + start + place[None, :], y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def rms_norm_backward_kernel(
    dy_ptr, x_ptr, weight_ptr, dx_ptr, dweight_ptr, rows, columns, eps,
    BLOCK: tl.constexpr, WHOLE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Each program takes every n-th row; its share of the weight's gradient goes to a row of
    `dweight_ptr` (float32), so that the sum has a fixed order."""
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    place = tl.arange(0, BLOCK)
    mine = dweight_ptr + program * columns
    if WHOLE:
        inside = place < columns
        weight = tl.load(weight_ptr + place, mask=inside, other=0.0).to(tl.float32)
        share = tl.zeros((BLOCK,), tl.float32)
        for number in range(program, rows, programs):
            row = tl.cast(number, tl.int64) if WIDE else number
            x = tl.load(x_ptr + row * columns + place, mask=inside, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + row * columns + place, mask=inside, other=0.0).to(tl.float32)
            scale = tl.rsqrt(tl.sum(x * x) / columns + eps)
            normal = x * scale
            slope = dy * weight
            along = tl.sum(slope * normal) / columns
            dx = (slope - normal * along) * scale
            tl.store(dx_ptr + row * columns + place, dx.to(dx_ptr.dtype.element_ty), mask=inside)
            share += dy * normal
        tl.store(mine + place, share, mask=inside)
    else:
        for number in range(program, rows, programs):
            row = tl.cast(number, tl.int64) if WIDE else number
            squares = tl.zeros((BLOCK,), tl.float32)
            products = tl.zeros((BLOCK,), tl.float32)
            for start in range(0, columns, BLOCK):
                at = start + place
                inside = at < columns
                x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
                dy = tl.load(dy_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
                weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
                squares += x * x
                products += dy * weight * x
            scale = tl.rsqrt(tl.sum(squares) / columns + eps)
            along = tl.sum(products) * scale / columns
            for start in range(0, columns, BLOCK):
                at = start + place
                inside = at < columns
                x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
                dy = tl.load(dy_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
                weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
                normal = x * scale
                dx = (dy * weight - normal * along) * scale
                to = dx_ptr + row * columns + at
                tl.store(to, dx.to(dx_ptr.dtype.element_ty), mask=inside)
                before = tl.load(mine + at, mask=inside & (number != program), other=0.0)
                tl.store(mine + at, before + dy * normal, mask=inside)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Root mean square normalisation of the last dimension.

    `x` is [..., columns] of float32, float16 or bfloat16, `weight` [columns] of any of these;
    computed in float32, returned in the dtype of `x`. Raises ArgumentError.
    """
    _check("rms_norm", x, weight)
    columns = x.shape[-1]
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return y
    flat = x.reshape(-1, columns)
    if flat.stride(1) != 1:
        flat = flat.contiguous()
    rows = flat.shape[0]
    problem = {"rows": rows, "columns": columns, "bytes": x.element_size()}

    def grid(settings: Settings) -> tuple[int, ...]:
        return (triton.cdiv(rows, settings["ROWS"]),)

    launch(
        rms_norm_kernel,
        grid,
        (flat, weight.contiguous(), y, rows, columns, flat.stride(0), eps),
        FORWARD,
        problem,
        WHOLE=columns <= _WHOLE_ROW,
        WIDE=checks.wide(flat, y),
    )
    return y


def rms_norm_reference(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """`torch.nn.functional.rms_norm`, in float32 at least."""
    kind = torch.promote_types(x.dtype, torch.float32)
    shape = (x.shape[-1],)
    found = torch.nn.functional.rms_norm(x.to(kind), shape, weight.to(kind), eps)
    return found.to(x.dtype).contiguous()


def rms_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `rms_norm` with respect to `x` and `weight`, in their dtypes.

    `dy` and `x` are [..., columns]. Sums are in float32 in a fixed order. Raises ArgumentError.
    """
    _check("rms_norm_backward", x, weight)
    checks.shape_is("rms_norm_backward", "dy", dy, x.shape)
    columns = x.shape[-1]
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return dx, torch.zeros_like(weight)
    rows = x.numel() // columns
    programs = min(rows, _PROGRAMS_PER_UNIT * gpu.launching().compute_units)
    shares = torch.zeros((programs, columns), dtype=torch.float32, device=x.device)
    launch(
        rms_norm_backward_kernel,
        lambda _: (programs,),
        (dy.contiguous(), x.contiguous(), weight.contiguous(), dx, shares, rows, columns, eps),
        BACKWARD,
        {"rows": rows, "columns": columns, "bytes": x.element_size()},
        WHOLE=columns <= _WHOLE_ROW,
        WIDE=checks.wide(x),
    )
    return dx, shares.sum(0).to(weight.dtype)


def rms_norm_backward_reference(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """By the formula, in float32 at least."""
    kind = torch.promote_types(x.dtype, torch.float32)
    wide, slope = x.to(kind), dy.to(kind) * weight.to(kind)
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    normal = wide * scale
    dx = (slope - normal * (slope * normal).mean(-1, keepdim=True)) * scale
    dweight = (dy.to(kind) * normal).reshape(-1, x.shape[-1]).sum(0)
    return dx.to(x.dtype).contiguous(), dweight.to(weight.dtype)


def _check(operator: str, x: torch.Tensor, weight: torch.Tensor) -> None:
    checks.require(x.dim() > 0, operator, "x is a scalar")
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    checks.dtype_in(operator, "weight", weight, checks.FLOATS)
    checks.shape_is(operator, "weight", weight, x.shape[-1:])
    checks.same_device(operator, x=x, weight=weight)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, weight, eps = inputs
    ctx.save_for_backward(x, weight)
    ctx.eps = eps


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    x, weight = ctx.saved_tensors
    dx, dweight = torch.ops.wavecast.rms_norm_backward(dy, x, weight, ctx.eps)
    return dx, dweight, None


def _forward_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    columns = min(triton.next_power_of_2(problem["columns"]), _WHOLE_ROW)
    whole = problem["columns"] <= _WHOLE_ROW
    return {
        "BLOCK": (columns,) if whole else (2048, 4096, 8192),
        "ROWS": (1, 2, 4, 8) if columns <= 2048 else (1,),
        "num_warps": (1, 2, 4, 8, 16),
        "num_stages": (1,),
    }


def _forward_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = problem["rows"], problem["columns"]
    passes = 1 if columns <= _WHOLE_ROW else 2
    size = rows * columns * problem["bytes"]
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(rows, settings["ROWS"]),
        read=size * passes,
        written=size,
        elements=settings["ROWS"] * settings["BLOCK"],
        operations=6.0 * passes * triton.cdiv(columns, settings["BLOCK"]),
        held=2.0,
    )


def _backward_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    columns = min(triton.next_power_of_2(problem["columns"]), _WHOLE_ROW)
    whole = problem["columns"] <= _WHOLE_ROW
    return {
        "BLOCK": (columns,) if whole else (2048, 4096, 8192),
        "num_warps": (1, 2, 4, 8, 16),
        "num_stages": (1,),
    }


def _backward_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = problem["rows"], problem["columns"]
    passes = 1 if columns <= _WHOLE_ROW else 2
    size = rows * columns * problem["bytes"]
    programs = min(rows, _PROGRAMS_PER_UNIT * device.compute_units)
    return estimates.streaming(
        device,
        settings,
        workgroups=programs,
        read=2 * size * passes,
        written=size,
        elements=settings["BLOCK"],
        operations=14.0 * passes * triton.cdiv(columns, settings["BLOCK"]) * rows / programs,
        held=4.0,
    )


FORWARD = Space(
    kernel="rms_norm_kernel",
    axes=_forward_axes,
    seconds=_forward_seconds,
    classes=("rows",),
)
BACKWARD = Space(
    kernel="rms_norm_backward_kernel",
    axes=_backward_axes,
    seconds=_backward_seconds,
    classes=("rows",),
)


def _inputs(make: Make, rows: int, columns: int, dtype: str) -> dict[str, Any]:
    weight = make.normal((columns,), dtype)
    return {"x": make.normal((rows, columns), dtype), "weight": weight, "eps": 1e-6}


def _backward_inputs(make: Make, rows: int, columns: int, dtype: str) -> dict[str, Any]:
    return {"dy": make.normal((rows, columns), dtype), **_inputs(make, rows, columns, dtype)}


def _work(tensors: int, operations: float) -> Any:
    def work(rows: int, columns: int, dtype: str) -> Work:
        size = rows * columns * getattr(torch, dtype).itemsize
        flops = {"vector_fp32": operations * rows * columns}
        return Work(flops, (tensors - 1) * size, size, "formula", "formula")

    return work


_CASES = (
    {"rows": 5, "columns": 300, "dtype": "bfloat16"},
    {"rows": 3, "columns": 17, "dtype": "float32"},
    {"rows": 33, "columns": 64, "dtype": "float16"},
    {"rows": 2, "columns": 20000, "dtype": "bfloat16"},
)
_SHAPES = (
    {"rows": 8192, "columns": 4096, "dtype": "bfloat16"},
    {"rows": 8192, "columns": 8192, "dtype": "bfloat16"},
    {"rows": 64, "columns": 7168, "dtype": "bfloat16"},
)

OPERATORS = (
    Operator(
        name="rms_norm",
        summary="root mean square normalisation of the last dimension",
        call=rms_norm,
        reference=rms_norm_reference,
        inputs=_inputs,
        work=_work(2, 4.0),
        cases=_CASES,
        shapes=_SHAPES,
        spaces=(FORWARD,),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="rms_norm_backward",
        summary="gradients of rms_norm",
        call=rms_norm_backward,
        reference=rms_norm_backward_reference,
        inputs=_backward_inputs,
        work=_work(3, 10.0),
        cases=_CASES,
        shapes=_SHAPES[:2],
        spaces=(BACKWARD,),
        tolerance=Tolerance(ulps=1.0, accumulated=1e-5),
    ),
)
