"""Products fused with collectives: `wavecast.ops.distributed`.

One kernel multiplies and communicates, tile by tile (`product_kernels.py`). Partial results are
sent in the dtype of x, and reduced in float32 in the order of ranks, as by a product and a
collective behind it. Results have gradients; that of a sum over ranks is the sum of the gradients
of all.
"""

# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from wavecast.dtypes import lookup
from wavecast.kernels.checks import require
from wavecast.kernels.distributed import arguments, collectives, launches
from wavecast.kernels.distributed.collectives import shots_for
from wavecast.kernels.distributed.group import RankCall, RankGroup, rank_operator
from wavecast.kernels.distributed.product_kernels import (
    gather_product_kernel,
    product_reduce_kernel,
)
from wavecast.launch import gpu
from wavecast.perfmodel.ops.collectives.own_products import (
    ProductPlan,
    gather_plan,
    reduce_plan,
)


@rank_operator
def matmul_reduce_scatter(x: Tensor, weight: Tensor, group: RankGroup) -> Tensor:
    """Rows `rank` of x @ weightᵀ added over all ranks: x[world · m, k], weight[n, k] -> [m, n].

    fp32, fp16 or bf16. Ranks may have different k. Raises ArgumentError.
    """
    name = "matmul_reduce_scatter"
    rows, columns = arguments.reduced_scattered_product(x, weight, group.layout)
    group.begin(RankCall(name, group.world * rows * columns, x.dtype))
    return _ReduceScattered.apply(x, weight, group)  # pyright: ignore[reportReturnType]


@rank_operator
def matmul_all_reduce(x: Tensor, weight: Tensor, group: RankGroup, shots: int = 0) -> Tensor:
    """x @ weightᵀ added over all ranks: x[m, k], weight[n, k] -> [m, n], the same bits on all.

    fp32, fp16 or bf16. Ranks may have different k. `shots` as of `all_reduce`: 0 takes what is
    predicted to be faster for the size of the result. Raises ArgumentError, and MissingFact with 0
    shots where no link is known.
    """
    name = "matmul_all_reduce"
    rows, columns = arguments.reduced_product(x, weight, group.layout)
    require(shots in (0, 1, 2), name, f"{shots} shots; 1, 2 or 0")
    shots = shots or shots_for(rows * columns * x.element_size(), group.world)
    group.begin(RankCall(name, rows * columns, x.dtype, f"shots={shots}"))
    return _AllReduced.apply(x, weight, group, shots)  # pyright: ignore[reportReturnType]


@rank_operator
def all_gather_matmul(x: Tensor, weight: Tensor, group: RankGroup) -> Tensor:
    """The x of all ranks, one after another, @ weightᵀ: x[m, k], weight[n, k] -> [world · m, n].

    fp32, fp16 or bf16. Ranks may have different n. Raises ArgumentError.
    """
    name = "all_gather_matmul"
    arguments.gathered_product(x, weight, group.layout)
    group.begin(RankCall(name, x.numel(), x.dtype, f"columns={x.shape[1]}"))
    return _Gathered.apply(x, weight, group)  # pyright: ignore[reportReturnType]


def _gather(name: str, x: Tensor, weight: Tensor, out: Tensor, group: RankGroup) -> None:
    """Launches over rows that fit a half of a buffer."""
    rows, k = x.shape
    columns = weight.shape[0]
    most = arguments.gathered_rows(name, x, group.layout)
    device = gpu.launching()
    for first in range(0, rows, most):
        part = min(most, rows - first)
        plan = gather_plan(part, columns, k, group.world, _dtype(x), device)
        chunks = triton.cdiv(part, plan.rows)
        tiles = group.world * chunks * triton.cdiv(columns, plan.columns)
        buffers, epoch = group.launch(x.dtype, triton.cdiv(chunks * plan.pieces, plan.copies))
        gather_product_kernel[(plan.copies + min(plan.workers, tiles),)](
            x[first:], weight, buffers[group.rank], out, group.signals[group.rank],
            tuple(buffers), tuple(group.signals), group.rank, epoch, part, rows, first, columns, k,
            plan.rows * k // plan.pieces,
            COPIES=plan.copies, PIECES=plan.pieces, BLOCK=launches.block_of(x),
            **_constants(plan, x, weight, out, group),
        )  # fmt: skip


