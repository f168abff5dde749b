"""Normalisation of rows, forward and backward: the kernels that RMS and layer norm share.

    s = x + residual              (rounded to its dtype, as a separate addition would)
    normal = (s - mean(s)) / sqrt(mean((s - mean(s))²) + eps)
    y = normal · (weight + offset) + bias

RMS norm leaves out the mean (`CENTRED`); what is not given is left out. A program holds `ROWS` rows
at once where they fit its registers (`WHOLE`), so that short rows (the heads of q/k norm) fill the
lanes; longer rows are read twice.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import choice, describe
from wavecast.kernels.describe import Axes, Demand, Device, Problem, Settings, coefficient
from wavecast.kernels.strides import rows_of
from wavecast.launch import gpu

WHOLE_ROW = 16384
"""Columns a program holds at once; longer rows are read twice."""
_ROWS_ELEMENTS = 8192
"""Elements of several rows that a program holds together."""
_PROGRAMS_PER_UNIT = 2
"""Programs of the backward kernel per compute unit: each writes a float32 row of gradients."""


@triton.jit
def load_rows(x_ptr, residual_ptr, x_row, residual_row, offs_n, mask):
    """Rows of x, or of x + residual rounded to their dtype, as float32."""
    x = tl.load(x_ptr + x_row + offs_n, mask=mask, other=0.0)
    if residual_ptr is not None:
        residual = tl.load(residual_ptr + residual_row + offs_n, mask=mask, other=0.0)
        x = (x.to(tl.float32) + residual.to(tl.float32)).to(x.dtype)
    return x.to(tl.float32)


@triton.jit
def load_row(ptr, offs_n, mask, offset):
    """A row of parameters, plus an offset, as float32."""
    return tl.load(ptr + offs_n, mask=mask, other=0.0).to(tl.float32) + offset


@triton.jit
def _add(a, b, c, d):
    return a + c, b + d


@triton.jit
def two_sums(a, b):
    """Sums of the rows of two tensors in one exchange between the waves."""
    return tl.reduce((a, b), 1, _add)


@triton.jit
def norm_rows_kernel(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, y_ptr, sum_ptr,
    rows, columns, stride, residual_stride, eps, offset,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, CENTRED: tl.constexpr, WHOLE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    if WIDE:
        row = row.to(tl.int64)
    row_mask = (row < rows)[:, None]
    x_row = row[:, None] * stride
    residual_row = row[:, None] * residual_stride
    out_row = row[:, None] * columns
    dtype = y_ptr.dtype.element_ty
    if WHOLE:
        offs_n = tl.arange(0, BLOCK)
        col_mask = offs_n < columns
        mask = row_mask & col_mask[None, :]
        offs = offs_n[None, :]
        x = load_rows(x_ptr, residual_ptr, x_row, residual_row, offs, mask)
        if sum_ptr is not None:
            tl.store(sum_ptr + out_row + offs, x.to(dtype), mask=mask)
        if CENTRED:
            mean = tl.sum(x, axis=1) / columns
            x = tl.where(col_mask[None, :], x - mean[:, None], 0.0)
        y = x * tl.rsqrt(tl.sum(x * x, axis=1) / columns + eps)[:, None]
        if weight_ptr is not None:
            y *= load_row(weight_ptr, offs_n, col_mask, offset)[None, :]
        if bias_ptr is not None:
            y += load_row(bias_ptr, offs_n, col_mask, 0.0)[None, :]
        tl.store(y_ptr + out_row + offs, y.to(dtype), mask=mask)
    else:
        mean = tl.zeros((ROWS,), tl.float32)
        square_sum = tl.zeros((ROWS,), tl.float32)
        for start in range(0, columns, BLOCK):
            offs_n = start + tl.arange(0, BLOCK)
            mask = row_mask & (offs_n < columns)[None, :]
            offs = offs_n[None, :]
            x = load_rows(x_ptr, residual_ptr, x_row, residual_row, offs, mask)
            if sum_ptr is not None:
                tl.store(sum_ptr + out_row + offs, x.to(dtype), mask=mask)
            if CENTRED:  # mean and squares of the block join those so far (Chan et al., 1983)
                n_part = tl.minimum(columns - start, BLOCK)
                mean_part = tl.sum(x, axis=1) / n_part
                x = tl.where((offs_n < columns)[None, :], x - mean_part[:, None], 0.0)
                delta = mean_part - mean
                mean += delta * (n_part / (start + n_part))
                square_sum += delta * delta * (start * (n_part / (start + n_part)))
            square_sum += tl.sum(x * x, axis=1)
        scale = tl.rsqrt(square_sum / columns + eps)[:, None]
        for start in range(0, columns, BLOCK):
            offs_n = start + tl.arange(0, BLOCK)
            col_mask = offs_n < columns
            mask = row_mask & col_mask[None, :]
            offs = offs_n[None, :]
            x = load_rows(x_ptr, residual_ptr, x_row, residual_row, offs, mask)
            y = (x - mean[:, None]) * scale
            if weight_ptr is not None:
                y *= load_row(weight_ptr, offs_n, col_mask, offset)[None, :]
            if bias_ptr is not None:
                y += load_row(bias_ptr, offs_n, col_mask, 0.0)[None, :]
            tl.store(y_ptr + out_row + offs, y.to(dtype), mask=mask)


@triton.jit
def norm_rows_backward_kernel(
    dy_ptr, dsum_ptr, x_ptr, weight_ptr, dx_ptr, dweight_ptr, dbias_ptr,
    rows, columns, eps, offset,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, CENTRED: tl.constexpr, WHOLE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Each program takes every n-th block of rows; its part of the parameters' gradients goes to
    its own row of `dweight_ptr` and `dbias_ptr` (float32), so that the sum has a fixed order."""
    pid = tl.program_id(0)
    num_programs = tl.num_programs(0)
    dtype = dx_ptr.dtype.element_ty
    offs_m = tl.arange(0, ROWS)
    if WHOLE:
        offs_n = tl.arange(0, BLOCK)
        col_mask = offs_n < columns
        weight = 1.0
        if weight_ptr is not None:
            weight = load_row(weight_ptr, offs_n, col_mask, offset)[None, :]
        grad_sum = tl.zeros((ROWS,), tl.float32)
        dweight = tl.zeros((ROWS, BLOCK), tl.float32)
        dbias = tl.zeros((ROWS, BLOCK), tl.float32)
        num_blocks = tl.cdiv(rows, ROWS)
        for block in range(pid, num_blocks, num_programs):
            row = block * ROWS + offs_m
            if WIDE:
                row = row.to(tl.int64)
            mask = (row < rows)[:, None] & col_mask[None, :]
            offs = row[:, None] * columns + offs_n[None, :]
            x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + offs, mask=mask, other=0.0).to(tl.float32)
            grad = dy * weight
            if CENTRED:
                row_sum, grad_sum = two_sums(x, grad)
                x = tl.where(mask, x - (row_sum / columns)[:, None], 0.0)
            square_sum, product_sum = two_sums(x * x, grad * x)
            scale = tl.rsqrt(square_sum / columns + eps)
            projection = product_sum * scale * scale / columns
            if CENTRED:
                grad -= (grad_sum / columns)[:, None]
            dx = (grad - x * projection[:, None]) * scale[:, None]
            if dsum_ptr is not None:
                dx += tl.load(dsum_ptr + offs, mask=mask, other=0.0).to(tl.float32)
            tl.store(dx_ptr + offs, dx.to(dtype), mask=mask)
            if dweight_ptr is not None:
                dweight += dy * x * scale[:, None]
            if dbias_ptr is not None:
                dbias += dy
        if dweight_ptr is not None:
            tl.store(dweight_ptr + pid * columns + offs_n, tl.sum(dweight, axis=0), mask=col_mask)
        if dbias_ptr is not None:
            tl.store(dbias_ptr + pid * columns + offs_n, tl.sum(dbias, axis=0), mask=col_mask)
    else:
        for block in range(pid, rows, num_programs):
            row = tl.cast(block, tl.int64) if WIDE else block
            zero = tl.full((), 0.0, tl.float32)
            mean, square_sum, grad_sum, product_sum = zero, zero, zero, zero
            for start in range(0, columns, BLOCK):
                offs_n = start + tl.arange(0, BLOCK)
                col_mask = offs_n < columns
                x = load_row(x_ptr + row * columns, offs_n, col_mask, 0.0)
                grad = load_row(dy_ptr + row * columns, offs_n, col_mask, 0.0)
                if weight_ptr is not None:
                    grad *= load_row(weight_ptr, offs_n, col_mask, offset)
                if CENTRED:  # as in the forward kernel; the products join in the same way
                    n_part = tl.minimum(columns - start, BLOCK)
                    mean_part = tl.sum(x) / n_part
                    x = tl.where(col_mask, x - mean_part, 0.0)
                    grad_part = tl.sum(grad)
                    delta = mean_part - mean
                    weight_new = n_part / (start + n_part)
                    mean += delta * weight_new
                    square_sum += delta * delta * (start * weight_new)
                    product_sum += delta * (grad_part * (1 - weight_new) - grad_sum * weight_new)
                    grad_sum = grad_sum + grad_part
                square_sum = square_sum + tl.sum(x * x)
                product_sum = product_sum + tl.sum(grad * x)
            scale = tl.rsqrt(square_sum / columns + eps)
            projection = product_sum * scale * scale / columns
            for start in range(0, columns, BLOCK):
                offs_n = start + tl.arange(0, BLOCK)
                col_mask = offs_n < columns
                x = load_row(x_ptr + row * columns, offs_n, col_mask, 0.0) - mean
                dy = load_row(dy_ptr + row * columns, offs_n, col_mask, 0.0)
                grad = dy
                if weight_ptr is not None:
                    grad = dy * load_row(weight_ptr, offs_n, col_mask, offset)
                dx = (grad - grad_sum / columns - x * projection) * scale
                if dsum_ptr is not None:
                    dx += load_row(dsum_ptr + row * columns, offs_n, col_mask, 0.0)
                tl.store(dx_ptr + row * columns + offs_n, dx.to(dtype), mask=col_mask)
                not_first = col_mask & (block != pid)
                if dweight_ptr is not None:
                    ptrs = dweight_ptr + pid * columns + offs_n
                    previous = tl.load(ptrs, mask=not_first, other=0.0)
                    tl.store(ptrs, previous + dy * x * scale, mask=col_mask)
                if dbias_ptr is not None:
                    ptrs = dbias_ptr + pid * columns + offs_n
                    previous = tl.load(ptrs, mask=not_first, other=0.0)
                    tl.store(ptrs, previous + dy, mask=col_mask)


