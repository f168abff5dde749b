"""Softmax and its logarithm over the last dimension, forward and backward."""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import choice, derivative, describe
from wavecast.kernels.describe import sizes, widened
from wavecast.kernels.norm.rows import rows_kernel
from wavecast.kernels.strides import rows_of

_WHOLE_ROW = 32768
"""Columns a program holds at once; longer rows are read twice."""
_BITS = tl.constexpr(1.4426950408889634)
"""log2(e)."""
_LOWEST = tl.constexpr(-1e30)
"""Below every logit, and finite, so that differences are."""
TENSORS = describe.Signature("x: [..., columns] float", returns=("y: [..., columns] =x",))
BACKWARD_TENSORS = describe.Signature(
    *("y: [..., columns] float", "dy: [..., columns] float"), returns=("dx: [..., columns] =y",)
)


@triton.jit
def softmax_kernel(
    x_ptr, y_ptr, rows, columns, stride,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, LOG: tl.constexpr, WHOLE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    if WIDE:
        row = row.to(tl.int64)
    row_mask = (row < rows)[:, None]
    x_row = x_ptr + row[:, None] * stride
    y_row = y_ptr + row[:, None] * columns
    dtype = y_ptr.dtype.element_ty
    if WHOLE:
        offs_n = tl.arange(0, BLOCK)[None, :]
        mask = row_mask & (offs_n < columns)
        x = tl.load(x_row + offs_n, mask=mask, other=-float("inf"))
        row_max = tl.max(x.to(tl.float32), axis=1, keep_dims=True)
        log2_y = (x.to(tl.float32) - row_max) * _BITS  # all that a logarithm must keep in registers
        powers = tl.exp2(log2_y)
        row_sum = tl.sum(powers, axis=1, keep_dims=True)
        scale = 1.0 / row_sum  # pyright: ignore[reportOperatorIssue]
        y = (log2_y - tl.log2(row_sum)) * (1.0 / _BITS) if LOG else powers * scale
        tl.store(y_row + offs_n, y.to(dtype), mask=mask)
    else:
        row_max = tl.full((ROWS, 1), _LOWEST, tl.float32)
        row_sum = tl.zeros((ROWS, 1), tl.float32)
        for start in range(0, columns, BLOCK):
            offs_n = start + tl.arange(0, BLOCK)[None, :]
            mask = row_mask & (offs_n < columns)
            x = tl.load(x_row + offs_n, mask=mask, other=-float("inf")).to(tl.float32)
            previous_max = row_max
            row_max = tl.maximum(row_max, tl.max(x, axis=1, keep_dims=True))
            row_sum = row_sum * tl.exp(previous_max - row_max) + tl.sum(
                tl.exp(x - row_max), axis=1, keep_dims=True
            )
        for start in range(0, columns, BLOCK):
            offs_n = start + tl.arange(0, BLOCK)[None, :]
            mask = row_mask & (offs_n < columns)
            x = tl.load(x_row + offs_n, mask=mask, other=-float("inf")).to(tl.float32) - row_max
            y = x - tl.log(row_sum) if LOG else tl.exp(x) * (1.0 / row_sum)
            tl.store(y_row + offs_n, y.to(dtype), mask=mask)


@triton.jit
def softmax_backward_kernel(
    dy_ptr, y_ptr, dx_ptr, rows, columns,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, LOG: tl.constexpr, WHOLE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    if WIDE:
        row = row.to(tl.int64)
    row_mask = (row < rows)[:, None]
    row_start = row[:, None] * columns
    dtype = dx_ptr.dtype.element_ty
    if WHOLE:
        offs_n = tl.arange(0, BLOCK)[None, :]
        mask = row_mask & (offs_n < columns)
        y = tl.load(y_ptr + row_start + offs_n, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row_start + offs_n, mask=mask, other=0.0).to(tl.float32)
        if LOG:
            dx = dy - tl.exp(y) * tl.sum(dy, axis=1, keep_dims=True)
        else:
            dx = y * (dy - tl.sum(dy * y, axis=1, keep_dims=True))
        tl.store(dx_ptr + row_start + offs_n, dx.to(dtype), mask=mask)
    else:
        row_sum = tl.zeros((ROWS,), tl.float32)
        for start in range(0, columns, BLOCK):
            offs_n = start + tl.arange(0, BLOCK)[None, :]
            mask = row_mask & (offs_n < columns)
            dy = tl.load(dy_ptr + row_start + offs_n, mask=mask, other=0.0).to(tl.float32)
            if not LOG:
                dy *= tl.load(y_ptr + row_start + offs_n, mask=mask, other=0.0).to(tl.float32)
            row_sum += tl.sum(dy, axis=1)
        for start in range(0, columns, BLOCK):
            offs_n = start + tl.arange(0, BLOCK)[None, :]
            mask = row_mask & (offs_n < columns)
            y = tl.load(y_ptr + row_start + offs_n, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + row_start + offs_n, mask=mask, other=0.0).to(tl.float32)
            dx = dy - tl.exp(y) * row_sum[:, None] if LOG else y * (dy - row_sum[:, None])
            tl.store(dx_ptr + row_start + offs_n, dx.to(dtype), mask=mask)


_ROWS: dict[str, Any] = {
    "writes": "1", "instructions": 12.0, "whole_row": _WHOLE_ROW, "blocks": (4096, 8192, 16384),
}  # fmt: skip
FORWARD = rows_kernel(
    softmax_kernel, reads="1", live_registers=2.0, strides={"x": "stride"}, **_ROWS
)
BACKWARD = rows_kernel(
    softmax_backward_kernel, reads="2", live_registers=3.0, contiguous=("dy", "y"), **_ROWS
)


@TENSORS.checked
def softmax(x: Tensor) -> Tensor:
    """Softmax of the last dimension, exp(x) / sum(exp(x)).

    `x` is [..., columns] of float32, float16 or bfloat16; computed in float32, returned in its
    dtype. A row of nothing but -inf gives NaN. Raises ArgumentError.
    """
    return _forward(x, log=False)


@TENSORS.checked
def log_softmax(x: Tensor) -> Tensor:
    """Logarithm of the softmax of the last dimension, x - log(sum(exp(x))).

    `x` is [..., columns] of float32, float16 or bfloat16; computed in float32, returned in its
    dtype. A row of nothing but -inf gives NaN. Raises ArgumentError.
    """
    return _forward(x, log=True)


@BACKWARD_TENSORS.checked
def softmax_backward(dy: Tensor, y: Tensor) -> Tensor:
    """The gradient of `softmax` with respect to x, from its result `y` of the same shape, in the
    dtype of `y`. Raises ArgumentError."""
    return _backward(dy, y, log=False)


@BACKWARD_TENSORS.checked
def log_softmax_backward(dy: Tensor, y: Tensor) -> Tensor:
    """The gradient of `log_softmax` with respect to x, from its result `y` of the same shape, in
    the dtype of `y`. Raises ArgumentError."""
    return _backward(dy, y, log=True)


def softmax_reference(x):
    return torch.softmax(widened(x), -1).to(x.dtype).contiguous()


def log_softmax_reference(x):
    return torch.log_softmax(widened(x), -1).to(x.dtype).contiguous()


def softmax_backward_reference(dy, y):
    wide = widened(y)
    grad = dy.to(wide.dtype)
    return (wide * (grad - (grad * wide).sum(-1, keepdim=True))).to(y.dtype).contiguous()


def log_softmax_backward_reference(dy, y):
    wide = widened(y)
    grad = dy.to(wide.dtype)
    return (grad - wide.exp() * grad.sum(-1, keepdim=True)).to(y.dtype).contiguous()


def _problem(x: Tensor, log: bool) -> dict[str, Any]:
    columns = x.shape[-1]
    rows = x.numel() // columns
    return {"rows": rows, "columns": columns, "bytes": x.element_size(), "log": log}


def _forward(x: Tensor, *, log: bool) -> Tensor:
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        whole = x.shape[-1] <= _WHOLE_ROW
        choice.run(FORWARD, _problem(x, log), x=rows_of(x), y=y, WHOLE=whole)
    return y


def _backward(dy: Tensor, y: Tensor, *, log: bool) -> Tensor:
    dx = torch.empty(y.shape, dtype=y.dtype, device=y.device)
    if y.numel():
        whole = y.shape[-1] <= _WHOLE_ROW
        choice.run(BACKWARD, _problem(y, log), dy=dy, y=y, dx=dx, WHOLE=whole)
    return dx


def _backward_inputs(log: bool) -> Callable[..., dict[str, Any]]:
    def inputs(make, rows, columns, dtype):
        y = make.normal((rows, columns), dtype, 3.0)
        if make.values:
            y = (torch.log_softmax if log else torch.softmax)(widened(y), -1).to(y.dtype)
        return {"dy": make.normal((rows, columns), dtype), "y": y}

    return inputs


def _pair(
    forward: Callable[..., Any], backward: Callable[..., Any], what: str
) -> tuple[describe.Operator, describe.Operator]:
    names, name = "rows columns dtype", forward.__name__
    shared: dict[str, Any] = {
        "flops": describe.vector_flops(5.0, "rows", "columns"),
        "tolerance": describe.Tolerance(ulps=1.0, accumulated=1e-5),
    }
    operator = describe.Operator(
        summary=f"{what} of the last dimension",
        call=forward,
        inputs=TENSORS.inputs(x=describe.normal(3.0)),
        batch=describe.Batch(("x",)),
        cases=sizes(
            names,
            *((5, 300, "bfloat16"), (3, 17, "float32"), (133, 64, "float16")),
            (2, 33000, "bfloat16"),
        ),
        thorough=sizes(names, (1, 1, "float32"), (2, 8000, "float16"), (2, 33000, "float32")),
        shapes=sizes(names, (8192, 4096, "bfloat16"), (4096, 32768, "bfloat16")),
        gradient=derivative.by_operator(
            forward, f"{name}_backward", grads=("dy",), saved=("y",), of=("x",), outputs=("y",)
        ),
        **shared,
    )
    inputs, batch = _backward_inputs(name == "log_softmax"), describe.Batch(("dy", "y"))
    return operator, derivative.operator(operator, backward, inputs=inputs, batch=batch, **shared)


OPERATORS = (
    *_pair(softmax, softmax_backward, "softmax"),
    *_pair(log_softmax, log_softmax_backward, "logarithm of the softmax"),
)
