"""Tokens to the ranks that have their experts, and back: expert parallelism in a node.

Rank r has experts r · E / world to (r + 1) · E / world - 1. `expert_dispatch` gives every rank the
tokens of its experts in the order of expert, rank, token and choice; `expert_combine` adds what the
experts made of a token in the order of its choices, in float32: results do not depend on timing.
Every rank reads the choices of all and so knows where each row comes from. Rows are read from the
buffers of peers: a token is staged once, however many experts it has.
"""

# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.checks import require
from wavecast.kernels.distributed import arguments, launches
from wavecast.kernels.distributed.arguments import Routes
from wavecast.kernels.distributed.group import RankCall, RankGroup, rank_operator
from wavecast.kernels.distributed.signals import BLOCKS, exchange_all


@dataclass(frozen=True, slots=True)
class Dispatched:
    """The tokens that a rank got. `tokens`[n, columns] are ordered by expert, `counts`[experts of
    the rank] (int64) are the rows of each. `sources`[n, 3] (int64) has the rank, token and choice
    of each row. `positions`[tokens of the rank, choices, 2] (int64) has the rank and the row of
    what the rank sent; `longest` is the largest n of all ranks, `most` the largest number of tokens
    that a rank sent."""

    tokens: Tensor
    counts: Tensor
    sources: Tensor
    positions: Tensor
    longest: int
    most: int

    @property
    def routes(self) -> Routes:
        return Routes(self.sources, self.positions)


