"""Launches that the experts' forward and backward passes are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton

from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import Grid, launch
from wavecast.kernels.moe import products, tiling
from wavecast.kernels.moe.activations import Gate
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
    def of(experts: torch.Tensor, count: int, size: float, most: int = 256) -> Order:
        """By expert, in blocks of at most `most` rows that suit the number of slots and weights of
        `size` bytes."""
        block = tiling.block_of(experts.numel(), count, size, gpu.launching(), most)
        rows, owners, starts = moe_align(experts, count, block)
        return Order(experts.contiguous(), rows, owners, starts, block, count)

    @property
    def slots(self) -> int:
        return self.experts.numel()

    @property
    def top_k(self) -> int:
        return self.experts.shape[1]

    def grid(self, n: int) -> Grid:
        """Workgroups of a product with n columns."""
        blocks = self.owners.numel()

        def grid(settings: Settings) -> tuple[int, ...]:
            return (blocks * triton.cdiv(n, settings["BLOCK_N"]),)

        return grid

    def problem(self, n: int, k: int, gate: Gate | None, **flags: Any) -> dict[str, Any]:
        """What the configuration of a product depends on."""
        return {
            "slots": self.slots, "experts": self.count, "block": self.block, "n": n, "k": k,
            **named(gate), **flags,
        }  # fmt: skip


def named(gate: Gate | None) -> dict[str, Any]:
    """What compiled products depend on of an activation, by its names in problems."""
    return {"kind": gate.kind if gate else 0, "gates": gate.order if gate else 0}


def options(gate: Gate | None) -> dict[str, Any]:
    """The same, by its names in kernels."""
    return {name.upper(): value for name, value in named(gate).items()}


def product(
    x: torch.Tensor,
    order: Order,
    w: torch.Tensor,
    *,
    shared: int,
    bias: torch.Tensor | None = None,
    gate: Gate | None = None,
    along: bool = True,
    dtype: torch.dtype | None = None,
    x_scale: torch.Tensor | None = None,
    w_scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """[slots, n] in `dtype` (None: that of x): rows `slot // shared` of x times the expert's w,
    [rows, k] (`along`) or [k, n]. Rows are n, or those of the gates and ups of `gate`. Int8 goes
    with a scale per row of x and of w. Rows of slots without an expert are left as they are."""
    k, n = (w.shape[2], w.shape[1]) if along else (w.shape[1], w.shape[2])
    n = n // 2 if gate else n
    y = torch.empty((order.slots, n), dtype=dtype or x.dtype, device=x.device)
    flags = {"along": along, "bias": bias is not None, "dtype": tiling.FORMATS[x.dtype]}
    launch(
        products.moe_product_kernel,
        order.grid(n),
        (
            *(x, x_scale, order.rows, order.owners, order.starts, w, w_scale, bias, y),
            *(order.slots, shared, x.stride(0), *(gate.numbers if gate else (0.0, 0.0))),
        ),
        products.PRODUCT,
        order.problem(n, k, gate, **flags),
        EXPERTS=order.count,
        N=n,
        K=k,
        ALONG=along,
        XCDS=xcds(gpu.launching()),
        WIDE=checks.wide(x, y),
        **options(gate),
    )
    return y


__all__ = ["Order", "named", "options", "product"]
