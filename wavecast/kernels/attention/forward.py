# pyright: reportArgumentType=false, reportGeneralTypeIssues=false
# pyright: reportAssignmentType=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false
# (arguments of Triton functions become constants as they are compiled)
"""The forward kernel: one block of queries of one head walks over the keys it sees."""

from __future__ import annotations

import triton
import triton.language as tl

from wavecast.kernels.attention.parts import (
    LOG2E,
    capped,
    kept,
    products,
    rounded,
    seen_keys,
    sequence,
    shared_out,
    tile,
    visible,
)

_LOWEST: tl.constexpr = tl.constexpr(-1e38)
"""The maximum of no logits: finite, so that differences with it are numbers."""
_LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def _walk(
    acc, total, most, q, q_ptr, q_row, q_place, queries, k_ptr, v_ptr, k_row, v_row, start, stop,
    i, oldest, newest, keys, scale, soft_cap, slope, threshold, seed, row, none,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, BLOCK_N: tl.constexpr, DIM: tl.constexpr,
    DIM_V: tl.constexpr, MASKED: tl.constexpr, LEFT: tl.constexpr, CAP: tl.constexpr,
    ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr, SHORT: tl.constexpr,
    CHUNK: tl.constexpr,
):  # fmt: skip
    """Online softmax over the keys from `start` to `stop`. `most` is in powers of two."""
    STAGES: tl.constexpr = 1 if MASKED else None
    for first in tl.range(start, stop, BLOCK_N, num_stages=STAGES):
        j = first + tl.arange(0, BLOCK_N)
        k = 0.0
        if not CHUNK:
            k = tile(k_ptr, j, k_row, keys, HEAD, DIM, MASKED, 0, True)
        v = tile(v_ptr, j, v_row, keys, HEAD_V, DIM_V, MASKED)
        s = products(
            q, q_ptr + first * none, q_place, q_row, queries, k, k_ptr, j, k_row, keys,
            HEAD, DIM, CHUNK, MASKED, PRECISION,
        )  # fmt: skip
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
    queries, keys, heads, left, right, scale, soft_cap, threshold, keep, seed, none,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    GROUP: tl.constexpr, VARLEN: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    SINKS: tl.constexpr, CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr, SHORT: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EDGE: tl.constexpr,
    CHUNK: tl.constexpr,
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
    e = tl.arange(0, DIM_V)
    inside = (row < queries)[:, None]
    q = 0.0
    if not CHUNK:
        q = tile(q_ptr, row, q_row, queries, HEAD, DIM, True)
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
            acc, total, most, q, q_ptr, q_row, row, queries, k_ptr, v_ptr, k_row, v_row,
            lo, tl.minimum(full_lo, hi),
            i, oldest, newest, keys, scale, soft_cap, slope, threshold, seed, place + row,
            none, HEAD, HEAD_V, EDGE, DIM, DIM_V, True, LEFT, CAP, ALIBI, DROPOUT, PRECISION, SHORT,
            CHUNK,
        )  # fmt: skip
    acc, total, most = _walk(
        acc, total, most, q, q_ptr, q_row, row, queries, k_ptr, v_ptr, k_row, v_row,
        full_lo, full_hi,
        i, oldest, newest, keys, scale, soft_cap, slope, threshold, seed, place + row,
            none, HEAD, HEAD_V, BLOCK_N, DIM, DIM_V, False, LEFT, CAP, ALIBI, DROPOUT, PRECISION,
            SHORT,
            CHUNK,
    )  # fmt: skip
    acc, total, most = _walk(
        acc, total, most, q, q_ptr, q_row, row, queries, k_ptr, v_ptr, k_row, v_row,
        tl.maximum(full_lo, full_hi), hi,
        i, oldest, newest, keys, scale, soft_cap, slope, threshold, seed, place + row,
            none, HEAD, HEAD_V, EDGE, DIM, DIM_V, True, LEFT, CAP, ALIBI, DROPOUT, PRECISION, SHORT,
            CHUNK,
    )  # fmt: skip
    some = total > 0
    share = keep / tl.where(some, total, 1.0)
    out = (acc * share[:, None]).to(out_ptr.dtype.element_ty)
    out_inside = inside & (e < HEAD_V)[None, :] if HEAD_V != DIM_V else inside
    tl.store(out_ptr + row[:, None] * out_row + e[None, :], out, mask=out_inside)
    lse = tl.where(some, most * _LN2 + tl.log(total), float("-inf"))
    tl.store(lse_ptr + place + row, lse, mask=row < queries)


__all__ = ["attention_kernel"]
