"""Normalisation of rows, forward and backward: the kernels that RMS and layer norm share.

    s = x + residual              (rounded to its dtype, as a separate addition would)
    normal = (s - mean(s)) / sqrt(mean((s - mean(s))²) + eps)
    y = normal · (weight + offset) + bias

RMS norm leaves out the mean (`CENTRED`); what is not given is left out. A program holds `ROWS` rows
at once where they fit its registers (`WHOLE`), so that short rows (the heads of q/k norm) fill the
lanes; longer rows are walked twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import adjacent, contiguous
from wavecast.model.chip import Chip

WHOLE_ROW = 16384
"""Columns a program holds at once; longer rows are walked twice."""
_ROWS_ELEMENTS = 8192
"""Elements of several rows that a program holds together."""
_PROGRAMS_PER_UNIT = 2
"""Programs of the backward kernel per compute unit: each writes a float32 row of gradients."""
_MANY, _FEW = 16, 8
"""Elements of a lane with many programs, and with fewer than two per compute unit."""


@triton.jit
def load_rows(x_ptr, residual_ptr, from_x, from_residual, place, inside):
    """Rows of x, or of x + residual rounded to their dtype, as float32."""
    x = tl.load(x_ptr + from_x + place, mask=inside, other=0.0)
    if residual_ptr is not None:
        added = tl.load(residual_ptr + from_residual + place, mask=inside, other=0.0)
        x = (x.to(tl.float32) + added.to(tl.float32)).to(x.dtype)
    return x.to(tl.float32)


@triton.jit
def load_row(ptr, place, inside, offset):
    """A row of parameters, plus an offset, as float32."""
    return tl.load(ptr + place, mask=inside, other=0.0).to(tl.float32) + offset


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
    valid = (row < rows)[:, None]
    from_x = row[:, None] * stride
    from_residual = row[:, None] * residual_stride
    to = row[:, None] * columns
    kind = y_ptr.dtype.element_ty
    if WHOLE:
        place = tl.arange(0, BLOCK)
        real = place < columns
        inside = valid & real[None, :]
        at = place[None, :]
        x = load_rows(x_ptr, residual_ptr, from_x, from_residual, at, inside)
        if sum_ptr is not None:
            tl.store(sum_ptr + to + at, x.to(kind), mask=inside)
        if CENTRED:
            mean = tl.sum(x, axis=1) / columns
            x = tl.where(real[None, :], x - mean[:, None], 0.0)
        y = x * tl.rsqrt(tl.sum(x * x, axis=1) / columns + eps)[:, None]
        if weight_ptr is not None:
            y *= load_row(weight_ptr, place, real, offset)[None, :]
        if bias_ptr is not None:
            y += load_row(bias_ptr, place, real, 0.0)[None, :]
        tl.store(y_ptr + to + at, y.to(kind), mask=inside)
    else:
        mean = tl.zeros((ROWS,), tl.float32)
        squares = tl.zeros((ROWS,), tl.float32)
        for start in range(0, columns, BLOCK):
            place = start + tl.arange(0, BLOCK)
            inside = valid & (place < columns)[None, :]
            at = place[None, :]
            x = load_rows(x_ptr, residual_ptr, from_x, from_residual, at, inside)
            if sum_ptr is not None:
                tl.store(sum_ptr + to + at, x.to(kind), mask=inside)
            if CENTRED:  # mean and squares of the block join those so far (Chan et al., 1983)
                count = tl.minimum(columns - start, BLOCK)
                here = tl.sum(x, axis=1) / count
                x = tl.where((place < columns)[None, :], x - here[:, None], 0.0)
                apart = here - mean
                mean += apart * (count / (start + count))
                squares += apart * apart * (start * (count / (start + count)))
            squares += tl.sum(x * x, axis=1)
        scale = tl.rsqrt(squares / columns + eps)[:, None]
        for start in range(0, columns, BLOCK):
            place = start + tl.arange(0, BLOCK)
            real = place < columns
            inside = valid & real[None, :]
            at = place[None, :]
            x = load_rows(x_ptr, residual_ptr, from_x, from_residual, at, inside)
            y = (x - mean[:, None]) * scale
            if weight_ptr is not None:
                y *= load_row(weight_ptr, place, real, offset)[None, :]
            if bias_ptr is not None:
                y += load_row(bias_ptr, place, real, 0.0)[None, :]
            tl.store(y_ptr + to + at, y.to(kind), mask=inside)


@triton.jit
def norm_rows_backward_kernel(
    dy_ptr, dsum_ptr, x_ptr, weight_ptr, dx_ptr, dweight_ptr, dbias_ptr,
    rows, columns, eps, offset,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, CENTRED: tl.constexpr, WHOLE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Each program takes every n-th block of rows; its share of the parameters' gradients goes to
    a row of its own of `dweight_ptr` and `dbias_ptr` (float32), so that the sum has a fixed order.
    """
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    kind = dx_ptr.dtype.element_ty
    within = tl.arange(0, ROWS)
    if WHOLE:
        place = tl.arange(0, BLOCK)
        real = place < columns
        weight = 1.0
        if weight_ptr is not None:
            weight = load_row(weight_ptr, place, real, offset)[None, :]
        slopes = tl.zeros((ROWS,), tl.float32)
        dweight = tl.zeros((ROWS, BLOCK), tl.float32)
        dbias = tl.zeros((ROWS, BLOCK), tl.float32)
        blocks = tl.cdiv(rows, ROWS)
        for number in range(program, blocks, programs):
            row = number * ROWS + within
            if WIDE:
                row = row.to(tl.int64)
            inside = (row < rows)[:, None] & real[None, :]
            at = row[:, None] * columns + place[None, :]
            x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
            slope = dy * weight
            if CENTRED:
                total, slopes = two_sums(x, slope)
                x = tl.where(inside, x - (total / columns)[:, None], 0.0)
            squares, products = two_sums(x * x, slope * x)
            scale = tl.rsqrt(squares / columns + eps)
            along = products * scale * scale / columns
            if CENTRED:
                slope -= (slopes / columns)[:, None]
            dx = (slope - x * along[:, None]) * scale[:, None]
            if dsum_ptr is not None:
                dx += tl.load(dsum_ptr + at, mask=inside, other=0.0).to(tl.float32)
            tl.store(dx_ptr + at, dx.to(kind), mask=inside)
            if dweight_ptr is not None:
                dweight += dy * x * scale[:, None]
            if dbias_ptr is not None:
                dbias += dy
        if dweight_ptr is not None:
            tl.store(dweight_ptr + program * columns + place, tl.sum(dweight, axis=0), mask=real)
        if dbias_ptr is not None:
            tl.store(dbias_ptr + program * columns + place, tl.sum(dbias, axis=0), mask=real)
    else:
        for number in range(program, rows, programs):
            row = tl.cast(number, tl.int64) if WIDE else number
            nought = tl.full((), 0.0, tl.float32)
            mean, squares, slopes, products = nought, nought, nought, nought
            for start in range(0, columns, BLOCK):
                place = start + tl.arange(0, BLOCK)
                real = place < columns
                x = load_row(x_ptr + row * columns, place, real, 0.0)
                slope = load_row(dy_ptr + row * columns, place, real, 0.0)
                if weight_ptr is not None:
                    slope *= load_row(weight_ptr, place, real, offset)
                if CENTRED:  # as in the forward kernel; the products join in the same way
                    count = tl.minimum(columns - start, BLOCK)
                    here = tl.sum(x) / count
                    x = tl.where(real, x - here, 0.0)
                    there = tl.sum(slope)
                    apart = here - mean
                    part = count / (start + count)
                    mean += apart * part
                    squares += apart * apart * (start * part)
                    products += apart * (there * (1 - part) - slopes * part)
                    slopes = slopes + there
                squares = squares + tl.sum(x * x)
                products = products + tl.sum(slope * x)
            scale = tl.rsqrt(squares / columns + eps)
            along = products * scale * scale / columns
            for start in range(0, columns, BLOCK):
                place = start + tl.arange(0, BLOCK)
                real = place < columns
                x = load_row(x_ptr + row * columns, place, real, 0.0) - mean
                dy = load_row(dy_ptr + row * columns, place, real, 0.0)
                slope = dy
                if weight_ptr is not None:
                    slope = dy * load_row(weight_ptr, place, real, offset)
                dx = (slope - slopes / columns - x * along) * scale
                if dsum_ptr is not None:
                    dx += load_row(dsum_ptr + row * columns, place, real, 0.0)
                tl.store(dx_ptr + row * columns + place, dx.to(kind), mask=real)
                seen = real & (number != program)
                if dweight_ptr is not None:
                    mine = dweight_ptr + program * columns + place
                    before = tl.load(mine, mask=seen, other=0.0)
                    tl.store(mine, before + dy * x * scale, mask=real)
                if dbias_ptr is not None:
                    mine = dbias_ptr + program * columns + place
                    before = tl.load(mine, mask=seen, other=0.0)
                    tl.store(mine, before + dy, mask=real)