def _reduce(
    name: str,
    x: Tensor,
    weight: Tensor,
    out: Tensor,
    group: RankGroup,
    shots: int,
    *,
    scatter: bool,
) -> None:
    """Launches over columns of which partial results fit a half of a buffer."""
    rows, k = x.shape
    columns = weight.shape[0]
    parts = 1 if shots == 1 else group.world
    part = triton.cdiv(rows, parts)
    most = arguments.reduced_columns(name, x, group.layout, shots)
    device = gpu.launching()
    for first in range(0, columns, most):
        n = min(most, columns - first)
        plan = reduce_plan(part, n, parts, _dtype(x), device)
        tiles = triton.cdiv(part, plan.rows) * triton.cdiv(n, plan.columns)
        teams = min(plan.workers // plan.team, tiles)
        buffers, epoch = group.launch(x.dtype, triton.cdiv(tiles, teams))
        product_reduce_kernel[(teams * plan.team,)](
            x, weight[first:], buffers[group.rank], out[:, first:], group.signals[group.rank],
            tuple(buffers), tuple(group.signals), group.rank, epoch, rows, part, n, columns, k,
            SHOTS=shots, SCATTER=scatter, TEAM=plan.team, **_constants(plan, x, weight, out, group),
        )  # fmt: skip


def _dtype(x: Tensor) -> str:
    return lookup(str(x.dtype)).short


def _constants(
    plan: ProductPlan, x: Tensor, weight: Tensor, out: Tensor, group: RankGroup
) -> dict[str, int]:
    """The constants of both kernels. Offsets of 64 bits where a tensor has more than 2^31 - 1
    elements."""
    wide = max(x.numel(), weight.numel(), out.numel()) >= 1 << 31
    return {
        "EVEN_K": x.shape[1] % plan.depth == 0, "WIDE": wide,
        "BM": plan.rows, "BN": plan.columns, "BK": plan.depth, **launches.constants(group),
    }  # fmt: skip


class _ReduceScattered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, group: Any) -> Any:
        ctx.save_for_backward(x, weight)
        ctx.group = group
        out = x.new_empty(x.shape[0] // group.world, weight.shape[0])
        _reduce("matmul_reduce_scatter", x, weight, out, group, 2, scatter=True)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, weight = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        dx = all_gather_matmul(gradient, weight.T.contiguous(), ctx.group)
        dweight = collectives.all_gather(gradient, ctx.group).T @ x
        return dx, dweight, None


class _AllReduced(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, group: Any, shots: Any) -> Any:
        ctx.save_for_backward(x, weight)
        ctx.group, ctx.shots = group, shots
        out = x.new_empty(x.shape[0], weight.shape[0])
        _reduce("matmul_all_reduce", x, weight, out, group, shots, scatter=False)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, weight = ctx.saved_tensors
        total = collectives.all_reduce(gradients[0].contiguous(), ctx.group, ctx.shots)
        return total @ weight, total.T @ x, None, None


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, group: Any) -> Any:
        ctx.save_for_backward(x, weight)
        ctx.group = group
        out = x.new_empty(group.world * x.shape[0], weight.shape[0])
        _gather("all_gather_matmul", x, weight, out, group)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, weight = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        dx = matmul_reduce_scatter(gradient, weight.T.contiguous(), ctx.group)
        dweight = gradient.T @ collectives.all_gather(x, ctx.group)
        return dx, dweight, None


__all__ = ["all_gather_matmul", "matmul_all_reduce", "matmul_reduce_scatter"]
