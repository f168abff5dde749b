"""The order of rows that products of experts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from wavecast.kernels import gpu
from wavecast.kernels.moe import tiling
from wavecast.kernels.moe.activations import Gate
from wavecast.kernels.moe.align import moe_align


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

    def problem(self, n: int, k: int, gate: Gate | None, **flags: Any) -> dict[str, Any]:
        """What the configuration of a product with n columns depends on."""
        shape = {"slots": self.slots, "experts": self.count, "block": self.block, "n": n, "k": k}
        return {**shape, **named(gate), **flags}

    def arguments(self, n: int, k: int, gate: Gate | None) -> dict[str, Any]:
        """Arguments that the kernels of all products have."""
        alpha, limit = gate.numbers if gate else (0.0, 0.0)
        tensors = {"order": self.rows, "owners": self.owners, "starts": self.starts}
        sizes = {"EXPERTS": self.count, "N": n, "K": k}
        return {**tensors, **sizes, "alpha": alpha, "limit": limit, **constants(gate)}


def named(gate: Gate | None) -> dict[str, Any]:
    """What compiled kernels depend on of an activation, by its names in problems."""
    return {"kind": gate.kind if gate else 0, "gates": gate.order if gate else 0}


def constants(gate: Gate | None) -> dict[str, Any]:
    """The same, by its names in kernels."""
    return {name.upper(): value for name, value in named(gate).items()}