@triton.jit(do_not_specialize=["rank", "epoch"])
def rows_kernel(
    x, sources, buffer, out, own_signals, buffers, signals, rank, epoch, staged, rows, columns,
    x_stride, out_stride,
    BLOCK: tl.constexpr, WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Stage `staged` rows of x, then out[i] = row sources[i, 1] of the buffer of sources[i, 0]."""
    for row in range(tl.program_id(0), staged, tl.num_programs(0)):
        for start in range(0, columns, BLOCK):
            offs = start + tl.arange(0, BLOCK)
            mask = offs < columns
            value = tl.load(x + row.to(tl.int64) * x_stride + offs, mask=mask, other=0)
            tl.store(buffer + row * columns + offs, value, mask=mask)
    exchange_all(signals, own_signals, rank, epoch, WORLD, WAVES, LANES, PROGRAMS)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        source = tl.load(sources + row * 3)
        at = tl.load(sources + row * 3 + 1)
        for start in range(0, columns, BLOCK):
            offs = start + tl.arange(0, BLOCK)
            for peer in tl.static_range(WORLD):
                mask = (offs < columns) & (source == peer)
                value = tl.load(buffers[peer] + at * columns + offs, mask=mask, other=0)
                tl.store(out + row.to(tl.int64) * out_stride + offs, value, mask=mask)


@triton.jit(do_not_specialize=["rank", "epoch"])
def combine_kernel(
    x, positions, weights, buffer, out, own_signals, buffers, signals, rank, epoch, staged, rows,
    columns, x_stride, out_stride,
    CHOICES: tl.constexpr,
    BLOCK: tl.constexpr, WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Stage `staged` rows of x, then out[t] = Σ_c weights[t, c] · row positions[t, c, 1] of the
    buffer of positions[t, c, 0], in float32 in the order of choices."""
    for row in range(tl.program_id(0), staged, tl.num_programs(0)):
        for start in range(0, columns, BLOCK):
            offs = start + tl.arange(0, BLOCK)
            mask = offs < columns
            value = tl.load(x + row.to(tl.int64) * x_stride + offs, mask=mask, other=0)
            tl.store(buffer + row * columns + offs, value, mask=mask)
    exchange_all(signals, own_signals, rank, epoch, WORLD, WAVES, LANES, PROGRAMS)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        for start in range(0, columns, BLOCK):
            offs = start + tl.arange(0, BLOCK)
            acc = tl.zeros((BLOCK,), tl.float32)
            for choice in range(CHOICES):
                spot = positions + (row * CHOICES + choice) * 2
                source, at = tl.load(spot), tl.load(spot + 1)
                weight = tl.load(weights + row * CHOICES + choice).to(tl.float32)
                value = tl.zeros((BLOCK,), tl.float32)
                for peer in tl.static_range(WORLD):
                    mask = (offs < columns) & (source == peer)
                    peer_value = tl.load(buffers[peer] + at * columns + offs, mask=mask, other=0)
                    value += peer_value.to(tl.float32)
                acc += weight * value
            into = out + row.to(tl.int64) * out_stride + offs
            tl.store(into, acc.to(out.dtype.element_ty), mask=offs < columns)


@rank_operator
def expert_dispatch(x: Tensor, choices: Tensor, experts: int, group: RankGroup) -> Dispatched:
    """The tokens of all ranks that chose an expert of this rank.

    x[tokens, columns] of fp32, fp16 or bf16; ranks may have different numbers of tokens, or none.
    choices[tokens, k] (int32 or int64) has the experts of each token, from 0 to `experts` - 1, or
    -1 for none. The choices of all ranks are exchanged first, and the host waits for them. The
    tokens have gradients, which all ranks must ask for.

    Raises ArgumentError, on every rank where the number of experts differs.
    """
    name = "expert_dispatch"
    arguments.dispatched_tokens(x, choices, experts, group.layout)
    world, columns, topk = group.world, x.shape[1], choices.shape[1]
    local_choices = choices.to(torch.int64).cpu()
    is_valid = bool(((local_choices >= -1) & (local_choices < experts)).all())
    group.begin(RankCall(name, columns, x.dtype, f"topk={topk}"))
    sizes = _all_gather(torch.tensor([len(local_choices), experts, int(is_valid)]), x, group).view(
        world, 3
    )
    for peer, (_, theirs, fits) in enumerate(sizes.tolist()):
        require(theirs == experts, name, f"rank {peer} has {theirs} experts, this rank {experts}")
        require(bool(fits), name, f"rank {peer} chose an expert not from -1 to {experts - 1}")
    most = int(sizes[:, 0].max())
    padded = torch.full((most, topk), -1)
    padded[: len(local_choices)] = local_choices
    every = _all_gather(padded.view(-1), x, group).view(world, most, topk) if most else padded[None]
    *tables, longest = _routes(every, sizes[:, 0].tolist(), experts, group)
    sources, counts, positions = (table.to(x.device) for table in tables)
    dispatched = Dispatched(x, counts, sources, positions, longest, most)
    tokens: Any = _Dispatch.apply(x, dispatched, group)
    return replace(dispatched, tokens=tokens)


@rank_operator
def expert_rows(x: Tensor, dispatched: Dispatched, group: RankGroup) -> Tensor:
    """Rows of another matrix of the ranks that sent tokens, where the tokens went: x[tokens of the
    rank, columns] -> [n, columns] in the order of `dispatched.tokens`. fp32, fp16 or bf16. Without
    gradients. Raises ArgumentError."""
    name = "expert_rows"
    arguments.sent_rows(x, dispatched.routes, group.layout)
    columns, most, sources = x.shape[1], dispatched.most, dispatched.sources
    group.begin(RankCall(name, columns, x.dtype))
    rows = torch.empty((len(sources), columns), dtype=x.dtype, device=x.device)
    programs = _programs(max(most, dispatched.longest))
    for first, last in _slices(name, x, columns, max(most, 1), group):
        buffers, epoch = group.launch(x.dtype, 1)
        part, into = x[:, first:last], rows[:, first:last]
        rows_kernel[(programs,)](
            part, sources, buffers[group.rank], into, group.signals[group.rank],
            tuple(buffers), tuple(group.signals), group.rank, epoch, len(x), len(rows),
            last - first, columns, columns, **_constants(part, group, programs),
        )  # fmt: skip
    return rows


@rank_operator
def expert_combine(y: Tensor, weights: Tensor, dispatched: Dispatched, group: RankGroup) -> Tensor:
    """Σ_c weights[t, c] · (what expert c made of token t): y[n, columns] -> [tokens, columns].

    y is in the order of `dispatched.tokens`, of any number of columns, fp32, fp16 or bf16;
    weights[tokens, k] are of floating dtype. Added in float32 in the order of choices and rounded
    once: the result has the same bits every time. Choices of -1 add nothing. y and weights have
    gradients, which all ranks must ask for. Raises ArgumentError.
    """
    return _Combine.apply(y, weights, dispatched, group)  # pyright: ignore[reportReturnType]


def combine_gradients(
    dout: Tensor,
    y: Tensor,
    weights: Tensor,
    sources: Tensor,
    rows: Callable[[Tensor], Tensor],
    combine: Callable[[Tensor, Tensor], Tensor],
) -> tuple[Tensor, Tensor]:
    """The gradients of `expert_combine`, (dy, dweights). `rows(x)` is `expert_rows`, `combine(y,
    weights)` is `expert_combine`, both for the same tokens: dy[row] is the weight of the choice
    times the gradient of its token, and a weight's gradient the product of both rows."""
    choice = sources[:, 2:]
    drows = rows(dout.contiguous()).float()
    factors = rows(weights.float().contiguous()).gather(1, choice)
    products = (drows * y.float()).sum(1, keepdim=True)
    by_choice = products.new_zeros(len(y), weights.shape[1]).scatter(1, choice, products)
    dweights = combine(by_choice, torch.ones_like(weights, dtype=torch.float32))
    return (drows * factors).to(y.dtype), dweights.to(weights.dtype)


def _combine(y: Tensor, weights: Tensor, dispatched: Dispatched, group: RankGroup) -> Tensor:
    name = "expert_combine"
    rows, columns = arguments.combined_tokens(y, weights, dispatched.routes, group.layout)
    topk, longest = weights.shape[1], dispatched.longest
    group.begin(RankCall(name, columns, y.dtype, f"topk={topk}"))
    out = torch.empty((rows, columns), dtype=y.dtype, device=y.device)
    programs = _programs(max(longest, dispatched.most))
    for first, last in _slices(name, y, columns, max(longest, 1), group):
        buffers, epoch = group.launch(y.dtype, 1)
        part, into = y[:, first:last], out[:, first:last]
        combine_kernel[(programs,)](
            part, dispatched.positions, weights.contiguous(), buffers[group.rank], into,
            group.signals[group.rank], tuple(buffers), tuple(group.signals), group.rank, epoch,
            len(y), rows, last - first, columns, columns, CHOICES=topk,
            **_constants(part, group, programs),
        )  # fmt: skip
    return out


class _Dispatch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, dispatched: Any, group: Any) -> Any:
        ctx.dispatched, ctx.group = dispatched, group
        return expert_rows(x, dispatched, group)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        positions = ctx.dispatched.positions
        ones = torch.ones(positions.shape[:2], dtype=torch.float32, device=positions.device)
        return _combine(gradients[0].contiguous(), ones, ctx.dispatched, ctx.group), None, None


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Any, weights: Any, dispatched: Any, group: Any) -> Any:
        ctx.save_for_backward(y, weights)
        ctx.dispatched, ctx.group = dispatched, group
        return _combine(y, weights, dispatched, group)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        y, weights = ctx.saved_tensors
        dispatched, group = ctx.dispatched, ctx.group
        dy, dweights = combine_gradients(
            gradients[0], y, weights, dispatched.sources,
            lambda x: expert_rows(x, dispatched, group),
            lambda y, weights: _combine(y, weights, dispatched, group),
        )  # fmt: skip
        return dy, dweights, None, None


