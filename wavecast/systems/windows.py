"""Windows and pieces of attention: what kernels compute of the keys that queries see."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wavecast.perfmodel.ops.attention import Attention
from wavecast.systems.architecture import GroupedQueryAttention

_BLOCK: Final = 128
"""Fewest queries that kernels of attention with a window take at once."""


def of_layer(op: Attention, attention: GroupedQueryAttention) -> Attention:
    """The attention of a layer: with its window or pieces, where it has any."""
    if not attention.window:
        return op
    return (in_pieces if attention.chunked else with_window)(op, attention.window)


def with_window(op: Attention, window: int) -> Attention:
    """Attention whose queries, the last ones of `seq_k` tokens, see `window` keys each.

    One query sees the keys of its window. Of a chunk of a prompt that sees more, kernels compute
    blocks of queries, which see the window before them and themselves; there are as many blocks as
    give the pairs of query and key that the window has. Where that saves nothing, they compute all.
    """
    if op.seq_k <= window:
        return op
    if op.seq_q == 1:
        return replace(op, seq_k=window)
    block = block_of(op.seq_q, window)
    before = op.seq_k - op.seq_q
    partial = max(0, min(op.seq_q, window - before))  # queries that see less than the window
    pairs = op.seq_q * window - partial * (2 * (window - before) - partial - 1) / 2
    blocks = max(1, round(pairs / (block * window)))
    block_op = replace(
        op, batch=op.batch * blocks, seq_q=block, seq_k=min(op.seq_k, window + block)
    )
    return block_op if _pairs(block_op) < _pairs(op) else op


def in_pieces(op: Attention, piece: int) -> Attention:
    """Attention whose queries, the last ones of `seq_k` tokens, see the keys of their piece of
    `piece` tokens before and at them (chunked attention of Llama 4).

    A decoding query is anywhere in its piece, and sees half of it. A chunk of a prompt is computed
    piece by piece; one that is shorter than a piece begins anywhere in it.
    """
    if op.seq_k <= piece:
        return op
    pieces = -(-op.seq_q // piece)
    queries = -(-op.seq_q // pieces)
    before = (piece - queries) // 2 if pieces == 1 else 0
    return replace(op, batch=op.batch * pieces, seq_q=queries, seq_k=queries + before)


def _pairs(op: Attention) -> float:
    """Pairs of query and key of a causal operation."""
    return op.batch * op.seq_q * (op.seq_k - (op.seq_q - 1) / 2)


def block_of(queries: int, window: int) -> int:
    """Queries of a block."""
    return min(queries, max(_BLOCK, window // 8))


__all__ = ["block_of", "in_pieces", "of_layer", "with_window"]
