"""Rows of a table by index, and the table's gradient summed in a fixed order."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, derivative, describe
from wavecast.kernels.describe import KernelSpec, sizes, widened
from wavecast.kernels.pointwise import elementwise
from wavecast.kernels.strides import rows_of

TENSORS = describe.Signature(
    *("weight: [vocabulary, columns] float", "indices: [...] index"),
    returns=("y: [..., columns] =weight",),
    leading="tokens",
)
BACKWARD_TENSORS = describe.Signature(
    *("indices: [...] index", "dy: [..., columns] float"),
    returns=("dweight: [vocabulary, columns] =dy",),
    leading="tokens",
)


@triton.jit
def embedding_kernel(
    weight_ptr, indices_ptr, y_ptr, count, vocabulary, columns, stride,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(columns, BLOCK)
    start_m = tl.program_id(0) // tiles_n * ROWS
    start_n = tl.program_id(0) % tiles_n * BLOCK
    row = start_m + tl.arange(0, ROWS)
    index = tl.load(indices_ptr + row, mask=row < count, other=0)
    in_range = (index >= 0) & (index < vocabulary)
    offs_n = tl.arange(0, BLOCK)[None, :]
    mask = (row < count)[:, None] & (offs_n < columns - start_n)
    if WIDE:
        index = index.to(tl.int64)
        row = row.to(tl.int64)
    else:
        index = index.to(tl.int32)
    ptrs = weight_ptr + start_n + index[:, None] * stride + offs_n
    rows = tl.load(ptrs, mask=mask & in_range[:, None], other=0.0)
    tl.store(y_ptr + start_n + row[:, None] * columns + offs_n, rows, mask=mask)


@triton.jit
def embedding_backward_kernel(
    dy_ptr, sorted_ptr, order_ptr, dweight_ptr, count, vocabulary, columns, padding,
    BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One program per position in the sorted indices and block of columns. Those where a new index
    begins add up all its rows, in the order of their positions."""
    tiles_n = tl.cdiv(columns, BLOCK)
    number = tl.program_id(0) // tiles_n
    start_n = tl.program_id(0) % tiles_n * BLOCK
    index = tl.load(sorted_ptr + number)
    previous = tl.load(sorted_ptr + number - 1, mask=number > 0, other=-1)
    begins = (number == 0) | (index != previous)
    if begins & (index >= 0) & (index < vocabulary) & (index != padding):
        offs_n = tl.arange(0, BLOCK)
        mask = offs_n < columns - start_n
        acc = tl.zeros((BLOCK,), tl.float32)
        current = index
        while current == index:
            row = tl.load(order_ptr + number)
            ptrs = dy_ptr + (row if WIDE else row.to(tl.int32)) * columns + start_n
            acc += tl.load(ptrs + offs_n, mask=mask, other=0.0).to(tl.float32)
            number += 1
            current = tl.load(sorted_ptr + number, mask=number < count, other=-1)
        ptrs = (
            dweight_ptr + (index.to(tl.int64) if WIDE else index.to(tl.int32)) * columns + start_n
        )
        tl.store(ptrs + offs_n, acc.to(dweight_ptr.dtype.element_ty), mask=mask)


EMBEDDING = elementwise.row_kernel(
    embedding_kernel, instructions=4.0, live_registers=1.0, strides={"weight": "stride"}
)
BACKWARD = KernelSpec.streaming(
    embedding_backward_kernel,
    grid="rows * cdiv(columns, BLOCK)",
    axes={
        "BLOCK": "up_to(max(64, next_power_of_2(columns)), 64, 256, 512, 1024, 2048)",
        "num_warps": (1, 2, 4),
    },
    read="rows * columns * read",
    written="rows * columns * read",
    elements="BLOCK",
    instructions=8.0,
    live_registers=3.0,
    contiguous=("dy",),
    rounded=("rows",),
)


@TENSORS.checked
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1) -> Tensor:
    """Rows `indices` (int64 or int32, any shape) of `weight` [vocabulary, columns] (float32,
    float16, bfloat16): [*indices.shape, columns].

    An index out of range gives a row of zeros. The row `padding_idx`, unless it is negative, gets
    no gradient. Raises ArgumentError.
    """
    vocabulary, columns = weight.shape
    _check_padding("embedding", padding_idx, vocabulary)
    y = torch.empty((*indices.shape, columns), dtype=weight.dtype, device=weight.device)
    if not y.numel():
        return y
    if not vocabulary:
        return y.zero_()
    count, index = indices.numel(), indices.contiguous()
    problem = {"rows": count, "columns": columns, **elementwise.traffic_entries((weight,), (y,))}
    operands = {"weight": rows_of(weight), "indices": index, "y": y}
    choice.run(EMBEDDING, problem, **operands, count=count, vocabulary=vocabulary)
    return y