def rows_axes(whole_row: int, blocks: tuple[int, ...]) -> Axes:
    """Whole rows of up to `whole_row` columns, several where they are short; else blocks of one."""
    several = f"min({_ROWS_ELEMENTS} // next_power_of_2(columns), next_power_of_2(rows))"
    return {
        "BLOCK": f"(next_power_of_2(columns),) if columns <= {whole_row} else {blocks}",
        "ROWS": f"up_to(max(1, {several}), 1, 2, 4, 8, 16, 32, 64)",
        "num_warps": (4, 2, 8, 1, 16),
    }


def preference(elements: int, settings: Settings, device: Device, *, few: bool = False) -> float:
    """Factor of a configuration's time for how many of a program's `elements` a lane holds.

    Two loads of 16 bytes leave registers for many waves and give each enough requests in flight;
    where there are few programs, more waves make each of them faster.
    """
    best = coefficient("ranking", f"norm_lane_elements_{'few' if few else 'many'}").of(device)
    penalty = coefficient("ranking", "norm_lane_elements_penalty").of(device)
    lane = elements / (settings["num_warps"] * device.wave_lanes)
    return 1.0 + penalty * abs(math.log2(lane / best))


def rows_kernel(
    function: Any, *, reads: str, writes: str, instructions: float, live_registers: float,
    whole_row: int = WHOLE_ROW, blocks: tuple[int, ...] = (4096, 8192), **fields: Any,
) -> describe.KernelSpec:  # fmt: skip
    """A kernel over `ROWS` rows per program that reads and writes so many tensors of `rows` x
    `columns` elements of `bytes` bytes: once where they fit `whole_row`, else twice."""
    passes = f"(1 + (columns > {whole_row}))"

    def slowdown(kernel: Any, problem: Problem, settings: Settings, device: Device) -> float:
        few = kernel.workgroups <= 2 * device.compute_units
        return preference(kernel.elements, settings, device, few=few)

    return describe.KernelSpec.streaming(
        function,
        grid="cdiv(rows, ROWS)",
        axes=fields.pop("axes", rows_axes(whole_row, blocks)),
        read=f"rows * columns * bytes * {reads} * {passes}",
        written=f"rows * columns * bytes * {writes}",
        elements="ROWS * BLOCK",
        instructions=f"{instructions} * {passes} * cdiv(columns, BLOCK)",
        live_registers=live_registers,
        slowed=slowdown,
        rounded=("rows",),
        **fields,
    )


