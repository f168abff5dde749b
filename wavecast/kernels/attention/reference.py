"""Attention in plain PyTorch, one sequence of queries and keys at a time."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels import random
from wavecast.kernels.attention.call import Call
from wavecast.kernels.references import wide_dtype, widened


def forward(call: Call) -> tuple[Tensor, Tensor]:
    """(out, lse) in float32 at least."""
    dtype = wide_dtype(call.q)
    out = torch.zeros(call.out_shape, dtype=dtype, device=call.q.device)
    lse = torch.zeros(call.lse_shape, dtype=dtype, device=call.q.device)
    rows = torch.arange(lse.numel(), device=call.q.device).reshape(lse.shape)
    for of_q, of_k, of_lse in call.sequences():
        q, k, v = _by_head(call.q[of_q], call.k[of_k], call.v[of_k])
        logits, _ = _logits(q, k, call, of_q)
        lse[of_lse] = sequence_lse = _lse(logits, call)
        p = _dropout(_probabilities(logits, sequence_lse), rows[of_lse], call)
        out[of_q] = (p @ v).transpose(0, 1)
    return out.to(call.q.dtype), lse


def backward(
    call: Call, dout: Tensor, dlse: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(dq, dk, dv, dsinks), by the formula, with all results of `forward` computed again."""
    dtype = wide_dtype(call.q)
    dq, dk, dv = (
        torch.zeros(x.shape, dtype=dtype, device=x.device) for x in (call.q, call.k, call.v)
    )
    rows = torch.arange(math.prod(call.lse_shape), device=dq.device).reshape(call.lse_shape)
    sinks = call.options.sinks
    dsinks = torch.zeros(0 if sinks is None else len(sinks), dtype=dtype, device=dq.device)
    for of_q, of_k, of_lse in call.sequences():
        q, k, v = _by_head(call.q[of_q], call.k[of_k], call.v[of_k])
        grad = dout[of_q].to(dtype).transpose(0, 1)
        logits, dcap = _logits(q, k, call, of_q)
        lse = _lse(logits, call)
        p = _probabilities(logits, lse)
        dp = _dropout(grad @ v.transpose(1, 2), rows[of_lse], call)
        delta = (p * dp).sum(-1)
        if dlse is not None:
            delta = delta - dlse[of_lse].to(dtype)
        ds = p * (dp - delta[..., None]) * dcap * call.scale
        dq[of_q] = (ds @ k).transpose(0, 1)
        dk[of_k] = _sum_of_group(ds.transpose(1, 2) @ q, call.kv_heads)
        p = _dropout(p, rows[of_lse], call)
        dv[of_k] = _sum_of_group(p.transpose(1, 2) @ grad, call.kv_heads)
        if sinks is not None:
            of_sinks = torch.exp(sinks.to(dtype)[:, None] - _finite(lse))
            dsinks = dsinks - (of_sinks * delta).sum(-1)
    like = call.q if sinks is None else sinks
    return dq.to(call.q.dtype), dk.to(call.k.dtype), dv.to(call.v.dtype), dsinks.to(like.dtype)


def fake_forward(q: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """(out, lse), not filled, for any number of sequences: `forward` walks over them."""
    lse = q.new_empty((*q.shape[:-3], q.shape[-2], q.shape[-3]), dtype=wide_dtype(q))
    return q.new_empty((*q.shape[:-1], v.shape[-1])), lse


def fake_backward(call: Callable[..., Any]) -> Callable[..., tuple[Tensor, ...]]:
    """The same for the gradients that `call` returns."""
    signature = inspect.signature(call)

    def fake(*args: Any, **keywords: Any) -> tuple[Tensor, ...]:
        arguments = signature.bind(*args, **keywords).arguments
        sinks = arguments.get("sinks")
        like = arguments["q"].new_empty(0) if sinks is None else sinks
        return tuple(
            x.new_empty(x.shape) for x in (arguments["q"], arguments["k"], arguments["v"], like)
        )

    return fake


def _by_head(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Heads first, keys repeated for every query head, in float32 at least."""
    group = q.shape[1] // k.shape[1]
    k, v = (widened(x).transpose(0, 1).repeat_interleave(group, 0) for x in (k, v))
    return widened(q).transpose(0, 1), k, v


def _sum_of_group(grad: Tensor, kv_heads: int) -> Tensor:
    """[Hq, T, D] to [T, Hkv, D]."""
    heads, keys, size = grad.shape
    return grad.reshape(kv_heads, heads // kv_heads, keys, size).sum(1).transpose(0, 1)


def _logits(q: Tensor, k: Tensor, call: Call, sequence: Any) -> tuple[Tensor, Tensor | float]:
    """Logits of a sequence, -inf where nothing is seen, and their derivative by scaled products."""
    options, queries, keys = call.options, q.shape[1], k.shape[1]
    logits = q @ k.transpose(1, 2) * call.scale
    dcap: Tensor | float = 1.0
    if options.soft_cap:
        tanh = torch.tanh(logits / options.soft_cap)
        logits, dcap = tanh * options.soft_cap, 1 - tanh.square()
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
    if options.mask is not None:
        hidden = hidden | ~options.mask.expand(call.batch, -1, -1, -1)[sequence]
    return logits.masked_fill(hidden, float("-inf")), dcap


def _lse(logits: Tensor, call: Call) -> Tensor:
    if call.options.sinks is not None:
        column = call.options.sinks[:, None, None].expand(*logits.shape[:2], 1)
        logits = torch.cat([logits, column.to(logits.dtype)], -1)
    return torch.logsumexp(logits, -1)


def _probabilities(logits: Tensor, lse: Tensor) -> Tensor:
    """Rows that see nothing have none."""
    return torch.exp(logits - _finite(lse)[..., None])


def _finite(lse: Tensor) -> Tensor:
    """Zero for rows that see nothing."""
    return lse.masked_fill(lse == float("-inf"), 0.0)


def _dropout(values: Tensor, rows: Tensor, call: Call) -> Tensor:
    """What dropout leaves of values in `rows` of the lse of the whole call."""
    options = call.options
    if not options.dropout:
        return values
    j = torch.arange(values.shape[-1], device=values.device)
    counter = ((rows % 2**32) << 32)[..., None] | j
    keep = random.philox(options.seed, counter)[0] >= options.threshold
    return torch.where(keep, values, 0.0) / (1.0 - options.dropout)
