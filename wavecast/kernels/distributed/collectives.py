"""Collectives of a rank: `wavecast.ops.distributed`.

Every rank of a group calls the same functions in the same order, each with its own `RankGroup`, on
the current stream of its GPU. Calls return when they are launched.
"""

# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Final

import torch
import triton
from torch import Tensor

from wavecast.kernels import gpu
from wavecast.kernels.checks import FLOATS, dtype_in, require, shape_is
from wavecast.kernels.distributed.group import WAVES, RankCall, RankGroup, groups
from wavecast.kernels.distributed.kernels import (
    gather_kernel,
    reduce_kernel,
    reduce_norm_kernel,
    two_shot_kernel,
)
from wavecast.kernels.distributed.signals import BLOCKS
from wavecast.model.ops.collectives import known_of, one_node
from wavecast.model.ops.collectives.algorithms import direct_reads

_LOADED: Final = 16
"""Bytes a lane loads at once."""


def all_reduce(x: Tensor, group: RankGroup, shots: int = 0) -> Tensor:
    """The sum of `x` over all ranks, in the shape and dtype of `x`; all ranks get the same bits.

    With one shot every rank reads all data of all others; with two, each adds a part and reads the
    other sums. 0 takes what is predicted to be faster (`shots_for`). Sums are in float32 and
    rounded once. Raises ArgumentError, and MissingFact with 0 shots where no link is known.
    """
    name = "all_reduce"
    _check(name, x, group)
    require(shots in (0, 1, 2), name, f"{shots} shots; 1, 2 or 0")
    shots = shots or shots_for(x.numel() * x.element_size(), group.world)
    group.begin(RankCall(name, x.numel(), x.dtype, shots))
    out = torch.empty_like(x)
    flat, into = x.view(-1), out.view(-1)
    most = group.half // x.element_size()
    for start in range(0, x.numel(), most):
        source, target = flat[start : start + most], into[start : start + most]
        if shots == 1:
            _reduce(source, target, group, len(target), 1, len(target), 0)
        else:
            _two_shot(source, target, group)
    return out


def reduce_scatter(x: Tensor, group: RankGroup) -> Tensor:
    """Part `rank` of the sum of `x` over all ranks: x[world · m, …] -> [m, …].

    Raises ArgumentError, also where the first dimension is not a multiple of the ranks.
    """
    name = "reduce_scatter"
    _check(name, x, group)
    rows = _divided(name, x, group)
    group.begin(RankCall(name, x.numel(), x.dtype))
    out = torch.empty((rows, *x.shape[1:]), dtype=x.dtype, device=x.device)
    flat, into = x.view(-1), out.view(-1)
    most = group.half // x.element_size() // group.world
    for start in range(0, len(into), most):
        target = into[start : start + most]
        _reduce(
            flat[start:], target, group, len(target), group.world, len(into),
            group.rank * len(target),
        )  # fmt: skip
    return out


def all_gather(x: Tensor, group: RankGroup) -> Tensor:
    """The `x` of all ranks along the first dimension: [m, …] -> [world · m, …].

    Raises ArgumentError.
    """
    name = "all_gather"
    _check(name, x, group)
    require(x.dim() > 0, name, "a scalar has no first dimension")
    group.begin(RankCall(name, x.numel(), x.dtype))
    shape = (group.world * x.shape[0], *x.shape[1:])
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    most = group.half // x.element_size()
    _gather(x, out, group, x.numel(), most, parts=1)
    return out


