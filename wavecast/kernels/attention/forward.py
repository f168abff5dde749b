# pyright: reportArgumentType=false, reportGeneralTypeIssues=false
# pyright: reportAssignmentType=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false
# (arguments of Triton functions become constants as they are compiled)
"""The forward kernel: one block of queries of one head walks over the keys it sees.

Its variants are constants. `ROPE`: heads have a second part, which all heads of the keys share and
which is multiplied by a product of its own (MLA). `PACK`: a block holds so many heads that share
keys, query by query, so that narrow windows and few queries fill it. fp8: probabilities are rounded
to fp8 as well, after multiplication by 2 to the power of `PEAK`; the sums they are divided by are
so multiplied, too.
"""

from __future__ import annotations

import triton
import triton.language as tl

from wavecast.kernels.attention.parts import (
    LOG2E,
    capped,
    kept,
    nearest,
    products,
    rounded,
    seen_keys,
    sequence,
    shared_out,
    tile,
    visible,
)
from wavecast.kernels.quantise.formats import halves_of

_LOWEST: tl.constexpr = tl.constexpr(-1e38)
"""The maximum of no logits: finite, so that differences with it are numbers."""
_LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def _walk(
    acc, total, most, k_ahead, v_ahead,
    q, q_ptr, q_row, q_rope, q_rope_ptr, q_rope_row, q_place, queries,
    k_ptr, v_ptr, k_row, v_row, k_rope_ptr, k_rope_row, start, stop, hi,
    i, oldest, newest, keys, scale, soft_cap, slope, threshold, seed, place, none,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, ROPE: tl.constexpr, BLOCK: tl.constexpr,
    DIM: tl.constexpr, DIM_V: tl.constexpr, DIM_R: tl.constexpr,
    MASKED: tl.constexpr, LEFT: tl.constexpr, CAP: tl.constexpr, ALIBI: tl.constexpr,
    DROPOUT: tl.constexpr, PRECISION: tl.constexpr, SHORT: tl.constexpr, CHUNK: tl.constexpr,
    WIDEN: tl.constexpr, PEAK: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Online softmax over the keys from `start` to `stop`. `most` is in powers of two. Where AHEAD,
    the first tile is `k_ahead` and `v_ahead`, which become the one after the last, up to `hi`."""
    STAGES: tl.constexpr = 1 if MASKED or AHEAD else None
    for first in tl.range(start, stop, BLOCK, num_stages=STAGES):
        j = first + tl.arange(0, BLOCK)
        k = 0.0
        k_rope = 0.0
        if AHEAD:
            k = k_ahead
            v = v_ahead
            k_ahead = tile(k_ptr, j + BLOCK, k_row, hi, HEAD, DIM, True, 0, True)
            v_ahead = tile(v_ptr, j + BLOCK, v_row, hi, HEAD_V, DIM_V, True)
        else:
            if not CHUNK:
                k = tile(k_ptr, j, k_row, keys, HEAD, DIM, MASKED, 0, True)
                if ROPE:
                    k_rope = tile(k_rope_ptr, j, k_rope_row, keys, ROPE, DIM_R, MASKED, 0, True)
            v = tile(v_ptr, j, v_row, keys, HEAD_V, DIM_V, MASKED)
        if WIDEN:
            v = halves_of(v)
            if not CHUNK:
                k = halves_of(k)
        s = products(
            q, q_ptr + first * none, q_place, q_row, queries, k, k_ptr, j, k_row, keys,
            HEAD, DIM, CHUNK, MASKED, PRECISION,
        )  # fmt: skip
        if ROPE:
            s = products(
                q_rope, q_rope_ptr + first * none, q_place, q_rope_row, queries, k_rope, k_rope_ptr,
                j, k_rope_row, keys,
                ROPE, DIM_R, CHUNK, MASKED, PRECISION, s,
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
        p = tl.exp2(s * factor - (higher - PEAK)[:, None])
        fade = tl.exp2(most - higher)
        total = total * fade + tl.sum(p, 1)
        most = higher
        acc = acc * fade[:, None]
        if DROPOUT:
            p = tl.where(kept(seed, place[:, None], j[None, :], threshold), p, 0.0)
        acc = tl.dot(rounded(p, v, SHORT), v, acc, input_precision=PRECISION)
    return acc, total, most, k_ahead, v_ahead


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, q_rope_ptr, k_rope_ptr, sinks_ptr, alibi_ptr,
    q_scale_ptr, k_scale_ptr, v_scale_ptr, starts_q_ptr, starts_k_ptr,
    q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head,
    out_batch, out_row, out_head, q_rope_row, q_rope_head, k_rope_row, scale_batch, scale_head,
    lse_batch, lse_head,
    queries, keys, heads, left, right, scale, soft_cap, threshold, keep, seed, none,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, ROPE: tl.constexpr,
    DIM: tl.constexpr, DIM_V: tl.constexpr, DIM_R: tl.constexpr,
    GROUP: tl.constexpr, VARLEN: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    SINKS: tl.constexpr, CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr,
    SCALED: tl.constexpr, WIDEN: tl.constexpr, PEAK: tl.constexpr,
    PRECISION: tl.constexpr, SHORT: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EDGE: tl.constexpr,
    CHUNK: tl.constexpr, PACK: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Programs of the heads that share keys are neighbours, and the last queries, which see the
    most keys under a causal mask, come first. In windows, where other queries use little of what
    these do, so are the other heads: a die then walks over whole rows of its tensors, not over the
    few channels of its L2 that a head's parts of them lie in."""
    QUERIES: tl.constexpr = BLOCK_M // PACK
    number = shared_out(tl.program_id(0), tl.num_programs(0), XCDS)
    head = number % (GROUP // PACK) * PACK
    number = number // (GROUP // PACK)
    blocks = tl.cdiv(queries, QUERIES)
    if LEFT:
        shared = number % (heads // GROUP)
        number = number // (heads // GROUP)
        block = blocks - 1 - number % blocks
        batch = number // blocks
    else:
        block = blocks - 1 - number % blocks
        number = number // blocks
        shared = number % (heads // GROUP)
        batch = number // (heads // GROUP)
    head += shared * GROUP
    start_q, queries = sequence(starts_q_ptr, batch, queries, VARLEN, WIDE)
    start_k, keys = sequence(starts_k_ptr, batch, keys, VARLEN, WIDE)
    first = block * QUERIES
    if VARLEN:
        if first >= queries:
            return
    share = keep
    if SCALED:
        at = batch * scale_batch + shared * scale_head
        scale = scale * tl.load(q_scale_ptr + at) * tl.load(k_scale_ptr + at)
        share = keep * tl.load(v_scale_ptr + at)
    if WIDE:
        batch = batch.to(tl.int64)
        q_row = tl.cast(q_row, tl.int64)
        k_row = tl.cast(k_row, tl.int64)
        v_row = tl.cast(v_row, tl.int64)
        out_row = tl.cast(out_row, tl.int64)
        q_rope_row = tl.cast(q_rope_row, tl.int64)
        k_rope_row = tl.cast(k_rope_row, tl.int64)
    row = first + tl.arange(0, BLOCK_M)
    members = tl.zeros((BLOCK_M,), tl.int32)
    if PACK > 1:
        row = first + tl.arange(0, BLOCK_M) // PACK
        members = tl.arange(0, BLOCK_M) % PACK
    q_ptr += batch * q_batch + start_q * q_row + head * q_head
    q_rope_at = q_rope_ptr
    if ROPE:
        q_rope_at = q_rope_ptr + start_q * q_rope_row + head * q_rope_head
        k_rope_ptr += start_k * k_rope_row
    k_ptr += batch * k_batch + start_k * k_row + shared * k_head
    v_ptr += batch * v_batch + start_k * v_row + shared * v_head
    place = batch * lse_batch + head * lse_head + start_q + row
    q_at = q_ptr
    if PACK > 1:
        q_at = q_ptr + members[:, None] * q_head
        place += members * lse_head
        if ROPE:
            q_rope_at = q_rope_at + members[:, None] * q_rope_head
    inside = row < queries
    q = 0.0
    q_rope = 0.0
    if not CHUNK:
        q = tile(q_at, row, q_row, queries, HEAD, DIM, True)
        if WIDEN:
            q = halves_of(q)
        if ROPE:
            q_rope = tile(q_rope_at, row, q_rope_row, queries, ROPE, DIM_R, True)
    slope = 0.0
    if ALIBI:
        slope = (tl.load(alibi_ptr + head + members).to(tl.float32) * LOG2E)[:, None]
    most = tl.full((BLOCK_M,), _LOWEST, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    if SINKS:
        sink = tl.load(sinks_ptr + head + members).to(tl.float32) * LOG2E
        none_there = sink < _LOWEST  # -inf is no sink
        most = tl.where(none_there, _LOWEST, sink)
        total = tl.where(none_there, 0.0, 2.0**PEAK)
    acc = tl.zeros((BLOCK_M, DIM_V), tl.float32)
    shift = keys - queries
    i = row + shift
    last = tl.minimum(first + QUERIES, queries) - 1 + shift
    lo, full_lo, full_hi, hi = seen_keys(
        first + shift, last, keys, left, right, BLOCK_N, EDGE, LEFT, RIGHT
    )
    newest = tl.minimum(i + right, keys - 1) if RIGHT else tl.zeros_like(i) + keys - 1
    oldest = i - left
    k_ahead = 0.0
    v_ahead = 0.0
    if AHEAD:  # EDGE is BLOCK_N: tiles of all parts follow each other
        j = lo + tl.arange(0, BLOCK_N)
        k_ahead = tile(k_ptr, j, k_row, hi, HEAD, DIM, True, 0, True)
        v_ahead = tile(v_ptr, j, v_row, hi, HEAD_V, DIM_V, True)
    for part in tl.static_range(0 if LEFT else 1, 3):  # the left edge, the middle, the right edge
        start = full_lo
        stop = full_hi
        if part == 0:
            start = lo
            stop = tl.minimum(full_lo, hi)
        elif part == 2:
            start = tl.maximum(full_lo, full_hi)
            stop = hi
        acc, total, most, k_ahead, v_ahead = _walk(
            acc, total, most, k_ahead, v_ahead,
            q, q_at, q_row, q_rope, q_rope_at, q_rope_row, row, queries,
            k_ptr, v_ptr, k_row, v_row, k_rope_ptr, k_rope_row, start, stop, hi,
            i, oldest, newest, keys, scale, soft_cap, slope, threshold, seed, place, none,
            HEAD, HEAD_V, ROPE, BLOCK_N if part == 1 else EDGE, DIM, DIM_V, DIM_R, part != 1,
            LEFT, CAP, ALIBI, DROPOUT, PRECISION, SHORT, CHUNK, WIDEN, PEAK, AHEAD,
        )  # fmt: skip
    some = total != 0
    share = share / tl.where(some, total, 1.0)
    out = nearest(acc * share[:, None], out_ptr.dtype.element_ty, SHORT)
    e = tl.arange(0, DIM_V)
    out_ptr += batch * out_batch + start_q * out_row + head * out_head
    out_at = row[:, None] * out_row + e[None, :]
    out_inside = tl.broadcast_to(inside[:, None], (BLOCK_M, DIM_V))
    if HEAD_V != DIM_V:
        out_inside = out_inside & (e < HEAD_V)[None, :]
    if PACK > 1:
        out_at += members[:, None] * out_head
        # Triton stores a product as its lanes have it, in pieces of a line, but not once reshaped
        out = tl.reshape(out, (QUERIES, PACK, DIM_V))
        out_at = tl.reshape(out_at, (QUERIES, PACK, DIM_V))
        out_inside = tl.reshape(out_inside, (QUERIES, PACK, DIM_V))
    tl.store(out_ptr + out_at, out, mask=out_inside)
    lse = tl.where(some, (most - PEAK) * _LN2 + tl.log(total), float("-inf"))
    tl.store(lse_ptr + place, lse, mask=inside)


__all__ = ["attention_kernel"]