def _programs(rows: int, columns: int, device: Device) -> int:
    """Programs of the backward kernel: each writes a row of float32 gradients, so few, but as many
    as keep the units busy."""
    most = triton.cdiv(rows * columns, _ROWS_ELEMENTS)
    return min(rows, most, _PROGRAMS_PER_UNIT * device.compute_units)


NORM_DEMAND: dict[str, Any] = {
    "reads": "(1 + residual)",
    "writes": "(1 + residual)",
    "instructions": 6.0,
    "live_registers": 2.0,
    "strides": {"x": "stride", "residual": "residual_stride"},
}
"""What a norm reads (x and the residual, if any) and writes (the result and their sum)."""
FORWARD = rows_kernel(norm_rows_kernel, contiguous=("weight", "bias"), **NORM_DEMAND)


def _backward_grid(problem: Problem, settings: Settings) -> tuple[int]:
    return (_programs(problem["rows"], problem["columns"], gpu.launching()),)


def _backward_demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    rows, columns = problem["rows"], problem["columns"]
    passes = 1 if columns <= WHOLE_ROW else 2
    size = rows * columns * problem["bytes"]
    programs = _programs(rows, columns, device)
    iterations = triton.cdiv(rows, settings["ROWS"] * programs)
    elements = settings["ROWS"] * settings["BLOCK"]
    demand = describe.StreamingKernel(
        workgroups=programs,
        read=(2 + problem["residual"]) * size * passes,
        written=size,
        elements=elements,
        instructions=14.0 * passes * triton.cdiv(columns, settings["BLOCK"]) * iterations,
        live_registers=4.0,
    )
    waves = coefficient("ranking", "norm_backward_waves").of(device)
    idle = max(1.0, waves / settings["num_warps"])
    return demand.slow_down(preference(elements, settings, device) * idle)


