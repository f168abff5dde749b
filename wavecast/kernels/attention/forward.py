"""The forward kernel: one block of queries of one head walks over the keys it sees."""

from __future__ import annotations

import triton
import triton.language as tl

from wavecast.kernels.attention.parts import (
    LOG2E,
    capped,
    kept,
    rounded,
    seen_keys,
    sequence,
    shared_out,
    visible,
)

_LOWEST: tl.constexpr = tl.constexpr(-1e38)
"""The maximum of no logits: finite, so that differences with it are numbers."""
_LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def _walk(
    acc, total, most, q, k_ptr, v_ptr, k_row, v_row, start, stop, i, oldest, newest, keys,
    scale, soft_cap, slope, threshold, seed, row,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, BLOCK_N: tl.constexpr, DIM: tl.constexpr,
    DIM_V: tl.constexpr, MASKED: tl.constexpr, LEFT: tl.constexpr,
    CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr, SHORT: tl.constexpr,
):  # fmt: skip
    """Online softmax over the keys from `start` to `stop`. `most` is in powers of two."""
    column = tl.arange(0, BLOCK_N)
    d = tl.arange(0, DIM)
    e = tl.arange(0, DIM_V)
    from_k = k_ptr + column[None, :] * k_row + d[:, None]
    from_v = v_ptr + column[:, None] * v_row + e[None, :]
    STAGES: tl.constexpr = 1 if MASKED else None
    for first in tl.range(start, stop, BLOCK_N, num_stages=STAGES):
        j = first + column
        at_k = from_k + first * k_row
        at_v = from_v + first * v_row
        if MASKED and HEAD != DIM:
            k = tl.load(at_k, mask=(j < keys)[None, :] & (d < HEAD)[:, None], other=0.0)
        elif MASKED:
            k = tl.load(at_k, mask=(j < keys)[None, :], other=0.0)
        elif HEAD != DIM:
            k = tl.load(at_k, mask=(d < HEAD)[:, None], other=0.0)
        else:
            k = tl.load(at_k)
        if MASKED and HEAD_V != DIM_V:
            v = tl.load(at_v, mask=(j < keys)[:, None] & (e < HEAD_V)[None, :], other=0.0)
        elif MASKED:
            v = tl.load(at_v, mask=(j < keys)[:, None], other=0.0)
        elif HEAD_V != DIM_V:
            v = tl.load(at_v, mask=(e < HEAD_V)[None, :], other=0.0)
        else:
            v = tl.load(at_v)
        s = tl.dot(q, k, input_precision=PRECISION)
        factor = scale * LOG2E
        if CAP:
            s = capped(s, scale, soft_cap) * (soft_cap * LOG2E)
            factor = 1.0
        if ALIBI:
            s = s * factor - slope * tl.abs(i[:, None] - j[None, :]).to(tl.float32)
            factor = 1.0
        if MASKED:
            seen = visible(j[None, :], oldest[:, None], newest[:, None], LEFT)
            s = tl.where(seen, s, float("-inf"))
        higher = tl.maximum(most, tl.max(s, 1) * factor)
        p = tl.exp2(s * factor - higher[:, None])
        fade = tl.exp2(most - higher)
        total = total * fade + tl.sum(p, 1)
        most = higher
        acc = acc * fade[:, None]
        if DROPOUT:
            p = tl.where(kept(seed, row[:, None], j[None, :], threshold), p, 0.0)
        acc = tl.dot(rounded(p, v, SHORT), v, acc, input_precision=PRECISION)
    return acc, total, most


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, sinks_ptr, alibi_ptr, starts_q_ptr, starts_k_ptr,
    q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head,
    out_batch, out_row, out_head, lse_batch, lse_head,
    queries, keys, heads, left, right, scale, soft_cap, threshold, keep, seed,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    GROUP: tl.constexpr, VARLEN: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    SINKS: tl.constexpr, CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr, SHORT: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EDGE: tl.constexpr,
):  # fmt: skip
    """Programs of the heads that share keys are neighbours, and the last queries, which see the
    most keys under a causal mask, come first."""
    number = shared_out(tl.program_id(0), tl.num_programs(0), XCDS)
    head = number % GROUP
    number = number // GROUP
    blocks = tl.cdiv(queries, BLOCK_M)
    block = blocks - 1 - number % blocks
    number = number // blocks
    shared = number % (heads // GROUP)
    batch = number // (heads // GROUP)
    head += shared * GROUP
    start_q, queries = sequence(starts_q_ptr, batch, queries, VARLEN, WIDE)
    start_k, keys = sequence(starts_k_ptr, batch, keys, VARLEN, WIDE)
    first = block * BLOCK_M
    if VARLEN:
        if first >= queries:
            return
    if WIDE:
        batch = batch.to(tl.int64)
        q_row = tl.cast(q_row, tl.int64)
        k_row = tl.cast(k_row, tl.int64)
        v_row = tl.cast(v_row, tl.int64)
        out_row = tl.cast(out_row, tl.int64)
    q_ptr += batch * q_batch + start_q * q_row + head * q_head
    k_ptr += batch * k_batch + start_k * k_row + shared * k_head
    v_ptr += batch * v_batch + start_k * v_row + shared * v_head
    out_ptr += batch * out_batch + start_q * out_row + head * out_head
    place = batch * lse_batch + head * lse_head + start_q
    row = first + tl.arange(0, BLOCK_M)
    d = tl.arange(0, DIM)
    e = tl.arange(0, DIM_V)
    inside = (row < queries)[:, None]
    q_inside = inside & (d < HEAD)[None, :] if HEAD != DIM else inside
    q = tl.load(q_ptr + row[:, None] * q_row + d[None, :], mask=q_inside, other=0.0)
    slope = 0.0
    if ALIBI:
        slope = tl.load(alibi_ptr + head).to(tl.float32) * LOG2E
    most = tl.full((BLOCK_M,), _LOWEST, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    if SINKS:
        most = tl.zeros((BLOCK_M,), tl.float32) + tl.load(sinks_ptr + head).to(tl.float32) * LOG2E
        total += 1.0
    acc = tl.zeros((BLOCK_M, DIM_V), tl.float32)
    shift = keys - queries
    i = row + shift
    last = tl.minimum(first + BLOCK_M, queries) - 1 + shift
    lo, full_lo, full_hi, hi = seen_keys(
        first + shift, last, keys, left, right, BLOCK_N, EDGE, LEFT, RIGHT
    )
    newest = tl.minimum(i + right, keys - 1) if RIGHT else tl.zeros_like(i) + keys - 1
    oldest = i - left
    if LEFT:
        acc, total, most = _walk(
            acc, total, most, q, k_ptr, v_ptr, k_row, v_row, lo, tl.minimum(full_lo, hi),
            i, oldest, newest, keys, scale, soft_cap, slope, threshold, seed, place + row,
            HEAD, HEAD_V, EDGE, DIM, DIM_V, True, LEFT, CAP, ALIBI, DROPOUT, PRECISION, SHORT,
        )  # fmt: skip
    acc, total, most = _walk(
        acc, total, most, q, k_ptr, v_ptr, k_row, v_row, full_lo, full_hi,
        i, oldest, newest, keys, scale, soft_cap, slope, threshold, seed, place + row,
        HEAD, HEAD_V, BLOCK_N, DIM, DIM_V, False, LEFT, CAP, ALIBI, DROPOUT, PRECISION, SHORT,
    )  # fmt: skip
    acc, total, most = _walk(
        acc, total, most, q, k_ptr, v_ptr, k_row, v_row, tl.maximum(full_lo, full_hi), hi,
        i, oldest, newest, keys, scale, soft_cap, slope, threshold, seed, place + row,
        HEAD, HEAD_V, EDGE, DIM, DIM_V, True, LEFT, CAP, ALIBI, DROPOUT, PRECISION, SHORT,
    )  # fmt: skip
    some = total > 0
    share = keep / tl.where(some, total, 1.0)
    out = (acc * share[:, None]).to(out_ptr.dtype.element_ty)
    out_inside = inside & (e < HEAD_V)[None, :] if HEAD_V != DIM_V else inside
    tl.store(out_ptr + row[:, None] * out_row + e[None, :], out, mask=out_inside)
    lse = tl.where(some, most * _LN2 + tl.log(total), float("-inf"))
    tl.store(lse_ptr + place + row, lse, mask=row < queries)


__all__ = ["attention_kernel"]
