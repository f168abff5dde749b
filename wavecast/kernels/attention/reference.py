"""Attention in plain PyTorch, one sequence of queries and keys at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from wavecast.kernels import random


@dataclass(frozen=True, slots=True)
class Options:
    """What all sequences of a call have in common."""

    causal: bool
    scale: float
    left: int
    right: int
    soft_cap: float
    dropout: float
    seed: int


def forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    sinks: torch.Tensor | None,
    alibi: torch.Tensor | None,
    rows: torch.Tensor,
    options: Options,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out [S, Hq, Dv], lse [Hq, S]) of q [S, Hq, D], k [T, Hkv, D], v [T, Hkv, Dv]; `rows` [Hq, S]
    are places in the lse of the whole call, which dropout counts by."""
    q, k, v = _by_head(q, k, v)
    logits, _ = _logits(q, k, alibi, options)
    lse = _lse(logits, sinks)
    p = _kept(_probabilities(logits, lse), rows, options)
    return (p @ v).transpose(0, 1), lse


def backward(
    dout: torch.Tensor,
    dlse: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    sinks: torch.Tensor | None,
    alibi: torch.Tensor | None,
    rows: torch.Tensor,
    options: Options,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """(dq, dk, dv, dsinks), by the formula, with everything `forward` found computed anew."""
    shared = k.shape[1]
    q, k, v = _by_head(q, k, v)
    dout = dout.transpose(0, 1)
    logits, slope = _logits(q, k, alibi, options)
    lse = _lse(logits, sinks)
    p = _probabilities(logits, lse)
    dp = _kept(dout @ v.transpose(1, 2), rows, options)
    dv = _kept(p, rows, options).transpose(1, 2) @ dout
    delta = (p * dp).sum(-1) - dlse
    ds = p * (dp - delta[..., None]) * slope
    dq, dk = ds @ k * options.scale, ds.transpose(1, 2) @ q * options.scale
    dsinks = None
    if sinks is not None:
        dsinks = -(torch.exp(sinks[:, None] - lse) * delta).sum(-1)
    return dq.transpose(0, 1), _summed(dk, shared), _summed(dv, shared), dsinks


def _by_head(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    group = q.shape[1] // k.shape[1]
    k, v = (tensor.transpose(0, 1).repeat_interleave(group, 0) for tensor in (k, v))
    return q.transpose(0, 1), k, v


def _summed(gradient: torch.Tensor, shared: int) -> torch.Tensor:
    """[Hq, T, D] to [T, Hkv, D]."""
    heads, keys, size = gradient.shape
    group = heads // shared
    return gradient.reshape(shared, group, keys, size).sum(1).transpose(0, 1)


def _logits(
    q: torch.Tensor, k: torch.Tensor, alibi: torch.Tensor | None, options: Options
) -> tuple[torch.Tensor, torch.Tensor | float]:
    """Logits, -inf where nothing is seen, and their derivative by scaled products."""
    queries, keys = q.shape[1], k.shape[1]
    logits = q @ k.transpose(1, 2) * options.scale
    slope: torch.Tensor | float = 1.0
    if options.soft_cap:
        bent = torch.tanh(logits / options.soft_cap)
        logits, slope = bent * options.soft_cap, 1 - bent.square()
    i = torch.arange(queries, device=q.device)[:, None] + (keys - queries)
    j = torch.arange(keys, device=q.device)[None, :]
    if alibi is not None:
        logits = logits - alibi[:, None, None] * (i - j).abs()
    hidden = torch.zeros(queries, keys, dtype=torch.bool, device=q.device)
    if options.causal:
        hidden = hidden | (j > i)
    if options.right >= 0:
        hidden = hidden | (j > i + options.right)
    if options.left >= 0:
        hidden = hidden | (j < i - options.left)
    return logits.masked_fill(hidden, float("-inf")), slope


def _lse(logits: torch.Tensor, sinks: torch.Tensor | None) -> torch.Tensor:
    if sinks is not None:
        column = sinks[:, None, None].expand(*logits.shape[:2], 1)
        logits = torch.cat([logits, column.to(logits.dtype)], -1)
    return torch.logsumexp(logits, -1)


def _probabilities(logits: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """Rows that see nothing have none."""
    return torch.exp(logits - lse.masked_fill(lse == float("-inf"), 0.0)[..., None])


def _kept(values: torch.Tensor, rows: torch.Tensor, options: Options) -> torch.Tensor:
    if not options.dropout:
        return values
    j = torch.arange(values.shape[-1], device=values.device)
    counter = ((rows % 2**32) << 32)[..., None] | j
    word = random.philox(options.seed, counter)[0]
    keep = word >= threshold(options.dropout)
    return torch.where(keep, values, 0.0) / (1.0 - options.dropout)


def threshold(dropout: float) -> int:
    """Of 32-bit words: those below are dropped."""
    return min(2**32 - 1, int(dropout * 2**32))


__all__ = ["Options", "backward", "forward", "threshold"]
