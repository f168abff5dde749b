"""Attention over a sequence that is divided among ranks: `wavecast.ops.distributed`.

Rank r has tokens r · s to (r + 1) · s of queries, keys and values. Keys and values either travel
around the ring of ranks while attention runs on those that are there, or are gathered first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels.attention.attention import attention, attention_backward
from wavecast.kernels.distributed import arguments, collectives, launches
from wavecast.kernels.distributed.group import RankCall, RankGroup, rank_operator


@rank_operator
def shift(x: Tensor, group: RankGroup, by: int = 1) -> Tensor:
    """The x of rank r - `by` on rank r, around the ring. Any dtype. Raises ArgumentError."""
    name = "shift"
    group.accepts(name, x)
    group.begin(RankCall(name, x.numel(), x.dtype, f"by={by % group.world}"))
    out = torch.empty_like(x)
    source = (group.rank - by) % group.world
    launches.gather(x, out, group, x.numel(), parts=1, root=source)
    return out


@rank_operator
def ring_attention(
    q: Tensor, k: Tensor, v: Tensor, group: RankGroup, causal: bool = False,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`attention` of this rank's queries with the keys and values of all ranks, which go around the
    ring on another stream: (out [B, s, Hq, Dv], lse [B, Hq, s] in float32).

    `q`, `k`, `v` are [B, s, heads, width] as of `ops.attention`, s the same on all ranks. `out` has
    gradients, `lse` has not. Partial results are added in float32 in the order of the ring. Raises
    ArgumentError.
    """
    arguments.divided_attention("ring_attention", q, k, v, group.layout, scale)
    return _RingAttention.apply(q, k, v, group, causal, scale)  # pyright: ignore[reportReturnType]