def all_to_all(x: Tensor, group: RankGroup) -> Tensor:
    """Part `rank` of the `x` of every rank: x[world · m, …] -> [world · m, …].

    Raises ArgumentError, also where the first dimension is not a multiple of the ranks.
    """
    name = "all_to_all"
    _check(name, x, group)
    _divided(name, x, group)
    group.begin(RankCall(name, x.numel(), x.dtype))
    out = torch.empty_like(x)
    most = group.half // x.element_size() // group.world
    _gather(x, out, group, x.numel() // group.world, most, parts=group.world)
    return out


def broadcast(x: Tensor, group: RankGroup, root: int = 0) -> Tensor:
    """The `x` of rank `root`, on all ranks; other ranks give its shape and dtype.

    Raises ArgumentError.
    """
    name = "broadcast"
    _check(name, x, group)
    require(0 <= root < group.world, name, f"rank {root} of {group.world}")
    group.begin(RankCall(name, x.numel(), x.dtype, root))
    out = torch.empty_like(x)
    most = group.half // x.element_size()
    _gather(x, out, group, x.numel(), most, parts=int(group.rank == root), root=root)
    return out


def all_reduce_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor, group: RankGroup, eps: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """(RMSNorm(t) · weight, t) with t = residual + the sum of `x` over all ranks, in one kernel.

    x[…, n], residual of its shape and dtype, weight[n]. Computed in float32. Raises ArgumentError,
    also for more elements than half of a buffer has.
    """
    name = "all_reduce_rms_norm"
    _check(name, x, group)
    shape_is(name, "residual", residual, tuple(x.shape))
    shape_is(name, "weight", weight, (x.shape[-1],))
    dtype_in(name, "residual", residual, (x.dtype,))
    dtype_in(name, "weight", weight, FLOATS)
    most = group.half // x.element_size()
    require(x.numel() <= most, name, f"{x.numel()} elements; the buffers of the group have {most}")
    require(residual.is_contiguous(), name, "residual is not contiguous")
    group.begin(RankCall(name, x.numel(), x.dtype))
    out, total = torch.empty_like(x), torch.empty_like(x)
    rows, columns = x.numel() // x.shape[-1], x.shape[-1]
    sources, epoch = group.launch(x.dtype, 1)
    reduce_norm_kernel[(min(BLOCKS, rows),)](
        x, residual, weight, sources[group.rank], out, total, group.signals[group.rank],
        tuple(sources), tuple(group.signals), group.rank, epoch, rows, columns, float(eps),
        BLOCK=triton.next_power_of_2(columns), **_constants(group),
    )  # fmt: skip
    return out, total


def shots_for(size: int, world: int) -> int:
    """The shots of an all-reduce of `size` bytes that are predicted to be faster, on the usual node
    of the GPU that launches. Raises MissingFact where its links are not known."""
    device = gpu.launching()
    known, where = known_of(device), one_node(device, world)

    def seconds(shots: int) -> float:
        return direct_reads(size, where, known, shots=shots, blocks=BLOCKS).seconds

    return min((1, 2), key=seconds)


def _check(name: str, x: Tensor, group: RankGroup) -> None:
    dtype_in(name, "x", x, FLOATS)
    require(x.numel() > 0, name, "x is empty")
    require(x.is_contiguous(), name, "x is not contiguous")
    here = group.buffers[group.rank].get_device()
    require(x.get_device() == here, name, f"x is on {x.device}, rank {group.rank} on cuda:{here}")


def _divided(name: str, x: Tensor, group: RankGroup) -> int:
    """The first dimension divided by the ranks."""
    shape = "x".join(map(str, x.shape)) or "a scalar"
    fits = x.dim() > 0 and x.shape[0] % group.world == 0
    require(fits, name, f"x is {shape}: {group.world} ranks do not divide it")
    return x.shape[0] // group.world


def _constants(group: RankGroup) -> dict[str, int]:
    lanes = gpu.launching().wave_lanes
    return {"WORLD": group.world, "WAVES": WAVES, "LANES": lanes, "num_warps": WAVES}


def _block(x: Tensor) -> int:
    """Elements a program loads at once."""
    return WAVES * gpu.launching().wave_lanes * _LOADED // x.element_size()


def _grid(count: int, block: int) -> tuple[int]:
    return (max(1, min(BLOCKS, triton.cdiv(count, block))),)


def _reduce(
    x: Tensor, out: Tensor, group: RankGroup, count: int, parts: int, x_stride: int, offset: int
) -> None:
    block = _block(x)
    sources, epoch = group.launch(x.dtype, 1)
    reduce_kernel[_grid(count, block)](
        x, sources[group.rank], out, group.signals[group.rank], tuple(sources),
        tuple(group.signals), group.rank, epoch, count, parts, x_stride, offset,
        BLOCK=block, **_constants(group),
    )  # fmt: skip


def _two_shot(x: Tensor, out: Tensor, group: RankGroup) -> None:
    aligned = _LOADED // x.element_size()
    part = triton.cdiv(triton.cdiv(len(x), group.world), aligned) * aligned
    block = _block(x)
    sources, epoch = group.launch(x.dtype, 2)
    two_shot_kernel[_grid(part, block)](
        x, sources[group.rank], out, group.signals[group.rank], tuple(sources),
        tuple(group.signals), group.rank, epoch, len(x), part,
        BLOCK=block, **_constants(group),
    )  # fmt: skip


def _gather(
    x: Tensor, out: Tensor, group: RankGroup, count: int, most: int, parts: int, root: int = -1
) -> None:
    """`count` elements of every source, at most `most` per launch; of one source with a root."""
    block = _block(x)
    flat, into = x.view(-1), out.view(-1)
    scattered = parts == group.world
    for start in range(0, count, most):
        size = min(most, count - start)
        sources, epoch = group.launch(x.dtype, 1)
        read = tuple(sources) if root < 0 else (sources[root],)
        gather_kernel[_grid(size, block)](
            flat[start:], sources[group.rank], into[start:], group.signals[group.rank], read,
            tuple(group.signals), group.rank, epoch, size, parts, count,
            group.rank * size if scattered else 0, count,
            BLOCK=block, SOURCES=len(read), **_constants(group),
        )  # fmt: skip


__all__ = [
    "RankGroup",
    "all_gather",
    "all_reduce",
    "all_reduce_rms_norm",
    "all_to_all",
    "broadcast",
    "groups",
    "reduce_scatter",
    "shots_for",
]
