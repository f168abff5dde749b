"""Products of a batch of matrices."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels import checks
from wavecast.kernels.gemm.matmul import result_dtype
from wavecast.kernels.gemm.product import NAMES, Epilogue, product
from wavecast.kernels.gemm.space import REST, SUM, TILES, VECTOR
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.model.bounds import Work


def batched_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    out_dtype: torch.dtype | None = None,
    precision: str = "ieee",
) -> torch.Tensor:
    """`a @ b` for every matrix of a batch.

    `a` is [B, M, K] and `b` [B, K, N], with any strides; either may have a batch of one, which then
    serves all. Dtypes, `out_dtype` and `precision` are those of `matmul`. The result [B, M, N] is
    contiguous. Raises ArgumentError.
    """
    name = "batched_matmul"
    kind = result_dtype(name, a, b, out_dtype, precision)
    checks.require(a.dim() == 3, name, f"a has {a.dim()} dimensions, not three")
    checks.shape_is(name, "b", b, (-1, a.shape[2], -1))
    sizes = {a.shape[0], b.shape[0]} - {1}
    checks.require(len(sizes) <= 1, name, f"a has a batch of {a.shape[0]}, b one of {b.shape[0]}")
    if not a.numel() or not b.numel():
        return batched_matmul_reference(a, b, out_dtype, precision)
    shape = (max(a.shape[0], b.shape[0]), a.shape[1], b.shape[2])
    checks.require(shape[0] < 2**16, name, f"a batch of {shape[0]} is more than 65535")
    out = torch.empty(shape, dtype=kind, device=a.device)
    product(a, b, out, Epilogue(), precision)
    return out


def batched_matmul_reference(
    a: torch.Tensor,
    b: torch.Tensor,
    out_dtype: torch.dtype | None = None,
    precision: str = "ieee",
) -> torch.Tensor:
    """`torch.matmul`, in float32 at least; int8 in float64, where its sums are exact."""
    integers = a.dtype == torch.int8
    wide = torch.float64 if integers else torch.promote_types(a.dtype, torch.float32)
    kind = out_dtype or (torch.int32 if integers else a.dtype)
    return torch.matmul(a.to(wide), b.to(wide)).to(kind).contiguous()


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    a, b, _, ctx.precision = inputs
    ctx.save_for_backward(a, b)


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    """A matrix that served the whole batch gets the gradient of all its rows at once."""
    a, b = ctx.saved_tensors
    ops = torch.ops.wavecast
    dy = dy.to(a.dtype)
    da = db = None
    if ctx.needs_input_grad[0]:
        if a.shape[0] < dy.shape[0]:
            left = dy.transpose(0, 1).reshape(dy.shape[1], -1)
            right = b.transpose(1, 2).reshape(-1, b.shape[1])
            da = ops.matmul(left, right, precision=ctx.precision).unsqueeze(0)
        else:
            da = ops.batched_matmul(dy, b.transpose(1, 2), precision=ctx.precision)
    if ctx.needs_input_grad[1]:
        if b.shape[0] < dy.shape[0]:
            left = a.reshape(-1, a.shape[2]).t()
            right = dy.reshape(-1, dy.shape[2])
            db = ops.matmul(left, right, precision=ctx.precision).unsqueeze(0)
        else:
            db = ops.batched_matmul(a.transpose(1, 2), dy, precision=ctx.precision)
    return da, db, None, None


def _inputs(
    make: Make,
    batch: int,
    m: int,
    n: int,
    k: int,
    dtype: str,
    layout: str = "NT",
    shared: str = "",
    out: str = "",
    precision: str = "ieee",
) -> dict[str, Any]:
    """`layout` as for `matmul`; `shared` names the operand with a batch of one."""

    def operand(name: str, rows: int, columns: int, transposed: bool) -> torch.Tensor:
        count = 1 if name == shared else batch
        shape = (count, columns, rows) if transposed else (count, rows, columns)
        if dtype == "int8":
            made = make.integers(shape, -128, 128, dtype)
        elif precision == "tf32":
            made = make.normal(shape, "bfloat16").to(make.dtype(dtype))
        else:
            made = make.normal(shape, dtype)
        return made.transpose(1, 2) if transposed else made

    return {
        "a": operand("a", m, k, layout[0] == "T"),
        "b": operand("b", k, n, layout[1] == "T"),
        "out_dtype": make.dtype(out) if out else None,
        "precision": precision,
    }


def _work(
    batch: int,
    m: int,
    n: int,
    k: int,
    dtype: str,
    layout: str = "NT",
    shared: str = "",
    out: str = "",
    precision: str = "ieee",
) -> Work:
    kind = getattr(torch, dtype)
    result = getattr(torch, out) if out else torch.int32 if dtype == "int8" else kind
    rows = m * (1 if shared == "a" else batch) + n * (1 if shared == "b" else batch)
    name = "xf32" if precision == "tf32" else NAMES.get(kind, "fp64")
    flops = {name: 2.0 * batch * m * n * k}
    written = batch * m * n * result.itemsize
    return Work(flops, rows * k * kind.itemsize, written, "formula", "formula")


_CASES = (
    {"batch": 3, "m": 5, "n": 18, "k": 33, "dtype": "float32", "layout": "NN"},
    {"batch": 2, "m": 40, "n": 70, "k": 136, "dtype": "bfloat16"},
    {"batch": 3, "m": 33, "n": 24, "k": 64, "dtype": "float16", "layout": "TN", "shared": "b"},
)
_THOROUGH = (
    {"batch": 2, "m": 16, "n": 64, "k": 72, "dtype": "int8", "shared": "a"},
    {"batch": 2, "m": 7, "n": 64, "k": 72, "dtype": "bfloat16", "layout": "TT", "out": "float32"},
    {"batch": 2, "m": 17, "n": 40, "k": 72, "dtype": "float32", "precision": "tf32"},
    {"batch": 3, "m": 1, "n": 40, "k": 300, "dtype": "float32", "shared": "b"},
)
_SHAPES = (
    {"batch": 128, "m": 512, "n": 512, "k": 128, "dtype": "bfloat16"},
    {"batch": 16, "m": 2048, "n": 2048, "k": 2048, "dtype": "bfloat16"},
    {"batch": 128, "m": 16, "n": 512, "k": 128, "dtype": "bfloat16", "layout": "NN"},
)

OPERATORS = (
    Operator(
        name="batched_matmul",
        summary="products of a batch of matrices",
        call=batched_matmul,
        reference=batched_matmul_reference,
        inputs=_inputs,
        work=_work,
        batch=Batch(("a", "b"), merged=True, unless=lambda a, b, **_: a.shape[0] != b.shape[0]),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(TILES, SUM, REST, VECTOR),
        gradient=Gradient(_setup, _gradient),
        tolerance=Tolerance(ulps=1.0, accumulated=4e-6),
    ),
)