@rank_operator
def all_gather_attention(
    q: Tensor, k: Tensor, v: Tensor, group: RankGroup, causal: bool = False,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The same with keys and values that are gathered first: one attention, more memory."""
    arguments.divided_attention("all_gather_attention", q, k, v, group.layout, scale)
    return _GatheredAttention.apply(q, k, v, group, causal, scale)  # pyright: ignore


@rank_operator
def ring_attention_backward(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, group: RankGroup,
    causal: bool = False, scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients (dq, dk, dv) of `ring_attention`, whose results are `out` and `lse`: those of
    keys and values go around the ring with them, added in float32. Raises ArgumentError."""
    arguments.divided_attention_backward(
        "ring_attention_backward", dout, q, k, v, out, lse, group.layout, scale
    )
    kv = _KeysAndValues(k, v)
    flat = kv.flat
    dq = torch.zeros(q.shape, dtype=torch.float32, device=q.device)
    dflat = torch.zeros(flat.shape, dtype=torch.float32, device=q.device)
    for step in range(group.world):
        source = (group.rank - step) % group.world
        here = flat
        with _OtherStream() as side:
            if step + 1 < group.world:
                flat = shift(here, group)
        if not causal or source <= group.rank:
            keys, values = kv.of(here)
            dquery, dkeys, dvalues, _ = attention_backward(
                dout, None, q, keys, values, out, lse,
                causal=causal and source == group.rank, scale=scale,
            )  # fmt: skip
            dq += dquery
            dflat += _concat_flat(dkeys, dvalues)
        torch.cuda.current_stream().wait_stream(side)
        dflat = shift(dflat, group)  # gradients go along, and home with the last step
    dk, dv = (x.to(k.dtype, copy=True) for x in kv.of(dflat))
    return dq.to(q.dtype), dk, dv


@rank_operator
def all_gather_attention_backward(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, group: RankGroup,
    causal: bool = False, scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients (dq, dk, dv) of `all_gather_attention`, which gathers keys and values again and
    adds their gradients over ranks. Raises ArgumentError."""
    arguments.divided_attention_backward(
        "all_gather_attention_backward", dout, q, k, v, out, lse, group.layout, scale
    )
    keys, values = (_all_tokens(x, group) for x in (k, v))
    kv_length = _visible_tokens(k.shape[1], group, causal)
    dq, dkeys, dvalues, _ = attention_backward(
        dout, None, q, keys[:, :kv_length], values[:, :kv_length], out, lse,
        causal=causal, scale=scale,
    )  # fmt: skip
    dk, dv = (_own_tokens(x, keys.shape[1], group) for x in (dkeys, dvalues))
    return dq, dk, dv


def _ring_forward(
    q: Tensor, k: Tensor, v: Tensor, group: RankGroup, causal: bool, scale: float | None
) -> tuple[Tensor, Tensor]:
    kv = _KeysAndValues(k, v)
    flat, total = kv.flat, None
    for step in range(group.world):
        source = (group.rank - step) % group.world
        here = flat
        with _OtherStream() as side:  # the next ones arrive while these are used
            if step + 1 < group.world:
                flat = shift(here, group)
        if not causal or source <= group.rank:
            keys, values = kv.of(here)
            part = attention(q, keys, values, causal=causal and source == group.rank, scale=scale)
            total = part if total is None else _merge_attention(total, part)
        torch.cuda.current_stream().wait_stream(side)
    assert total is not None
    return total[0].to(q.dtype), total[1]


class _KeysAndValues:
    """Keys and values as one flat tensor, which is what ranks exchange."""

    def __init__(self, k: Tensor, v: Tensor) -> None:
        self.shapes = k.shape, v.shape
        self.flat = _concat_flat(k, v)

    def of(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a flat tensor."""
        keys, values = self.shapes
        k, v = flat.split([keys.numel(), values.numel()])
        return k.view(keys), v.view(values)


def _concat_flat(k: Tensor, v: Tensor) -> Tensor:
    return torch.cat([k.reshape(-1), v.reshape(-1)])


class _RingAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, group: Any, causal: Any, scale: Any) -> Any:
        out, lse = _ring_forward(q, k, v, group, causal, scale)
        return _save(ctx, q, k, v, out, lse, group, causal, scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return _gradients(ctx, ring_attention_backward, gradients)


class _GatheredAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, group: Any, causal: Any, scale: Any) -> Any:
        keys, values = (_all_tokens(x, group) for x in (k, v))
        kv_length = _visible_tokens(k.shape[1], group, causal)
        out, lse = attention(
            q, keys[:, :kv_length], values[:, :kv_length], causal=causal, scale=scale
        )
        return _save(ctx, q, k, v, out, lse, group, causal, scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return _gradients(ctx, all_gather_attention_backward, gradients)


def _save(
    ctx: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, group: Any, causal: Any, scale: Any
) -> tuple[Any, Any]:
    ctx.save_for_backward(q, k, v, out, lse)
    ctx.group, ctx.causal, ctx.scale = group, causal, scale
    ctx.mark_non_differentiable(lse)
    return out, lse


def _gradients(ctx: Any, backward: Callable[..., Any], gradients: Any) -> tuple[Any, ...]:
    dout = gradients[0].contiguous()
    grads = backward(dout, *ctx.saved_tensors, ctx.group, ctx.causal, ctx.scale)
    return *grads, None, None, None


def _visible_tokens(tokens: int, group: RankGroup, causal: bool) -> int:
    """Tokens, from the first on, that this rank's queries may see."""
    return tokens * (group.rank + 1 if causal else group.world)


def _all_tokens(x: Tensor, group: RankGroup) -> Tensor:
    """[B, s, …] of all ranks -> [B, world · s, …]."""
    whole = collectives.all_gather(x.transpose(0, 1).contiguous(), group)
    return whole.transpose(0, 1).contiguous()


def _own_tokens(x: Tensor, tokens: int, group: RankGroup) -> Tensor:
    """This rank's part of [B, tokens, …] added over ranks, of which the first tokens are given."""
    whole = x.new_zeros(tokens, x.shape[0], *x.shape[2:])
    whole[: x.shape[1]] = x.transpose(0, 1)
    return collectives.reduce_scatter(whole, group).transpose(0, 1).contiguous()


def _merge_attention(
    total: tuple[Tensor, Tensor], part: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Attention over the keys of both."""
    lse = torch.logaddexp(total[1], part[1])
    out = sum(
        term[0].float() * torch.exp(term[1] - lse).transpose(1, 2).unsqueeze(-1)
        for term in (total, part)
    )
    return out, lse  # pyright: ignore[reportReturnType]


class _OtherStream:
    """A block on another stream, behind what the current one has to do."""

    def __enter__(self) -> Any:
        self.side = torch.cuda.Stream()
        self.side.wait_stream(torch.cuda.current_stream())
        self.block = torch.cuda.stream(self.side)
        self.block.__enter__()
        return self.side

    def __exit__(self, *error: object) -> None:
        self.block.__exit__(*error)


__all__ = [
    "all_gather_attention",
    "all_gather_attention_backward",
    "ring_attention",
    "ring_attention_backward",
    "shift",
]
