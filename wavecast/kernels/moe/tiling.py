"""Products of rows sorted by expert, in any format: their order, blocks, tiles, and launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
import triton
from torch import Tensor

from wavecast.kernels import checks, choice, tiles
from wavecast.kernels.describe import Axes, Device, KernelSpec, Problem, Settings
from wavecast.kernels.moe.activations import Gate
from wavecast.kernels.moe.align import blocks, moe_align
from wavecast.launch import gpu
from wavecast.perfmodel.ranking import BlockedRows, GroupedProduct, GroupedTile

LARGEST_BYTE_BLOCK: Final = 128
"""Rows of a block of products of bytes: with more, one workgroup fills a compute unit."""


def block_of(slots: int, count: int, size: float, device: Device, most: int = 256) -> int:
    """Rows of a block: those with which reading an element of weights, of `size` bytes, once per
    block and multiplying it takes least, if as many blocks are needed as can be."""
    mfma = device.capabilities.matrix_unit == "mfma"
    most = min(most, (128 if mfma else 32) if size == 4 else (256 if mfma else 128))

    def seconds(rows: int) -> float:
        blocked_rows = BlockedRows(blocks=blocks(slots, count, rows), rows=rows, weight_size=size)
        return blocked_rows.seconds(device)

    return min((rows for rows in (16, 32, 64, 128, 256) if rows <= most), key=seconds)


def axes(problem: Problem, device: Device, size: float = 2) -> Axes:
    """What products of every format have in common. Bytes are multiplied as fast as the LDS gives
    them to waves of 64x64 results, so that more waves to a tile wait for it."""
    rows, amd = problem["block"], device.vendor == "amd"
    many = (4,) if size == 1 and device.capabilities.matrix_unit == "mfma" else (4, 8)
    return {
        "BLOCK_M": (rows,),
        "BLOCK_N": (32, 64, 128, 256) if rows >= 64 else (32, 64, 128),
        "GROUP": (8,),
        "num_warps": many if rows >= 64 else (2, 4) if amd else (4,),
        "num_stages": (2,) if amd else (2, 3),
        **matrix_options(device),
    }


def matrix_options(device: Device) -> Axes:
    """How AMD's matrix instructions are used."""
    if device.capabilities.matrix_unit != "mfma":
        return {}
    # Operands of two instructions are read from the LDS at once.
    further = {"kpack": (2,)} if device.capabilities.matrix_half_k else {}
    return {"matrix_instr_nonkdim": (16,), **further}


def columns(problem: Problem, settings: Settings) -> int:
    """Rows of weights that a tile takes: gates and ups of an activation."""
    return settings["BLOCK_N"] * (2 if problem["gates"] else 1)


def fits(settings: Settings, device: Device, columns: int, size: float) -> bool:
    """Whether a tile with `columns` columns of weights of `size` bytes has room."""
    return _tile(settings, columns, size).resident(device) > 0


def _tile(settings: Settings, columns: int, size: float) -> GroupedTile:
    return GroupedTile(
        tile_m=settings["BLOCK_M"],
        tile_n=columns,
        tile_k=settings["BLOCK_K"],
        element_size=size,
        num_warps=settings["num_warps"],
        num_stages=settings["num_stages"],
    )


def demand(
    problem: Problem, settings: Settings, size: float, *, dtype: str, operand_size: float = 0.0,
    weight: str = "", scaling: str = "",
) -> GroupedProduct:  # fmt: skip
    """A grouped product, the rows spread evenly over the experts that can be hit, of weights of
    `size` bytes an element and operands of `operand_size` (0: the same)."""
    slots, across = problem["slots"], columns(problem, settings)
    hit = min(problem["experts"], slots)
    n = problem["n"] * (2 if problem["gates"] else 1)
    groups = tuple(slots // hit + (number < slots % hit) for number in range(hit))
    product = tiles.product(
        problem, settings, dtype, m=slots, n=n, tile_n=across, groups=groups, weight=weight,
        scaling=scaling,
    )  # fmt: skip
    return GroupedProduct(
        product=product,
        tile=_tile(settings, across, operand_size or size),
        weight_bytes=hit * n * problem["k"] * size,
        bytes_only=max(operand_size, size) == 1,
    )


def kernel(
    function: Any, axes: Callable[[Problem, Device], Axes],
    fits: Callable[[Problem, Settings, Device], bool],
    demand: Callable[[Problem, Settings, Device], GroupedProduct], contiguous: tuple[str, ...],
) -> KernelSpec:  # fmt: skip
    """A kernel over the tiles of a grouped product, whose operands `contiguous` are contiguous."""

    def grid(problem: Problem, settings: Settings) -> tuple[int]:
        down = blocks(problem["slots"], problem["experts"], problem["block"])
        return (down * triton.cdiv(problem["n"], settings["BLOCK_N"]),)

    return KernelSpec(
        function=function, grid=grid, axes=axes, fits=fits, demand=demand, contiguous=contiguous,
        rounded=("slots",),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Order:
    """Slots in the order of `moe_align`: blocks of `block` rows, `count` experts. `experts` are the
    choices [tokens, top_k], contiguous."""

    experts: Tensor
    rows: Tensor
    owners: Tensor
    starts: Tensor
    block: int
    count: int

    @staticmethod
    def of(experts: Tensor, count: int, size: float, most: int = 256) -> Order:
        """By expert, in blocks of at most `most` rows that suit the number of slots and weights of
        `size` bytes."""
        block = block_of(experts.numel(), count, size, gpu.launching(), most)
        rows, owners, starts = moe_align(experts, count, block)
        return Order(experts.contiguous(), rows, owners, starts, block, count)

    @property
    def slots(self) -> int:
        return self.experts.numel()

    @property
    def top_k(self) -> int:
        return self.experts.shape[1]


def gate_entries(gate: Gate | None) -> dict[str, Any]:
    """What compiled kernels depend on of an activation, by its names in problems."""
    return {"kind": gate.kind if gate else 0, "gates": gate.order if gate else 0}


def launch(
    spec: KernelSpec, x: Tensor, order: Order, n: int, k: int, gate: Gate | None,
    dtype: torch.dtype | None, flags: Mapping[str, Any], **arguments: Any,
) -> Tensor:  # fmt: skip
    """[slots, n] in `dtype` (None: that of x), the product of rows of x with k elements and the
    weights among the `arguments`. Its configuration depends on sizes and on `flags`."""
    y = torch.empty((order.slots, n), dtype=dtype or x.dtype, device=x.device)
    sizes = {"slots": order.slots, "experts": order.count, "block": order.block, "n": n, "k": k}
    alpha, limit = gate.numbers if gate else (0.0, 0.0)
    choice.run(
        spec, {**sizes, **gate_entries(gate), **flags}, **arguments, x=x, y=y, order=order.rows,
        owners=order.owners, starts=order.starts, alpha=alpha, limit=limit, WIDE=checks.wide(x, y),
    )  # fmt: skip
    return y
