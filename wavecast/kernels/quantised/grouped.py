"""Products of groups of rows with a matrix each, whose sizes only the GPU knows."""

from __future__ import annotations

from typing import Any

import torch
import triton

from wavecast.kernels import checks, gpu, tiles
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Gradient, Operator, Tolerance
from wavecast.kernels.quantised import parts
from wavecast.kernels.quantised.grouped_kernels import (
    OUTER,
    TILES,
    grouped_matmul_kernel,
    grouped_outer_kernel,
)
from wavecast.kernels.strides import adjacent
from wavecast.model.bounds import Work

_OPERANDS = (torch.bfloat16, torch.float16)
_OFFSETS = (torch.int32, torch.int64)


def grouped_matmul(
    a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor, transposed: bool = True
) -> torch.Tensor:
    """Rows of `a` times the matrix of their group, as experts of a mixture have them.

    `a` is [M, K] with its rows sorted by group; `b` [G, N, K] (`transposed`, as `nn.Linear` keeps
    weights) or [G, K, N], of the same dtype, bfloat16 or float16, with any strides. `offsets`
    [G + 1] of int32 or int64 on the same GPU says where groups begin and end: rows `offsets[g]` to
    `offsets[g + 1]` belong to group g; it begins with 0, does not fall and is at most M, which is
    not checked, so that nothing waits for the GPU. Returns [M, N] in the dtype of `a`, with zeros
    in rows beyond the last group. Raises ArgumentError.
    """
    n = _check("grouped_matmul", a, b, offsets, transposed)
    m, k = a.shape
    groups = b.shape[0]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not out.numel() or not k or not groups:
        return out.zero_()
    a = adjacent(a)
    step, column = (b.stride(2), b.stride(1)) if transposed else (b.stride(1), b.stride(2))
    along_k = step == 1
    if not along_k and column != 1:
        b = b.contiguous()
        step, column = (b.stride(2), b.stride(1)) if transposed else (b.stride(1), b.stride(2))
        along_k = step == 1
    wide = checks.wide(a, b, out)
    launch(
        grouped_matmul_kernel,
        lambda s: ((triton.cdiv(m, s["BLOCK_M"]) + groups) * triton.cdiv(n, s["BLOCK_N"]),),
        (
            *(a, b, offsets.contiguous(), out, m, n, k, groups),
            *(a.stride(0), b.stride(0), step, column),
        ),
        TILES,
        {
            **_problem(m, n, k, groups, a, wide),
            "along_k": along_k,
            "even": k % 64 == 0 and n % 256 == 0,
        },
        N_EVEN=n % 256 == 0,
        K_EVEN=k % 64 == 0,
        WIDE=wide,
        XCDS=tiles.xcds(gpu.launching()),
        LISTED=triton.next_power_of_2(groups),
    )
    return out


def grouped_matmul_reference(
    a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor, transposed: bool = True
) -> torch.Tensor:
    """A product per group, its rows picked by a mask, in float32 at least."""
    kind = torch.promote_types(a.dtype, torch.float32)
    matrices = b.to(kind).mT if transposed else b.to(kind)
    place = torch.arange(a.shape[0], device=a.device)[:, None]
    total = a.new_zeros((a.shape[0], matrices.shape[2]), dtype=kind)
    for group in range(b.shape[0]):
        held = (place >= offsets[group]) & (place < offsets[group + 1])
        total = total + torch.where(held, a.to(kind), 0.0) @ matrices[group]
    return total.to(a.dtype).contiguous()