def _routes(
    every: Tensor, tokens: list[int], experts: int, group: RankGroup
) -> tuple[Tensor, Tensor, Tensor, int]:
    """`sources`, `counts`, `positions` and `longest` of `Dispatched`, from the choices of all
    ranks: every[world, most, k], -1 where a rank has fewer tokens."""
    world, most, topk = group.world, every.shape[1], every.shape[2]
    each = experts // world
    flat = every.reshape(-1)
    order = torch.argsort(flat, stable=True)
    order = order[int((flat < 0).sum()) :]
    homes = flat[order] // each
    rows = torch.bincount(homes, minlength=world)
    starts = rows.cumsum(0) - rows
    positions = torch.full((flat.numel(), 2), -1)
    positions[order, 0] = homes
    positions[order, 1] = torch.arange(len(order)) - starts[homes]
    mine = order[homes == group.rank]
    sources = torch.stack([mine // (most * topk or 1), mine // topk % (most or 1), mine % topk], 1)
    counts = torch.bincount(flat[mine] - group.rank * each, minlength=each)
    local_positions = positions.view(world, most, topk, 2)[group.rank, : tokens[group.rank]]
    return sources, counts, local_positions.contiguous(), int(rows.max())


def _all_gather(values: Tensor, x: Tensor, group: RankGroup) -> Tensor:
    """int64 values of every rank, one after another, on the host."""
    mine = values.to(torch.int64).to(x.device)
    table = torch.empty(group.world * len(mine), dtype=torch.int64, device=x.device)
    launches.gather(mine, table, group, len(mine), parts=1)
    return table.cpu()


def _slices(
    name: str, x: Tensor, columns: int, rows: int, group: RankGroup
) -> list[tuple[int, int]]:
    """Columns that a launch stages: `rows` rows of them fit half of a buffer."""
    width = group.half // x.element_size() // rows
    require(width > 0, name, f"{rows} rows; the buffers of the group have {group.half} bytes")
    return [(first, min(first + width, columns)) for first in range(0, columns, width)]


def _programs(rows: int) -> int:
    """The programs of every rank, for at most `rows` rows."""
    return max(1, min(BLOCKS, triton.cdiv(rows, 4)))


def _constants(x: Tensor, group: RankGroup, programs: int) -> dict[str, int]:
    block = min(triton.next_power_of_2(x.shape[1]), launches.block_of(x))
    return {
        "BLOCK": block,
        "PROGRAMS": triton.next_power_of_2(programs),
        **launches.constants(group),
    }


__all__ = ["Dispatched", "combine_gradients", "expert_combine", "expert_dispatch", "expert_rows"]