def embedding_reference(weight, indices, padding_idx=-1):
    if not weight.shape[0]:
        return weight.new_zeros((*indices.shape, weight.shape[1]))
    in_range = (indices >= 0) & (indices < weight.shape[0])
    rows = torch.nn.functional.embedding(torch.where(in_range, indices, 0), weight)
    return torch.where(in_range[..., None], rows, 0.0).to(weight.dtype).contiguous()


@BACKWARD_TENSORS.checked
def embedding_backward(
    dy: Tensor, indices: Tensor, vocabulary: int, padding_idx: int = -1
) -> Tensor:
    """The gradient of `embedding` with respect to its table: [vocabulary, columns] in the dtype of
    `dy` [*indices.shape, columns].

    The rows of an index are added in float32 in their order, so that results are the same every
    time. Raises ArgumentError.
    """
    name = "embedding_backward"
    checks.require(vocabulary >= 0, name, f"vocabulary is {vocabulary}")
    _check_padding(name, padding_idx, vocabulary)
    columns, count = dy.shape[-1], indices.numel()
    dweight = torch.zeros((vocabulary, columns), dtype=dy.dtype, device=dy.device)
    if not dweight.numel() or not count:
        return dweight
    ordered, order = torch.sort(indices.reshape(-1), stable=True)
    problem = {"rows": count, "columns": columns, "read": dy.element_size()}
    operands = {"dy": dy, "sorted": ordered, "order": order, "dweight": dweight}
    options = {"count": count, "vocabulary": vocabulary, "padding": padding_idx}
    choice.run(BACKWARD, problem, **operands, **options)
    return dweight


def embedding_backward_reference(dy, indices, vocabulary, padding_idx=-1):
    flat = indices.reshape(-1).long()
    rows = widened(dy.reshape(flat.numel(), dy.shape[-1]))
    in_range = (flat >= 0) & (flat < vocabulary) & (flat != padding_idx)
    total = rows.new_zeros((vocabulary, dy.shape[-1]))
    if not vocabulary:
        return total.to(dy.dtype)
    rows = torch.where(in_range[:, None], rows, 0.0)
    return total.index_add(0, torch.where(in_range, flat, 0), rows).to(dy.dtype)


def _check_padding(operator: str, padding: int, vocabulary: int) -> None:
    message = f"padding_idx is {padding}, of {vocabulary} rows"
    checks.require(padding < max(vocabulary, 1), operator, message)


def _inputs(make, tokens, vocabulary, columns, dtype, padding=-1):
    indices = make.integers((tokens,), 0, vocabulary)
    weight = make.normal((vocabulary, columns), dtype)
    return {"weight": weight, "indices": indices, "padding_idx": padding}


def _backward_inputs(make, tokens, vocabulary, columns, dtype, padding=-1):
    operands = {"indices": make.integers((tokens,), 0, vocabulary), "vocabulary": vocabulary}
    return {"dy": make.normal((tokens, columns), dtype), **operands, "padding_idx": padding}


def _work(tokens, columns, dtype, **_):
    size = tokens * columns * getattr(torch, dtype).itemsize
    return describe.Work({}, size + 8 * tokens, size, "formula", "formula")


def _backward_work(tokens, vocabulary, columns, dtype, **_):
    size = columns * getattr(torch, dtype).itemsize
    flops = {"vector_fp32": float(tokens * columns)}
    read, written = tokens * (size + 16), min(tokens, vocabulary) * size
    return describe.Work(flops, read, written, "formula", "formula")


_NAMES = "tokens vocabulary columns dtype padding"
_CASES = sizes(_NAMES, (70, 50, 300, "bfloat16"), (3, 11, 2500, "float16"))

EMBEDDING_OPERATOR = describe.Operator(
    summary="rows of a table by index",
    call=embedding,
    inputs=_inputs,
    work=_work,
    batch=describe.Batch(("indices",)),
    cases=sizes(_NAMES, (13, 7, 37, "float32", -1)) + _CASES,
    shapes=sizes(_NAMES, (8192, 128256, 4096, "bfloat16")),
    gradient=derivative.by_operator(
        embedding, "embedding_backward", grads=("dy",), of=("weight",),
        saved=("indices", "padding_idx"), vocabulary=lambda weight, **_: weight.shape[0],
    ),
)  # fmt: skip
BACKWARD_OPERATOR = derivative.operator(
    EMBEDDING_OPERATOR,
    embedding_backward,
    summary="gradient of a table of embeddings",
    inputs=_backward_inputs,
    work=_backward_work,
    cases=sizes(_NAMES, (13, 7, 37, "float32", 3)) + _CASES,
    tolerance=describe.Tolerance(ulps=1.0, accumulated=1e-5),
    notes="Sorts the indices; besides the rows that occur, zeros are written to the table.",
)
OPERATORS = (EMBEDDING_OPERATOR, BACKWARD_OPERATOR)