def grouped_outer(a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """`a[rows].T @ b[rows]` over the rows of each group: the gradient of a grouped product with
    respect to its matrices.

    `a` is [rows, M] and `b` [rows, N] of one dtype, bfloat16 or float16, with rows sorted by group;
    `offsets` [G + 1] as `grouped_matmul` takes it. Returns [G, M, N] in the dtype of `a`, summed in
    float32; an empty group has zeros. Raises ArgumentError.
    """
    name = "grouped_outer"
    checks.dtype_in(name, "a", a, _OPERANDS)
    checks.dtype_in(name, "b", b, (a.dtype,))
    checks.shape_is(name, "a", a, (-1, -1))
    checks.shape_is(name, "b", b, (a.shape[0], -1))
    groups = _check_offsets(name, offsets)
    checks.same_device(name, a=a, b=b, offsets=offsets)
    rows, m = a.shape
    n = b.shape[1]
    out = torch.empty((groups, m, n), dtype=a.dtype, device=a.device)
    if not out.numel() or not rows:
        return out.zero_()
    a = adjacent(a)
    b = adjacent(b)
    wide = checks.wide(a, b, out)
    launch(
        grouped_outer_kernel,
        lambda s: (triton.cdiv(m, s["BLOCK_M"]) * triton.cdiv(n, s["BLOCK_N"]), groups),
        (a, b, offsets.contiguous(), out, m, n, a.stride(0), b.stride(0)),
        OUTER,
        _problem(m, n, rows, groups, a, wide),
        WIDE=wide,
        XCDS=tiles.xcds(gpu.launching()),
    )
    return out


def grouped_outer_reference(
    a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    """A product per group, its rows picked by a mask, in float32 at least."""
    kind = torch.promote_types(a.dtype, torch.float32)
    place = torch.arange(a.shape[0], device=a.device)[:, None]
    found = []
    for group in range(offsets.shape[0] - 1):
        held = (place >= offsets[group]) & (place < offsets[group + 1])
        found.append(torch.where(held, a.to(kind), 0.0).T @ b.to(kind))
    total = torch.stack(found) if found else a.new_zeros((0, a.shape[1], b.shape[1]))
    return total.to(a.dtype).contiguous()


def _check(
    name: str, a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor, transposed: bool
) -> int:
    """Columns of the result."""
    checks.dtype_in(name, "a", a, _OPERANDS)
    checks.dtype_in(name, "b", b, (a.dtype,))
    checks.shape_is(name, "a", a, (-1, -1))
    k = a.shape[1]
    checks.shape_is(name, "b", b, (-1, -1, k) if transposed else (-1, k, -1))
    groups = _check_offsets(name, offsets)
    checks.shape_is(name, "offsets", offsets, (b.shape[0] + 1,))
    checks.require(groups == b.shape[0], name, "offsets do not fit the groups of b")
    checks.same_device(name, a=a, b=b, offsets=offsets)
    return b.shape[1] if transposed else b.shape[2]


def _check_offsets(name: str, offsets: torch.Tensor) -> int:
    """Groups."""
    checks.dtype_in(name, "offsets", offsets, _OFFSETS)
    checks.require(
        offsets.dim() == 1 and len(offsets) > 0, name, "offsets has not one dimension of G + 1"
    )
    return len(offsets) - 1


def _problem(m: int, n: int, k: int, groups: int, a: torch.Tensor, wide: bool) -> dict[str, Any]:
    return {
        "m": m,
        "n": n,
        "k": k,
        "groups": groups,
        "dtype": parts.NAMES[a.dtype],
        "wide": wide,
    }


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    a, b, offsets, transposed = inputs
    ctx.save_for_backward(a, b, offsets)
    ctx.transposed = transposed


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    a, b, offsets = ctx.saved_tensors
    operators = torch.ops.wavecast
    da = operators.grouped_matmul(dy, b, offsets, not ctx.transposed)
    first, second = (dy, a) if ctx.transposed else (a, dy)
    return da, operators.grouped_outer(first, second, offsets), None, None


def _outer_setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _outer_gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    a, b, offsets = ctx.saved_tensors
    operators = torch.ops.wavecast
    da = operators.grouped_matmul(b, dy, offsets, True)
    return da, operators.grouped_matmul(a, dy, offsets, False), None


def _offsets(make: Make, m: int, groups: int, short: int = 0) -> torch.Tensor:
    """Groups of uneven sizes; the last `short` rows belong to none."""
    inner = make.integers((groups - 1,), 0, m - short + 1, "int64").cpu().sort().values
    ends = torch.tensor([m - short])
    return torch.cat((torch.zeros(1, dtype=torch.int64), inner, ends)).int().to(make.device)


def _even(make: Make, m: int, groups: int) -> torch.Tensor:
    found = torch.arange(groups + 1) * (m // groups)
    return found.int().to(make.device)


def _inputs(
    make: Make,
    m: int,
    n: int,
    k: int,
    groups: int,
    dtype: str,
    transposed: bool = True,
    short: int = 0,
    even: bool = False,
) -> dict[str, Any]:
    shape = (groups, n, k) if transposed else (groups, k, n)
    return {
        "a": make.normal((m, k), dtype),
        "b": make.normal(shape, dtype),
        "offsets": _even(make, m, groups) if even else _offsets(make, m, groups, short),
        "transposed": transposed,
    }


def _outer_inputs(
    make: Make, m: int, n: int, rows: int, groups: int, dtype: str, even: bool = False
) -> dict[str, Any]:
    return {
        "a": make.normal((rows, m), dtype),
        "b": make.normal((rows, n), dtype),
        "offsets": _even(make, rows, groups) if even else _offsets(make, rows, groups, 3),
    }


def _rate(dtype: str) -> str:
    return {"bfloat16": "bf16", "float16": "fp16"}.get(dtype, "fp32")


def _work(
    m: int,
    n: int,
    k: int,
    groups: int,
    dtype: str,
    transposed: bool = True,
    short: int = 0,
    even: bool = False,
) -> Work:
    size = getattr(torch, dtype).itemsize
    read = (m * k + groups * n * k) * size
    return Work({_rate(dtype): 2.0 * m * n * k}, read, m * n * size, "formula", "formula")


def _outer_work(m: int, n: int, rows: int, groups: int, dtype: str, even: bool = False) -> Work:
    size = getattr(torch, dtype).itemsize
    flops = {_rate(dtype): 2.0 * m * n * rows}
    return Work(flops, rows * (m + n) * size, groups * m * n * size, "formula", "formula")


_EXPERTS = {"groups": 128, "dtype": "bfloat16", "even": True}

OPERATORS = (
    Operator(
        name="grouped_matmul",
        summary="rows sorted by group times a matrix per group",
        call=grouped_matmul,
        reference=grouped_matmul_reference,
        inputs=_inputs,
        work=_work,
        cases=(
            {"m": 7, "n": 5, "k": 6, "groups": 3, "dtype": "bfloat16", "short": 1},
            {"m": 90, "n": 150, "k": 100, "groups": 5, "dtype": "bfloat16", "short": 20},
            {"m": 70, "n": 96, "k": 256, "groups": 4, "dtype": "float16", "transposed": False},
        ),
        thorough=(
            {"m": 300, "n": 40, "k": 72, "groups": 2, "dtype": "float16"},
            {"m": 40, "n": 70, "k": 33, "groups": 9, "dtype": "bfloat16", "transposed": False},
        ),
        shapes=({"m": 32768, "n": 3072, "k": 4096, **_EXPERTS},),
        spaces=(TILES,),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="grouped_outer",
        summary="transposed rows of each group times other rows of it",
        call=grouped_outer,
        reference=grouped_outer_reference,
        inputs=_outer_inputs,
        work=_outer_work,
        cases=(
            {"m": 6, "n": 5, "rows": 9, "groups": 3, "dtype": "bfloat16"},
            {"m": 70, "n": 150, "rows": 200, "groups": 3, "dtype": "bfloat16"},
            {"m": 33, "n": 64, "rows": 90, "groups": 5, "dtype": "float16"},
        ),
        shapes=({"m": 3072, "n": 4096, "rows": 32768, **_EXPERTS},),
        spaces=(OUTER,),
        tolerance=Tolerance(ulps=1.0, accumulated=2e-6),
        gradient=Gradient(_outer_setup, _outer_gradient),
    ),
)