def flat(x: torch.Tensor) -> torch.Tensor:
    """[rows, columns] with neighbouring columns next to each other; a copy only where needed."""
    return adjacent(x.reshape(-1, x.shape[-1]))


def forward(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
    offset: float = 0.0,
    *,
    centred: bool,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(y, x + residual): the latter only with a residual. Arguments are checked before."""
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    total = None if residual is None else torch.empty_like(y)
    if not x.numel():
        return y, total
    from_x, added = flat(x), None if residual is None else flat(residual)
    rows, columns = from_x.shape
    launch(
        norm_rows_kernel,
        lambda settings: (triton.cdiv(rows, settings["ROWS"]),),
        (
            from_x,
            added,
            contiguous(weight),
            contiguous(bias),
            y,
            total,
            rows,
            columns,
            from_x.stride(0),
            0 if added is None else added.stride(0),
            eps,
            offset,
        ),
        FORWARD,
        {
            "rows": rows,
            "columns": columns,
            "bytes": x.element_size(),
            "residual": residual is not None,
            "parameters": (weight is not None) + (bias is not None),
            "centred": centred,
        },
        CENTRED=centred,
        WHOLE=columns <= WHOLE_ROW,
        WIDE=checks.wide(from_x, added, y),
    )
    return y, total


def backward(
    dy: torch.Tensor,
    dsum: torch.Tensor | None,
    x: torch.Tensor,
    weight: torch.Tensor | None,
    eps: float,
    offset: float = 0.0,
    *,
    centred: bool,
    biased: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(dx, dweight, dbias), the latter two in float32, of no elements where there is no weight or
    bias; `dsum` is what else flows into `x`. Arguments are checked before."""
    columns = x.shape[-1]
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    nothing = torch.empty(0, dtype=torch.float32, device=x.device)
    given = (weight is not None, biased)
    if not x.numel():
        none = [nothing.new_zeros(columns if there else 0) for there in given]
        return dx, none[0], none[1]
    rows = x.numel() // columns
    programs = _programs(rows, columns, gpu.launching())
    shares = torch.empty((2, programs, columns), dtype=torch.float32, device=x.device)
    launch(
        norm_rows_backward_kernel,
        lambda _: (programs,),
        (
            dy.contiguous(),
            contiguous(dsum),
            x.contiguous(),
            contiguous(weight),
            dx,
            None if weight is None else shares[0],
            shares[1] if biased else None,
            rows,
            columns,
            eps,
            offset,
        ),
        BACKWARD,
        {
            "rows": rows,
            "columns": columns,
            "bytes": x.element_size(),
            "residual": dsum is not None,
            "parameters": (weight is not None) + biased,
            "centred": centred,
        },
        CENTRED=centred,
        WHOLE=columns <= WHOLE_ROW,
        WIDE=checks.wide(x),
    )
    sums = [
        share.sum(0) if there else nothing.clone()
        for share, there in zip(shares, given, strict=True)
    ]
    return dx, sums[0], sums[1]


def _programs(rows: int, columns: int, device: Device) -> int:
    """Programs of the backward kernel: each writes a row of float32 gradients, so few, but as many
    as keep the units busy."""
    most = triton.cdiv(rows * columns, _ROWS_ELEMENTS)
    return min(rows, most, _PROGRAMS_PER_UNIT * device.compute_units)


def axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    """Whole rows, several where they are short; else blocks of a row."""
    block = triton.next_power_of_2(problem["columns"])
    whole = problem["columns"] <= WHOLE_ROW
    most = min(_ROWS_ELEMENTS // block, triton.next_power_of_2(problem["rows"]))
    return {
        "BLOCK": (block,) if whole else (4096, 8192),
        "ROWS": [n for n in (1, 2, 4, 8, 16, 32, 64) if n == 1 or n <= most],
        "num_warps": (4, 2, 8, 1, 16),
        "num_stages": (1,),
    }


def preference(elements: int, settings: Settings, device: Device, *, few: bool) -> float:
    """Factor of a configuration's time for how many of a program's `elements` a lane holds.

    Sixteen, two loads of 16 bytes, leave registers for many waves and give each enough on its way;
    where there are few programs, more waves make each of them faster.
    """
    lane = elements / (settings["num_warps"] * Chip.of(device).lanes)
    return 1.0 + 0.05 * abs(math.log2(lane / (_FEW if few else _MANY)))


def forward_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = problem["rows"], problem["columns"]
    passes = 1 if columns <= WHOLE_ROW else 2
    size = rows * columns * problem["bytes"] * (1 + problem["residual"])
    workgroups = triton.cdiv(rows, settings["ROWS"])
    elements = settings["ROWS"] * settings["BLOCK"]
    seconds = estimates.streaming(
        device,
        settings,
        workgroups=workgroups,
        read=size * passes,
        written=size,
        elements=elements,
        operations=6.0 * passes * triton.cdiv(columns, settings["BLOCK"]),
        held=2.0,
    )
    few = workgroups <= 2 * device.compute_units
    return seconds * preference(elements, settings, device, few=few)


def _backward_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = problem["rows"], problem["columns"]
    passes = 1 if columns <= WHOLE_ROW else 2
    size = rows * columns * problem["bytes"]
    programs = _programs(rows, columns, device)
    steps = triton.cdiv(rows, settings["ROWS"] * programs)
    elements = settings["ROWS"] * settings["BLOCK"]
    seconds = estimates.streaming(
        device,
        settings,
        workgroups=programs,
        read=(2 + problem["residual"]) * size * passes,
        written=size,
        elements=elements,
        operations=14.0 * passes * triton.cdiv(columns, settings["BLOCK"]) * steps,
        held=4.0,
    )
    idle = max(1.0, 4 / settings["num_warps"])  # waves are few, and each waits for its rows
    return seconds * preference(elements, settings, device, few=False) * idle


FORWARD = Space(kernel="norm_rows_kernel", axes=axes, seconds=forward_seconds, classes=("rows",))
BACKWARD = Space(
    kernel="norm_rows_backward_kernel",
    axes=axes,
    seconds=_backward_seconds,
    classes=("rows",),
)
