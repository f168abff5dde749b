"""FlexAttention by the library's attention, where its modifiers are what that can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wavecast.errors import UsageError
from wavecast.frameworks.torch.graphs.modifiers import (
    MASK,
    SCORE,
    Modified,
    read_mask,
    read_score,
    trace_modifier,
)
from wavecast.frameworks.torch.substitutes import autocast_operands


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: Any = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    return_lse: bool = False,
) -> Any:
    """`torch.nn.attention.flex_attention.flex_attention` by `attention` or `attention_varlen`.

    `query` is [batch, heads, tokens, width], `key` and `value` [batch, kv heads, keys, width], of
    one dtype of float32, float16 or bfloat16. `score_mod` may be a soft cap, a coefficient per head
    times the distance (ALiBi; without its magnitude only in causal masks), and a `torch.where` of a
    mask and -inf. `block_mask`, a `BlockMask` or a function of (b, h, q, kv), may be a band of
    positions (causal, sliding window), documents whose tokens are neighbours, or several
    (`and_masks`).

    Returns what FlexAttention returns, with `return_lse` (result, logarithms of the sums in
    float32). Raises UsageError with the reason for other modifiers and other shapes.
    """
    if query.dim() != 4 or key.dim() != 4:
        raise UsageError(f"query of {query.dim()} dimensions, not [batch, heads, tokens, width]")
    if query.shape[1] != key.shape[1] and not enable_gqa:
        raise UsageError("heads of queries share those of keys only with enable_gqa=True")
    modifier = Modified()
    if score_mod is not None:
        modifier = modifier.join(read_score(trace_modifier(score_mod, SCORE), query.shape[1]))
    mask = getattr(block_mask, "mask_mod", block_mask)
    if mask is not None:
        modifier = modifier.join(read_mask(trace_modifier(mask, MASK)))
    out, lse = attend(query, key, value, modifier, scale)
    return (out, lse) if return_lse else out


def attend(
    query: Tensor, key: Tensor, value: Tensor, modified: Modified, scale: float | None
) -> tuple[Tensor, Tensor]:
    """(result, lse) of [batch, heads, tokens, width]. Positions of queries and keys both begin at
    0. Raises UsageError for a band that hides what is left of every query."""
    queries, keys = query.shape[2], key.shape[2]
    more = keys - queries  # the operator aligns the last query with the last key
    left = -1 if modified.left is None else modified.left + more
    right = -1 if modified.right is None else modified.right - more
    if (modified.left is not None and left < 0) or (modified.right is not None and right < 0):
        raise UsageError(f"a band of {keys} keys that ends before {queries} queries")
    if modified.signed and right != 0:
        raise UsageError("ALiBi of q - kv that is not causal: take the magnitude")
    if modified.alibi is not None and more:
        raise UsageError(f"ALiBi of {queries} queries and {keys} keys")
    options: dict[str, Any] = {
        "causal": right == 0,
        "scale": scale,
        "left": left,
        "right": right,
        "alibi": None if modified.alibi is None else modified.alibi.to(query.device).contiguous(),
        "soft_cap": modified.soft_cap,
    }
    q, k, v = (tensor.transpose(1, 2) for tensor in autocast_operands(query, key, value))
    if modified.documents is not None:
        return _varlen_attention(q, k, v, modified.documents, options)
    out, lse = torch.ops.wavecast.attention(q, k, v, **options)
    return out.transpose(1, 2), lse


def _varlen_attention(
    q: Tensor, k: Tensor, v: Tensor, documents: Tensor, options: dict[str, Any]
) -> tuple[Tensor, Tensor]:
    """Attention of [batch, tokens, heads, width] in documents, sequences of one packed call."""
    batch, tokens, heads, _ = q.shape
    if k.shape[1] != tokens or documents.shape[-1] != tokens:
        raise UsageError(f"documents of {documents.shape[-1]} tokens, for {tokens} queries")
    rows = documents.expand(batch, tokens)
    begins = torch.ones_like(rows, dtype=torch.bool)
    begins[:, 1:] = rows[:, 1:] != rows[:, :-1]
    if any(
        int(row.unique().numel()) != int(row_begins.sum())
        for row, row_begins in zip(rows, begins, strict=True)
    ):
        raise UsageError("documents whose tokens are not neighbours")
    end = torch.tensor([batch * tokens], device=q.device)
    starts = torch.cat([begins.flatten().nonzero()[:, 0], end]).to(torch.int32)
    longest = int(starts.diff().max())
    flat = (tensor.reshape(batch * tokens, *tensor.shape[2:]) for tensor in (q, k, v))
    out, lse = torch.ops.wavecast.attention_varlen(
        *flat, starts, starts, longest, longest, **options
    )
    out = out.view(batch, tokens, heads, -1).transpose(1, 2)
    return out, lse.view(heads, batch, tokens).transpose(0, 1)


__all__ = ["attend", "flex_attention"]
