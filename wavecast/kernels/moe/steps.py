"""Launches that the experts' forward and backward passes are made of."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import Grid, launch
from wavecast.kernels.moe import products
from wavecast.kernels.moe.align import moe_align
from wavecast.kernels.space import Settings
from wavecast.kernels.tiles import xcds


@dataclass(frozen=True, slots=True)
class Order:
    """Slots in the order of `moe_align`: blocks of `block` rows, `count` experts. `experts` are the
    choices [tokens, top_k], contiguous."""

    experts: torch.Tensor
    rows: torch.Tensor
    owners: torch.Tensor
    starts: torch.Tensor
    block: int
    count: int

    @staticmethod
    def of(experts: torch.Tensor, count: int, dtype: torch.dtype, most: int = 256) -> Order:
        """By expert, in blocks of at most `most` rows that suit the number of slots."""
        block = products.block_of(experts.numel(), count, dtype, gpu.launching(), most)
        rows, owners, starts = moe_align(experts, count, block)
        return Order(experts.contiguous(), rows, owners, starts, block, count)

    @property
    def slots(self) -> int:
        return self.experts.numel()

    @property
    def top_k(self) -> int:
        return self.experts.shape[1]

    @property
    def used(self) -> torch.Tensor:
        """How many rows are used, on the GPU."""
        return self.starts[self.count :]

    def grid(self, n: int) -> Grid:
        """Workgroups of a product with n columns."""
        blocks = self.owners.numel()

        def grid(settings: Settings) -> tuple[int, ...]:
            return (blocks * triton.cdiv(n, settings["BLOCK_N"]),)

        return grid


def product(
    x: torch.Tensor,
    order: Order,
    w: torch.Tensor,
    bias: torch.Tensor | None,
    *,
    shared: int,
    along: bool,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """[slots, n] in `dtype` (None: that of x): rows `slot // shared` of x times the expert's w,
    [n, k] (`along`) or [k, n]. Rows of slots without an expert are left as they are."""
    k, n = (w.shape[2], w.shape[1]) if along else (w.shape[1], w.shape[2])
    y = torch.empty((order.slots, n), dtype=dtype or x.dtype, device=x.device)
    flags = {"along": along, "bias": bias is not None}
    launch(
        products.moe_product_kernel,
        order.grid(n),
        (
            *(x, order.rows, order.owners, order.used, w, w if bias is None else bias, y),
            *(order.slots, shared, x.stride(0)),
        ),
        products.PRODUCT,
        products.problem(order.slots, order.count, order.block, n, k, x.dtype, **flags),
        N=n,
        K=k,
        ALONG=along,
        BIAS=bias is not None,
        XCDS=xcds(gpu.launching()),
        WIDE=checks.wide(x, y),
    )
    return y


def combine(
    x: torch.Tensor, order: Order, weights: torch.Tensor | None, dtype: torch.dtype
) -> torch.Tensor:
    """[tokens, columns] in `dtype`: per token the sum of its slots' rows of x, times `weights`."""
    tokens, columns = order.experts.shape[0], x.shape[1]
    y = torch.empty((tokens, columns), dtype=dtype, device=x.device)

    def grid(settings: Settings) -> tuple[int, ...]:
        down = triton.cdiv(tokens, settings["ROWS"])
        return down, triton.cdiv(columns, settings["BLOCK"])

    launch(
        products.moe_combine_kernel,
        grid,
        (x, x if weights is None else weights, order.experts, y, tokens, columns, order.count),
        products.COMBINE,
        {
            "tokens": tokens,
            "columns": columns,
            "top_k": order.top_k,
            "bytes": x.element_size(),
            "weighted": weights is not None,
        },
        TOP_K=order.top_k,
        WEIGHTED=weights is not None,
        WIDE=checks.wide(x, y),
    )
    return y


__all__ = ["Order", "combine", "product"]
