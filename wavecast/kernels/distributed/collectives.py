"""Collectives of a rank: `wavecast.ops.distributed`.

Every rank of a group calls the same functions in the same order, each with its own `RankGroup`, on
the current stream of its GPU. Calls return when they are launched. With `out`, a contiguous tensor
of the result's shape and dtype, that is written; it may be `x` where both have the same shape.
"""

# pyright: reportArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
import triton
from torch import Tensor

from wavecast.errors import MissingFact
from wavecast.kernels.checks import FLOATS, dtype_in, one_of, require, shape_is
from wavecast.kernels.distributed import launches
from wavecast.kernels.distributed.group import (
    MOVED,
    OPS,
    RankCall,
    RankGroup,
    groups,
    rank_operator,
)
from wavecast.kernels.distributed.kernels import reduce_norm_kernel
from wavecast.kernels.distributed.signals import BLOCKS
from wavecast.launch import gpu
from wavecast.perfmodel.ops.collectives import known_of, one_node
from wavecast.perfmodel.ops.collectives.libraries import own_shots

REDUCED: Final = (
    *FLOATS,
    *(torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
)
"""The dtypes that are reduced: floating ones in float32, float64 and integers in 64 bits."""


@rank_operator
def all_reduce(
    x: Tensor, group: RankGroup, shots: int = 0, op: str = "sum", out: Tensor | None = None
) -> Tensor:
    """`x` reduced over all ranks, in the shape and dtype of `x`; all ranks get the same bits.

    `op` is sum, avg, max, min or product. With one shot every rank reads all data of all others;
    with two, each reduces a part and reads the other results. 0 takes what is predicted to be
    faster (`shots_for`). Floating dtypes are reduced in float32 or float64 and rounded once. Raises
    ArgumentError, and MissingFact with 0 shots where no link is known.
    """
    name = "all_reduce"
    _check_reduced(name, x, group, op)
    require(shots in (0, 1, 2), name, f"{shots} shots; 1, 2 or 0")
    shots = shots or shots_for(x.numel() * x.element_size(), group.world)
    out = _result(name, x, x.shape, out)
    group.begin(RankCall(name, x.numel(), x.dtype, f"shots={shots}", op))
    flat, into = x.view(-1), out.view(-1)
    most = group.half // x.element_size()
    for start in range(0, x.numel(), most):
        source, target = flat[start : start + most], into[start : start + most]
        if shots == 1:
            launches.reduce(source, target, group, op)
        else:
            launches.two_shot(source, target, group, op)
    return out


@rank_operator
def reduce_scatter(
    x: Tensor, group: RankGroup, op: str = "sum", out: Tensor | None = None
) -> Tensor:
    """Part `rank` of `x` reduced over all ranks: x[world · m, …] -> [m, …]; `op` as of
    `all_reduce`.

    Raises ArgumentError, also where the first dimension is not a multiple of the ranks.
    """
    name = "reduce_scatter"
    _check_reduced(name, x, group, op)
    rows = _rows_per_rank(name, x, group)
    out = _result(name, x, (rows, *x.shape[1:]), out)
    group.begin(RankCall(name, x.numel(), x.dtype, op=op))
    flat, into = x.view(-1), out.view(-1)
    most = group.half // x.element_size() // group.world
    for start in range(0, len(into), most):
        target = into[start : start + most]
        launches.reduce(flat[start:], target, group, op, group.world, len(into), own_part=True)
    return out


@rank_operator
def all_gather(x: Tensor, group: RankGroup, out: Tensor | None = None) -> Tensor:
    """The `x` of all ranks along the first dimension: [m, …] -> [world · m, …]. Any dtype.

    Raises ArgumentError.
    """
    name = "all_gather"
    _check(name, x, group)
    require(x.dim() > 0, name, "a scalar has no first dimension")
    out = _result(name, x, (group.world * x.shape[0], *x.shape[1:]), out)
    group.begin(RankCall(name, x.numel(), x.dtype))
    launches.gather(x, out, group, x.numel(), parts=1)
    return out


@rank_operator
def all_to_all(x: Tensor, group: RankGroup, out: Tensor | None = None) -> Tensor:
    """Part `rank` of the `x` of every rank: x[world · m, …] -> [world · m, …]. Any dtype.

    Raises ArgumentError, also where the first dimension is not a multiple of the ranks.
    """
    name = "all_to_all"
    _check(name, x, group)
    _rows_per_rank(name, x, group)
    out = _result(name, x, x.shape, out)
    require(out is not x, name, "x cannot be the result")
    group.begin(RankCall(name, x.numel(), x.dtype))
    launches.gather(x, out, group, x.numel() // group.world, parts=group.world)
    return out


@rank_operator
def all_to_all_uneven(
    x: Tensor,
    group: RankGroup,
    rows: Sequence[int],
    expected: Sequence[int] | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """`rows[r]` rows of x to rank r, in order; theirs, in the order of ranks: x[m, …] -> [n, …].

    Any dtype; ranks may pass nothing. The numbers of rows are exchanged first, and the host waits
    for them. Raises ArgumentError, on every rank where `expected` differs from what a peer sends.
    """
    name = "all_to_all_uneven"
    _check(name, x, group, empty=True)
    shape = "x".join(map(str, x.shape)) or "a scalar"
    fits = x.dim() > 0 and len(rows) == group.world and sum(rows) == x.shape[0]
    require(fits, name, f"x is {shape}: rows {list(rows)} do not divide it for {group.world} ranks")
    width = x.shape[1:].numel()
    group.begin(RankCall(name, width, x.dtype))
    receive_rows = [-1] * group.world if expected is None else list(expected)
    mine = torch.tensor([*rows, *receive_rows], dtype=torch.int64).to(x.device)
    table = torch.empty(group.world * len(mine), dtype=torch.int64, device=x.device)
    launches.gather(mine, table, group, len(mine), parts=1)
    sent, receive_table = table.cpu().view(group.world, 2, group.world).unbind(1)
    for peer in range(group.world):
        for rank in range(group.world):
            count, hoped = int(sent[peer, rank]), int(receive_table[rank, peer])
            agree = hoped in (-1, count)
            message = f"rank {peer} sends {count} rows to rank {rank}, which expects {hoped}"
            require(agree, name, message)
    counts = sent[:, group.rank].tolist()
    out = _result(name, x, (sum(counts), *x.shape[1:]), out)
    longest = int(sent.max())
    if longest and width:
        unit = width * launches.raw_elements(x.dtype)
        lengths = torch.tensor([list(rows), counts]) * unit
        starts = lengths.cumsum(1) - lengths
        plan = torch.stack([starts[0], lengths[0], starts[1], lengths[1]]).to(x.device)
        launches.exchange_parts(x, out, plan, longest * unit, group)
    return out


@rank_operator
def broadcast(x: Tensor, group: RankGroup, root: int = 0, out: Tensor | None = None) -> Tensor:
    """The `x` of rank `root`, on all ranks; other ranks give its shape and dtype. Any dtype.

    Raises ArgumentError.
    """
    name = "broadcast"
    _check(name, x, group)
    require(0 <= root < group.world, name, f"rank {root} of {group.world}")
    out = _result(name, x, x.shape, out)
    group.begin(RankCall(name, x.numel(), x.dtype, f"root={root}"))
    launches.gather(x, out, group, x.numel(), parts=int(group.rank == root), root=root)
    return out


@rank_operator
def all_reduce_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor, group: RankGroup, eps: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """(RMSNorm(t) · weight, t) with t = residual + the sum of `x` over all ranks, in one kernel.

    x[…, n], residual of its shape and dtype, weight[n]. Computed in float32. Raises ArgumentError,
    also for more elements than half of a buffer has.
    """
    name = "all_reduce_rms_norm"
    _check(name, x, group)
    dtype_in(name, "x", x, FLOATS)
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
        BLOCK=triton.next_power_of_2(columns), **launches.constants(group),
    )  # fmt: skip
    return out, total


def shots_for(size: int, world: int) -> int:
    """The shots of an all-reduce of `size` bytes that are predicted to be faster, on the usual node
    of the GPU that launches. Raises MissingFact where its links are not known."""
    device = gpu.launching()
    try:
        return own_shots(size, one_node(device, world), device, known_of(device))
    except MissingFact as error:
        raise MissingFact(error.message, hint="state shots=1 or shots=2") from None


def _check(name: str, x: Tensor, group: RankGroup, *, empty: bool = False) -> None:
    dtype_in(name, "x", x, MOVED)
    group.accepts(name, x, empty=empty)


def _check_reduced(name: str, x: Tensor, group: RankGroup, op: str) -> None:
    dtype_in(name, "x", x, REDUCED)
    one_of(name, "op", op, OPS)
    averaged = op != "avg" or x.is_floating_point()
    require(averaged, name, f"no average of {str(x.dtype).removeprefix('torch.')}")
    _check(name, x, group)


def _result(name: str, x: Tensor, shape: Sequence[int], out: Tensor | None) -> Tensor:
    """The tensor to write: a new one, or `out` if it fits."""
    if out is None:
        return torch.empty(tuple(shape), dtype=x.dtype, device=x.device)
    shape_is(name, "out", out, tuple(shape))
    dtype_in(name, "out", out, (x.dtype,))
    require(out.is_contiguous(), name, "out is not contiguous")
    same = out.get_device() == x.get_device()
    require(same, name, f"out is on {out.device}, x on {x.device}")
    return out


def _rows_per_rank(name: str, x: Tensor, group: RankGroup) -> int:
    """The first dimension divided by the ranks."""
    shape = "x".join(map(str, x.shape)) or "a scalar"
    fits = x.dim() > 0 and x.shape[0] % group.world == 0
    require(fits, name, f"x is {shape}: {group.world} ranks do not divide it")
    return x.shape[0] // group.world


__all__ = [
    "RankGroup",
    "all_gather",
    "all_reduce",
    "all_reduce_rms_norm",
    "all_to_all",
    "all_to_all_uneven",
    "broadcast",
    "groups",
    "reduce_scatter",
    "shots_for",
]
