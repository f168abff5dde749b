"""Rows of a table by index, and the table's gradient summed in a fixed order."""

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
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.kernels.pointwise import elementwise
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.bounds import Work

INDICES = (torch.int64, torch.int32)


@triton.jit
def embedding_kernel(
    weight_ptr, indices_ptr, y_ptr, count, vocabulary, columns, stride,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(columns, BLOCK)
    first = tl.program_id(0) // across * ROWS
    start = tl.program_id(0) % across * BLOCK
    row = first + tl.arange(0, ROWS)
    index = tl.load(indices_ptr + row, mask=row < count, other=0)
    known = (index >= 0) & (index < vocabulary)
    along = tl.arange(0, BLOCK)[None, :]
    inside = (row < count)[:, None] & (along < columns - start)
    if WIDE:
        index = index.to(tl.int64)
        row = row.to(tl.int64)
    else:
        index = index.to(tl.int32)
    place = weight_ptr + start + index[:, None] * stride + along
    found = tl.load(place, mask=inside & known[:, None], other=0.0)
    tl.store(y_ptr + start + row[:, None] * columns + along, found, mask=inside)


@triton.jit
def embedding_backward_kernel(
    dy_ptr, sorted_ptr, order_ptr, dweight_ptr, count, vocabulary, columns, padding,
    BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One program per place in the sorted indices and block of columns. Those where a new index
    begins add up all its rows, in the order of their places."""
    across = tl.cdiv(columns, BLOCK)
    number = tl.program_id(0) // across
    start = tl.program_id(0) % across * BLOCK
    index = tl.load(sorted_ptr + number)
    before = tl.load(sorted_ptr + number - 1, mask=number > 0, other=-1)
    begins = (number == 0) | (index != before)
    if begins & (index >= 0) & (index < vocabulary) & (index != padding):
        along = tl.arange(0, BLOCK)
        inside = along < columns - start
        total = tl.zeros((BLOCK,), tl.float32)
        current = index
        while current == index:
            row = tl.load(order_ptr + number)
            place = dy_ptr + (row if WIDE else row.to(tl.int32)) * columns + start
            total += tl.load(place + along, mask=inside, other=0.0).to(tl.float32)
            number += 1
            current = tl.load(sorted_ptr + number, mask=number < count, other=-1)
        place = dweight_ptr + (index.to(tl.int64) if WIDE else index.to(tl.int32)) * columns + start
        tl.store(place + along, total.to(dweight_ptr.dtype.element_ty), mask=inside)


def embedding(weight: torch.Tensor, indices: torch.Tensor, padding_idx: int = -1) -> torch.Tensor:
    """Rows `indices` (int64 or int32, any shape) of `weight` [vocabulary, columns] (float32,
    float16, bfloat16): [*indices.shape, columns].

    An index out of range gives a row of zeros. The row `padding_idx`, unless it is negative, gets
    no gradient. Raises ArgumentError.
    """
    checks.dtype_in("embedding", "weight", weight, checks.FLOATS)
    checks.dtype_in("embedding", "indices", indices, INDICES)
    checks.shape_is("embedding", "weight", weight, (-1, -1))
    checks.same_device("embedding", weight=weight, indices=indices)
    vocabulary, columns = weight.shape
    _check_padding("embedding", padding_idx, vocabulary)
    y = torch.empty((*indices.shape, columns), dtype=weight.dtype, device=weight.device)
    if not y.numel():
        return y
    if not vocabulary:
        return y.zero_()
    table = elementwise.rows_of(weight)
    rows, size = indices.numel(), weight.element_size()

    def grid(settings: Settings) -> tuple[int, ...]:
        across = triton.cdiv(columns, settings["BLOCK"])
        return (triton.cdiv(rows, settings["ROWS"]) * across,)

    launch(
        embedding_kernel,
        grid,
        (table, indices.contiguous(), y, rows, vocabulary, columns, table.stride(0)),
        FORWARD,
        {"rows": rows, "columns": columns, "read": size, "written": size},
        WIDE=checks.wide(table, y),
    )
    return y


def embedding_reference(
    weight: torch.Tensor, indices: torch.Tensor, padding_idx: int = -1
) -> torch.Tensor:
    """`torch.nn.functional.embedding`, with zeros for indices out of range."""
    del padding_idx
    if not weight.shape[0]:
        return weight.new_zeros((*indices.shape, weight.shape[1]))
    known = (indices >= 0) & (indices < weight.shape[0])
    found = torch.nn.functional.embedding(torch.where(known, indices, 0), weight)
    return torch.where(known[..., None], found, 0.0).to(weight.dtype).contiguous()


def embedding_backward(
    dy: torch.Tensor, indices: torch.Tensor, vocabulary: int, padding_idx: int = -1
) -> torch.Tensor:
    """The gradient of `embedding` with respect to its table: [vocabulary, columns] in the dtype of
    `dy` [*indices.shape, columns].

    The rows of an index are added in float32 in the order of their places, so that results are the
    same every time. Raises ArgumentError.
    """
    name = "embedding_backward"
    checks.dtype_in(name, "dy", dy, checks.FLOATS)
    checks.dtype_in(name, "indices", indices, INDICES)
    checks.require(dy.dim() > 0, name, "dy is a scalar")
    checks.shape_is(name, "dy", dy, (*indices.shape, dy.shape[-1]))
    checks.same_device(name, dy=dy, indices=indices)
    checks.require(vocabulary >= 0, name, f"vocabulary is {vocabulary}")
    _check_padding(name, padding_idx, vocabulary)
    columns, count = dy.shape[-1], indices.numel()
    dweight = torch.zeros((vocabulary, columns), dtype=dy.dtype, device=dy.device)
    if not dweight.numel() or not count:
        return dweight
    ordered, order = torch.sort(indices.reshape(-1), stable=True)

    def grid(settings: Settings) -> tuple[int, ...]:
        return (count * triton.cdiv(columns, settings["BLOCK"]),)

    launch(
        embedding_backward_kernel,
        grid,
        (dy.contiguous(), ordered, order, dweight, count, vocabulary, columns, padding_idx),
        BACKWARD,
        {"rows": count, "columns": columns, "read": dy.element_size()},
        WIDE=checks.wide(dy, dweight),
    )
    return dweight


def embedding_backward_reference(
    dy: torch.Tensor, indices: torch.Tensor, vocabulary: int, padding_idx: int = -1
) -> torch.Tensor:
    """`torch.Tensor.index_add`, in float32 at least."""
    kind = torch.promote_types(dy.dtype, torch.float32)
    flat = indices.reshape(-1).long()
    rows = dy.reshape(flat.numel(), dy.shape[-1]).to(kind)
    taken = (flat >= 0) & (flat < vocabulary) & (flat != padding_idx)
    total = rows.new_zeros((vocabulary, dy.shape[-1]))
    if not vocabulary:
        return total.to(dy.dtype)
    rows = torch.where(taken[:, None], rows, 0.0)
    return total.index_add(0, torch.where(taken, flat, 0), rows).to(dy.dtype)


def _check_padding(operator: str, padding: int, vocabulary: int) -> None:
    message = f"padding_idx is {padding}, of {vocabulary} rows"
    checks.require(padding < max(vocabulary, 1), operator, message)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    weight, indices, ctx.padding = inputs
    ctx.save_for_backward(indices)
    ctx.vocabulary = weight.shape[0]


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    (indices,) = ctx.saved_tensors
    call = torch.ops.wavecast.embedding_backward
    return call(dy, indices, ctx.vocabulary, ctx.padding), None, None


def _backward_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    del device
    columns = max(64, min(triton.next_power_of_2(problem["columns"]), elementwise.WIDEST))
    blocks = tuple(b for b in (64, 256, 512, 1024, 2048) if b <= columns)
    return {"BLOCK": blocks, "num_warps": (1, 2, 4), "num_stages": (1,)}


def _backward_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = problem["rows"], problem["columns"]
    size = rows * columns * problem["read"]
    return estimates.streaming(
        device,
        settings,
        workgroups=rows * triton.cdiv(columns, settings["BLOCK"]),
        read=size,
        written=size,
        elements=settings["BLOCK"],
        operations=8.0,
        held=3.0,
    )


FORWARD = elementwise.row_space("embedding_kernel", operations=4.0, held=1.0)
BACKWARD = Space(
    kernel="embedding_backward_kernel",
    axes=_backward_axes,
    seconds=_backward_seconds,
    classes=("rows",),
)


def _inputs(
    make: Make, tokens: int, vocabulary: int, columns: int, dtype: str, padding: int = -1
) -> dict[str, Any]:
    indices = make.integers((tokens,), 0, vocabulary)
    weight = make.normal((vocabulary, columns), dtype)
    return {"weight": weight, "indices": indices, "padding_idx": padding}


def _backward_inputs(
    make: Make, tokens: int, vocabulary: int, columns: int, dtype: str, padding: int = -1
) -> dict[str, Any]:
    given = {"indices": make.integers((tokens,), 0, vocabulary), "vocabulary": vocabulary}
    return {"dy": make.normal((tokens, columns), dtype), **given, "padding_idx": padding}


def _work(tokens: int, vocabulary: int, columns: int, dtype: str, **_: Any) -> Work:
    del vocabulary
    size = tokens * columns * getattr(torch, dtype).itemsize
    return Work({}, size + 8 * tokens, size, "formula", "formula")


def _backward_work(tokens: int, vocabulary: int, columns: int, dtype: str, **_: Any) -> Work:
    size = columns * getattr(torch, dtype).itemsize
    read = tokens * size + 16 * tokens
    touched = min(tokens, vocabulary)
    flops = {"vector_fp32": float(tokens * columns)}
    return Work(flops, read, touched * size, "formula", "formula")


_CASES = (
    {"tokens": 13, "vocabulary": 7, "columns": 37, "dtype": "float32", "padding": 3},
    {"tokens": 70, "vocabulary": 50, "columns": 300, "dtype": "bfloat16"},
    {"tokens": 3, "vocabulary": 11, "columns": 2500, "dtype": "float16"},
)
_SHAPES = ({"tokens": 8192, "vocabulary": 128256, "columns": 4096, "dtype": "bfloat16"},)

OPERATORS = (
    Operator(
        name="embedding",
        summary="rows of a table by index",
        call=embedding,
        reference=embedding_reference,
        inputs=_inputs,
        work=_work,
        batch=Batch(("indices",)),
        cases=(
            {**_CASES[0], "padding": -1},
            *_CASES[1:],
        ),
        shapes=_SHAPES,
        spaces=(FORWARD,),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="embedding_backward",
        summary="gradient of a table of embeddings",
        call=embedding_backward,
        reference=embedding_backward_reference,
        gradient=by_reference(embedding_backward_reference),
        inputs=_backward_inputs,
        work=_backward_work,
        cases=_CASES,
        shapes=_SHAPES,
        spaces=(BACKWARD,),
        tolerance=Tolerance(ulps=1.0, accumulated=1e-5),
        notes="Sorts the indices; besides the rows that occur, zeros are written to the table.",
    ),
)
