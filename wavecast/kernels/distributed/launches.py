"""Launches of the kernels of collectives: sizes, grids, and the buffers of a `RankGroup`."""

# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.distributed.group import WAVES, RankGroup
from wavecast.kernels.distributed.kernels import (
    gather_kernel,
    parts_kernel,
    reduce_kernel,
    two_shot_kernel,
)
from wavecast.kernels.distributed.signals import BLOCKS
from wavecast.launch import gpu

LOADED: Final = 16
"""Bytes a lane loads at once."""
_RAW: Final = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""What elements of a size are copied as."""


def raw(x: Tensor) -> Tensor:
    """The elements of a contiguous tensor, flat, as integers of their size; complex128 as pairs."""
    flat = x.view(-1)
    return flat.view(_RAW[min(flat.element_size(), 8)])


def raw_elements(dtype: torch.dtype) -> int:
    """Elements of `raw` per element."""
    return max(1, dtype.itemsize // 8)


def accumulator(dtype: torch.dtype) -> tl.dtype:
    """What elements are reduced as: float32, or what represents all their values."""
    if not dtype.is_floating_point:
        return tl.int64
    return tl.float64 if dtype is torch.float64 else tl.float32


def constants(group: RankGroup) -> dict[str, int]:
    """The constants that all kernels have."""
    lanes = gpu.launching().wave_lanes
    return {"WORLD": group.world, "WAVES": WAVES, "LANES": lanes, "num_warps": WAVES}


def block_of(x: Tensor) -> int:
    """Elements a program loads at once."""
    return WAVES * gpu.launching().wave_lanes * LOADED // x.element_size()


def grid_of(count: int, block: int) -> tuple[int]:
    """The programs for `count` elements."""
    return (max(1, min(BLOCKS, triton.cdiv(count, block))),)


def reduce(
    x: Tensor,
    out: Tensor,
    group: RankGroup,
    op: str,
    parts: int = 1,
    x_stride: int = 0,
    *,
    own_part: bool = False,
) -> None:
    """out = part 0 of x reduced over ranks, or, with `own_part`, part `rank`; parts of x are
    `x_stride` elements apart. All flat, and `parts` times out fits a half of a buffer."""
    block, count = block_of(x), len(out)
    sources, epoch = group.launch(x.dtype, 1)
    reduce_kernel[grid_of(count, block)](
        x, sources[group.rank], out, group.signals[group.rank], tuple(sources),
        tuple(group.signals), group.rank, epoch, count, parts, x_stride,
        group.rank * count if own_part else 0,
        ACC=accumulator(x.dtype), OP=op, BLOCK=block, **constants(group),
    )  # fmt: skip


def two_shot(x: Tensor, out: Tensor, group: RankGroup, op: str) -> None:
    """out = x reduced over ranks, each of which reduces a part."""
    aligned = max(1, LOADED // x.element_size())
    part = triton.cdiv(triton.cdiv(len(x), group.world), aligned) * aligned
    block = block_of(x)
    sources, epoch = group.launch(x.dtype, 2)
    two_shot_kernel[grid_of(part, block)](
        x, sources[group.rank], out, group.signals[group.rank], tuple(sources),
        tuple(group.signals), group.rank, epoch, len(x), part,
        ACC=accumulator(x.dtype), OP=op, BLOCK=block, **constants(group),
    )  # fmt: skip


def gather(
    x: Tensor, out: Tensor, group: RankGroup, count: int, parts: int, root: int = -1
) -> None:
    """`count` elements of every rank, one after another to out; of one rank with a `root`. With as
    many `parts` as ranks, every rank gives each of the others another part. The root stores nothing
    to an out that is x."""
    flat, into = raw(x), raw(out)
    count *= raw_elements(x.dtype)
    block = block_of(flat)
    scattered, is_there = parts == group.world, root == group.rank and into.is_set_to(flat)
    most = group.half // flat.element_size() // (parts if scattered else 1)
    for start in range(0, count, most):
        size = min(most, count - start)
        sources, epoch = group.launch(flat.dtype, 1)
        read = tuple(sources) if root < 0 else (sources[root],)
        gather_kernel[grid_of(size, block)](
            flat[start:], sources[group.rank], into[start:], group.signals[group.rank], read,
            tuple(group.signals), group.rank, epoch, size,
            0 if is_there else size, parts, count, group.rank * size if scattered else 0,
            count, BLOCK=block, SOURCES=len(read), **constants(group),
        )  # fmt: skip


def exchange_parts(x: Tensor, out: Tensor, plan: Tensor, longest: int, group: RankGroup) -> None:
    """Parts of x to all ranks and theirs to out, as `parts_kernel` reads `plan`, which counts
    elements of `raw` tensors; `longest` is the longest part of any two ranks."""
    flat, into = raw(x), raw(out)
    block = block_of(flat)
    most = group.half // flat.element_size() // group.world
    for start in range(0, longest, most):
        slot = min(most, longest - start)
        sources, epoch = group.launch(flat.dtype, 1)
        parts_kernel[grid_of(slot, block)](
            flat, plan, sources[group.rank], into, group.signals[group.rank], tuple(sources),
            tuple(group.signals), group.rank, epoch, start, slot,
            BLOCK=block, **constants(group),
        )  # fmt: skip


__all__ = [
    "accumulator",
    "block_of",
    "constants",
    "exchange_parts",
    "gather",
    "grid_of",
    "raw",
    "raw_elements",
    "reduce",
    "two_shot",
]