BACKWARD = describe.KernelSpec(
    function=norm_rows_backward_kernel,
    grid=_backward_grid,
    axes=rows_axes(WHOLE_ROW, (4096, 8192)),
    demand=_backward_demand,
    contiguous=("dy", "dsum", "x", "weight"),
    rounded=("rows",),
)


def forward(
    x: Tensor, residual: Tensor | None, weight: Tensor | None, bias: Tensor | None, eps: float,
    offset: float = 0.0, *, centred: bool,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """(y, x + residual): the latter only with a residual. Arguments are checked before."""
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    total = None if residual is None else torch.empty_like(y)
    if not x.numel():
        return y, total
    problem = _problem(x, residual, (weight is not None) + (bias is not None), centred)
    operands = {"x": rows_of(x), "residual": None if residual is None else rows_of(residual)}
    operands |= {"weight": weight, "bias": bias, "y": y, "sum": total}
    whole = x.shape[-1] <= WHOLE_ROW
    choice.run(FORWARD, problem, **operands, eps=eps, offset=offset, WHOLE=whole)
    return y, total


def backward(
    dy: Tensor, dsum: Tensor | None, x: Tensor, weight: Tensor | None, eps: float,
    offset: float = 0.0, *, centred: bool, biased: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(dx, dweight, dbias), the latter two in float32, of no elements where there is no weight or
    bias; `dsum` is what else flows into `x`. Arguments are checked before."""
    columns = x.shape[-1]
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    nothing = torch.empty(0, dtype=torch.float32, device=x.device)
    needs_grad = (weight is not None, biased)
    if not x.numel():
        none = [nothing.new_zeros(columns if is_needed else 0) for is_needed in needs_grad]
        return dx, none[0], none[1]
    programs = _programs(x.numel() // columns, columns, gpu.launching())
    partial = torch.empty((2, programs, columns), dtype=torch.float32, device=x.device)
    problem = _problem(x, dsum, (weight is not None) + biased, centred)
    operands = {"dy": dy, "dsum": dsum, "x": x, "weight": weight, "dx": dx}
    operands |= {
        "dweight": partial[0] if needs_grad[0] else None,
        "dbias": partial[1] if biased else None,
    }
    whole = columns <= WHOLE_ROW
    choice.run(BACKWARD, problem, **operands, eps=eps, offset=offset, WHOLE=whole)
    sums = [
        part.sum(0) if is_needed else nothing.clone()
        for part, is_needed in zip(partial, needs_grad, strict=True)
    ]
    return dx, sums[0], sums[1]


def _problem(x: Tensor, residual: Tensor | None, parameters: int, centred: bool) -> dict[str, Any]:
    return {
        "rows": x.numel() // x.shape[-1],
        "columns": x.shape[-1],
        "bytes": x.element_size(),
        "residual": residual is not None,
        "parameters": parameters,
        "centred": centred,
    }
