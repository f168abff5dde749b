"""What the descriptions of row normalisations have in common: checks, inputs, work, sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from wavecast.kernels import checks
from wavecast.kernels.inputs import Make
from wavecast.model.bounds import Work

CASES = (
    {"rows": 5, "columns": 300, "dtype": "bfloat16"},
    {"rows": 3, "columns": 17, "dtype": "float32"},
    {"rows": 133, "columns": 64, "dtype": "float16"},
    {"rows": 2, "columns": 20000, "dtype": "bfloat16"},
)
THOROUGH = (
    {"rows": 1, "columns": 1, "dtype": "float32"},
    {"rows": 700, "columns": 128, "dtype": "bfloat16"},
    {"rows": 3, "columns": 16385, "dtype": "float32"},
    {"rows": 2, "columns": 7168, "dtype": "float16"},
)
SHAPES = (
    {"rows": 8192, "columns": 4096, "dtype": "bfloat16"},
    {"rows": 8192, "columns": 8192, "dtype": "bfloat16"},
    {"rows": 64, "columns": 7168, "dtype": "bfloat16"},
    {"rows": 1, "columns": 4096, "dtype": "bfloat16"},
)
HEADS = ({"rows": 262144, "columns": 128, "dtype": "bfloat16"},)
"""The heads of a q/k norm."""


def check(operator: str, x: torch.Tensor, **given: torch.Tensor | None) -> None:
    """`x` has rows; `weight` and `bias` are one row, all others like `x`. Raises ArgumentError."""
    checks.require(x.dim() > 0, operator, "x is a scalar")
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    for name, tensor in given.items():
        if tensor is None:
            continue
        checks.dtype_in(operator, name, tensor, checks.FLOATS)
        if name in ("weight", "bias"):
            checks.shape_is(operator, name, tensor, x.shape[-1:])
        else:
            checks.shape_is(operator, name, tensor, x.shape)
            same = tensor.dtype == x.dtype or name == "dy"
            checks.require(same, operator, f"{name} is {tensor.dtype}, x {x.dtype}")
    checks.same_device(operator, x=x, **given)


def inputs(*names: str, optional: tuple[str, ...] = ()) -> Callable[..., dict[str, Any]]:
    """Inputs of a call: the tensors `names`, like `x` but for `weight` and `bias`. Sizes of the
    name of a tensor say whether it is there, by default all but the `optional` ones; others are
    passed on."""

    def made(make: Make, rows: int, columns: int, dtype: str, **more: Any) -> dict[str, Any]:
        shapes = {"weight": (columns,), "bias": (columns,)}
        wanted = [n for n in (*names, *optional) if more.pop(n, n in names)]
        tensors = {n: make.normal(shapes.get(n, (rows, columns)), dtype) for n in wanted}
        return {**tensors, **more}

    return made


def work(read: int, written: int, operations: float) -> Callable[..., Work]:
    """Work of a call that reads and writes so many tensors like `x`, with so many operations per
    element."""

    def done(rows: int, columns: int, dtype: str, **_: Any) -> Work:
        size = rows * columns * getattr(torch, dtype).itemsize
        flops = {"vector_fp32": operations * rows * columns}
        return Work(flops, read * size, written * size, "formula", "formula")

    return done


def widest(x: torch.Tensor) -> torch.dtype:
    """The dtype a reference computes in: float32, or float64 for such."""
    return torch.promote_types(x.dtype, torch.float32)


def rounded_sum(x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """x + residual in the dtype of both, contiguous as a kernel writes it."""
    return (x + residual).contiguous()


__all__ = [
    "CASES", "HEADS", "SHAPES", "THOROUGH", "check", "inputs", "rounded_sum", "widest", "work",
]  # fmt: skip
