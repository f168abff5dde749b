"""Attention in plain PyTorch, one sequence of queries and keys at a time."""

from __future__ import annotations

import math

import torch

from wavecast.kernels import random
from wavecast.kernels.attention.call import Call


def forward(call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse) in float32 at least. Raises ArgumentError."""
    call.check(reference=True)
    kind = torch.promote_types(call.q.dtype, torch.float32)
    out = torch.zeros(call.out_shape, dtype=kind, device=call.q.device)
    lse = torch.zeros(call.lse_shape, dtype=kind, device=call.q.device)
    rows = torch.arange(lse.numel(), device=call.q.device).reshape(lse.shape)
    for own, others, places in call.sequences():
        q, k, v = _by_head(call.q[own], call.k[others], call.v[others])
        logits, _ = _logits(q, k, call)
        lse[places] = found = _lse(logits, call)
        p = _kept(_probabilities(logits, found), rows[places], call)
        out[own] = (p @ v).transpose(0, 1)
    return out.to(call.q.dtype), lse


def backward(
    call: Call, dout: torch.Tensor, dlse: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """(dq, dk, dv, dsinks), by the formula, with everything `forward` found computed anew. Raises
    ArgumentError."""
    call.check(reference=True)
    kind = torch.promote_types(call.q.dtype, torch.float32)
    dq, dk, dv = (
        torch.zeros(x.shape, dtype=kind, device=x.device) for x in (call.q, call.k, call.v)
    )
    rows = torch.arange(math.prod(call.lse_shape), device=dq.device).reshape(call.lse_shape)
    sinks = call.options.sinks
    dsinks = torch.zeros(0 if sinks is None else len(sinks), dtype=kind, device=dq.device)
    for own, others, places in call.sequences():
        q, k, v = _by_head(call.q[own], call.k[others], call.v[others])
        given = dout[own].to(kind).transpose(0, 1)
        logits, slope = _logits(q, k, call)
        lse = _lse(logits, call)
        p = _probabilities(logits, lse)
        dp = _kept(given @ v.transpose(1, 2), rows[places], call)
        delta = (p * dp).sum(-1)
        if dlse is not None:
            delta = delta - dlse[places].to(kind)
        ds = p * (dp - delta[..., None]) * slope * call.factor
        dq[own] = (ds @ k).transpose(0, 1)
        dk[others] = _summed(ds.transpose(1, 2) @ q, call.shared)
        dv[others] = _summed(_kept(p, rows[places], call).transpose(1, 2) @ given, call.shared)
        if sinks is not None:
            sunk = torch.exp(sinks.to(kind)[:, None] - _finite(lse))
            dsinks = dsinks - (sunk * delta).sum(-1)
    like = call.q if sinks is None else sinks
    return dq.to(call.q.dtype), dk.to(call.k.dtype), dv.to(call.v.dtype), dsinks.to(like.dtype)


def _by_head(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Heads first, every query head with keys of its own, in float32 at least."""
    kind = torch.promote_types(q.dtype, torch.float32)
    group = q.shape[1] // k.shape[1]
    k, v = (tensor.to(kind).transpose(0, 1).repeat_interleave(group, 0) for tensor in (k, v))
    return q.to(kind).transpose(0, 1), k, v


def _summed(gradient: torch.Tensor, shared: int) -> torch.Tensor:
    """[Hq, T, D] to [T, Hkv, D]."""
    heads, keys, size = gradient.shape
    group = heads // shared
    return gradient.reshape(shared, group, keys, size).sum(1).transpose(0, 1)


def _logits(
    q: torch.Tensor, k: torch.Tensor, call: Call
) -> tuple[torch.Tensor, torch.Tensor | float]:
    """Logits, -inf where nothing is seen, and their derivative by scaled products."""
    options, queries, keys = call.options, q.shape[1], k.shape[1]
    logits = q @ k.transpose(1, 2) * call.factor
    slope: torch.Tensor | float = 1.0
    if options.soft_cap:
        bent = torch.tanh(logits / options.soft_cap)
        logits, slope = bent * options.soft_cap, 1 - bent.square()
    i = torch.arange(queries, device=q.device)[:, None] + (keys - queries)
    j = torch.arange(keys, device=q.device)[None, :]
    if options.alibi is not None:
        logits = logits - options.alibi.to(q.dtype)[:, None, None] * (i - j).abs()
    hidden = torch.zeros(queries, keys, dtype=torch.bool, device=q.device)
    left, right = options.window
    if right >= 0:
        hidden = hidden | (j > i + right)
    if left >= 0:
        hidden = hidden | (j < i - left)
    return logits.masked_fill(hidden, float("-inf")), slope


def _lse(logits: torch.Tensor, call: Call) -> torch.Tensor:
    if call.options.sinks is not None:
        column = call.options.sinks[:, None, None].expand(*logits.shape[:2], 1)
        logits = torch.cat([logits, column.to(logits.dtype)], -1)
    return torch.logsumexp(logits, -1)


def _probabilities(logits: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """Rows that see nothing have none."""
    return torch.exp(logits - _finite(lse)[..., None])


def _finite(lse: torch.Tensor) -> torch.Tensor:
    """Zero for rows that see nothing."""
    return lse.masked_fill(lse == float("-inf"), 0.0)


def _kept(values: torch.Tensor, rows: torch.Tensor, call: Call) -> torch.Tensor:
    """What dropout leaves of values in `rows` of the lse of the whole call."""
    options = call.options
    if not options.dropout:
        return values
    j = torch.arange(values.shape[-1], device=values.device)
    counter = ((rows % 2**32) << 32)[..., None] | j
    keep = random.philox(options.seed, counter)[0] >= options.threshold
    return torch.where(keep, values, 0.0) / (1.0 - options.dropout)


__all__ = ["backward", "forward"]
