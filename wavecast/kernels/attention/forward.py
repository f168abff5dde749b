# pyright: reportArgumentType=false, reportGeneralTypeIssues=false
# pyright: reportAssignmentType=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false
# (arguments of Triton functions become constants as they are compiled)
"""The forward kernel: one block of queries of one head loops over the keys it sees.

Its variants are constants. `ROPE`: heads have a second part, which all heads of the keys share and
which has a separate product (MLA). `PACK`: a block has so many heads that share
keys, query by query, so that narrow windows and few queries fill it. fp8: probabilities are rounded
to fp8 as well, after multiplication by 2 to the power of `PEAK`; so is the sum of the softmax.
"""

import triton
import triton.language as tl

from wavecast.kernels.attention.parts import (
    LOG2E,
    dot,
    dropout_mask,
    load_tile,
    loop_bounds,
    masked,
    remap_xcds,
    round_even,
    round_like,
    seen_keys,
    sequence,
    tanh_of_cap,
    visible,
)
from wavecast.kernels.quantise.formats import halves_of

_M_INIT: tl.constexpr = tl.constexpr(-1e38)
"""The maximum of no logits: finite, so that differences with it are finite."""
_LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def _attend(
    acc, l_i, m_i, k_next, v_next,
    q, q_ptr, q_row, q_rope, q_rope_ptr, q_rope_row, offs_m, queries,
    k_ptr, v_ptr, k_row, v_row, k_rope_ptr, k_rope_row, start, stop, hi,
    positions, oldest, newest, keys, scale, soft_cap, alibi, threshold, seed, lse_offs, zero,
    mask_ptr, mask_row,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, ROPE: tl.constexpr, BLOCK: tl.constexpr,
    DIM: tl.constexpr, DIM_V: tl.constexpr, DIM_R: tl.constexpr,
    MASKED: tl.constexpr, LEFT: tl.constexpr, CAP: tl.constexpr, ALIBI: tl.constexpr,
    DROPOUT: tl.constexpr, PRECISION: tl.constexpr, SHORT: tl.constexpr, CHUNK: tl.constexpr,
    WIDEN: tl.constexpr, PEAK: tl.constexpr, AHEAD: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """Online softmax over the keys from `start` to `stop`. `m_i` is in powers of two. Where AHEAD,
    the first tile is `k_next` and `v_next`, which become the one after the last, up to `hi`."""
    STAGES: tl.constexpr = 1 if MASKED or AHEAD else None
    for first in tl.range(start, stop, BLOCK, num_stages=STAGES):
        offs_n = first + tl.arange(0, BLOCK)
        k = 0.0
        k_rope = 0.0
        if AHEAD:
            k = k_next
            v = v_next
            k_next = load_tile(k_ptr, offs_n + BLOCK, k_row, hi, HEAD, DIM, True, 0, True)
            v_next = load_tile(v_ptr, offs_n + BLOCK, v_row, hi, HEAD_V, DIM_V, True)
        else:
            if not CHUNK:
                k = load_tile(k_ptr, offs_n, k_row, keys, HEAD, DIM, MASKED, 0, True)
                if ROPE:
                    k_rope = load_tile(
                        k_rope_ptr, offs_n, k_rope_row, keys, ROPE, DIM_R, MASKED, 0, True
                    )
            v = load_tile(v_ptr, offs_n, v_row, keys, HEAD_V, DIM_V, MASKED)
        if WIDEN:
            v = halves_of(v)
            if not CHUNK:
                k = halves_of(k)
        qk = dot(
            q, q_ptr + first * zero, offs_m, q_row, queries, k, k_ptr, offs_n, k_row, keys,
            HEAD, DIM, CHUNK, MASKED, PRECISION,
        )  # fmt: skip
        if ROPE:
            qk = dot(
                q_rope, q_rope_ptr + first * zero, offs_m, q_rope_row, queries, k_rope, k_rope_ptr,
                offs_n, k_rope_row, keys,
                ROPE, DIM_R, CHUNK, MASKED, PRECISION, qk,
            )  # fmt: skip
        qk_scale = scale * LOG2E
        if CAP:
            qk = tanh_of_cap(qk, scale, soft_cap) * (soft_cap * LOG2E)
            qk_scale = 1.0
        if ALIBI:
            distance = tl.abs(positions[:, None] - offs_n[None, :]).to(tl.float32)
            qk = qk * qk_scale - alibi * distance
            qk_scale = 1.0
        if MASKED:
            mask_n = visible(offs_n[None, :], oldest[:, None], newest[:, None], LEFT)
            qk = tl.where(mask_n, qk, float("-inf"))
        if MASK:
            qk = masked(qk, mask_ptr, offs_m[:, None], mask_row, queries, offs_n[None, :], keys)
        m_new = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
        p = tl.exp2(qk * qk_scale - (m_new - PEAK)[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
        acc = acc * alpha[:, None]
        if DROPOUT:
            p = tl.where(dropout_mask(seed, lse_offs[:, None], offs_n[None, :], threshold), p, 0.0)
        acc = tl.dot(round_like(p, v, SHORT), v, acc, input_precision=PRECISION)
    return acc, l_i, m_i, k_next, v_next


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, q_rope_ptr, k_rope_ptr, sinks_ptr, alibi_ptr,
    q_scale_ptr, k_scale_ptr, v_scale_ptr, starts_q_ptr, starts_k_ptr, mask_ptr,
    q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head,
    out_batch, out_row, out_head, q_rope_row, q_rope_head, k_rope_row, scale_batch, scale_head,
    lse_batch, lse_head,
    queries, keys, heads, left, right, scale, soft_cap, threshold, keep, seed, zero,
    mask_batch, mask_head, mask_row,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, ROPE: tl.constexpr,
    DIM: tl.constexpr, DIM_V: tl.constexpr, DIM_R: tl.constexpr,
    GROUP: tl.constexpr, VARLEN: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    SINKS: tl.constexpr, CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr,
    SCALED: tl.constexpr, WIDEN: tl.constexpr, PEAK: tl.constexpr, MASK: tl.constexpr,
    PRECISION: tl.constexpr, SHORT: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EDGE: tl.constexpr,
    CHUNK: tl.constexpr, PACK: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Programs of the heads that share keys are neighbours, and the last queries, which see the
    most keys under a causal mask, come first. In windows, where other queries use little of what
    these do, the other heads are neighbours too: a die then reads whole rows of its tensors, not
    just the few channels of its L2 that have one head's part of them."""
    QUERIES: tl.constexpr = BLOCK_M // PACK
    pid = remap_xcds(tl.program_id(0), tl.num_programs(0), XCDS)
    head = pid % (GROUP // PACK) * PACK
    pid = pid // (GROUP // PACK)
    blocks = tl.cdiv(queries, QUERIES)
    if LEFT:
        kv_head = pid % (heads // GROUP)
        pid = pid // (heads // GROUP)
        block = blocks - 1 - pid % blocks
        batch = pid // blocks
    else:
        block = blocks - 1 - pid % blocks
        pid = pid // blocks
        kv_head = pid % (heads // GROUP)
        batch = pid // (heads // GROUP)
    head += kv_head * GROUP
    start_q, queries = sequence(starts_q_ptr, batch, queries, VARLEN, WIDE)
    start_k, keys = sequence(starts_k_ptr, batch, keys, VARLEN, WIDE)
    first = block * QUERIES
    if VARLEN:
        if first >= queries:
            return
    out_scale = keep
    if SCALED:
        scale_offs = batch * scale_batch + kv_head * scale_head
        scale = scale * tl.load(q_scale_ptr + scale_offs) * tl.load(k_scale_ptr + scale_offs)
        out_scale = keep * tl.load(v_scale_ptr + scale_offs)
    if WIDE:
        batch = batch.to(tl.int64)
        q_row = tl.cast(q_row, tl.int64)
        k_row = tl.cast(k_row, tl.int64)
        v_row = tl.cast(v_row, tl.int64)
        out_row = tl.cast(out_row, tl.int64)
        q_rope_row = tl.cast(q_rope_row, tl.int64)
        k_rope_row = tl.cast(k_rope_row, tl.int64)
        mask_row = tl.cast(mask_row, tl.int64)
    offs_m = first + tl.arange(0, BLOCK_M)
    head_offs = tl.zeros((BLOCK_M,), tl.int32)
    if PACK > 1:
        offs_m = first + tl.arange(0, BLOCK_M) // PACK
        head_offs = tl.arange(0, BLOCK_M) % PACK
    q_ptr += batch * q_batch + start_q * q_row + head * q_head
    q_rope_ptrs = q_rope_ptr
    if ROPE:
        q_rope_ptrs = q_rope_ptr + start_q * q_rope_row + head * q_rope_head
        k_rope_ptr += start_k * k_rope_row
    k_ptr += batch * k_batch + start_k * k_row + kv_head * k_head
    v_ptr += batch * v_batch + start_k * v_row + kv_head * v_head
    lse_offs = batch * lse_batch + head * lse_head + start_q + offs_m
    q_ptrs = q_ptr
    if PACK > 1:
        q_ptrs = q_ptr + head_offs[:, None] * q_head
        lse_offs += head_offs * lse_head
        if ROPE:
            q_rope_ptrs = q_rope_ptrs + head_offs[:, None] * q_rope_head
    mask_ptrs = mask_ptr
    if MASK:
        mask_ptrs = mask_ptr + batch * mask_batch + head * mask_head
        if PACK > 1:
            mask_ptrs = mask_ptrs + head_offs[:, None] * mask_head
    mask = offs_m < queries
    q = 0.0
    q_rope = 0.0
    if not CHUNK:
        q = load_tile(q_ptrs, offs_m, q_row, queries, HEAD, DIM, True)
        if WIDEN:
            q = halves_of(q)
        if ROPE:
            q_rope = load_tile(q_rope_ptrs, offs_m, q_rope_row, queries, ROPE, DIM_R, True)
    alibi = 0.0
    if ALIBI:
        alibi = (tl.load(alibi_ptr + head + head_offs).to(tl.float32) * LOG2E)[:, None]
    m_i = tl.full((BLOCK_M,), _M_INIT, tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    if SINKS:
        sink = tl.load(sinks_ptr + head + head_offs).to(tl.float32) * LOG2E
        no_sink = sink < _M_INIT  # -inf means none
        m_i = tl.where(no_sink, _M_INIT, sink)
        l_i = tl.where(no_sink, 0.0, 2.0**PEAK)
    acc = tl.zeros((BLOCK_M, DIM_V), tl.float32)
    shift = keys - queries
    positions = offs_m + shift
    last = tl.minimum(first + QUERIES, queries) - 1 + shift
    lo, full_lo, full_hi, hi = seen_keys(
        first + shift, last, keys, left, right, BLOCK_N, EDGE, LEFT, RIGHT
    )
    newest = tl.zeros_like(positions) + keys - 1
    if RIGHT:
        newest = tl.minimum(positions + right, keys - 1)
    oldest = positions - left
    k_next = 0.0
    v_next = 0.0
    if AHEAD:  # EDGE is BLOCK_N: tiles of all parts follow each other
        offs_n = lo + tl.arange(0, BLOCK_N)
        k_next = load_tile(k_ptr, offs_n, k_row, hi, HEAD, DIM, True, 0, True)
        v_next = load_tile(v_ptr, offs_n, v_row, hi, HEAD_V, DIM_V, True)
    for part in tl.static_range(0 if LEFT else 1, 3):
        start, stop = loop_bounds(part, lo, full_lo, full_hi, hi)
        acc, l_i, m_i, k_next, v_next = _attend(
            acc, l_i, m_i, k_next, v_next,
            q, q_ptrs, q_row, q_rope, q_rope_ptrs, q_rope_row, offs_m, queries,
            k_ptr, v_ptr, k_row, v_row, k_rope_ptr, k_rope_row, start, stop, hi,
            positions, oldest, newest, keys, scale, soft_cap, alibi, threshold, seed, lse_offs,
            zero, mask_ptrs, mask_row,
            HEAD, HEAD_V, ROPE, BLOCK_N if part == 1 else EDGE, DIM, DIM_V, DIM_R, part != 1,
            LEFT, CAP, ALIBI, DROPOUT, PRECISION, SHORT, CHUNK, WIDEN, PEAK, AHEAD, MASK,
        )  # fmt: skip
    seen_any = l_i != 0
    out_scale = out_scale / tl.where(seen_any, l_i, 1.0)
    out = round_even(acc * out_scale[:, None], out_ptr.dtype.element_ty, SHORT)
    offs_d = tl.arange(0, DIM_V)
    out_ptr += batch * out_batch + start_q * out_row + head * out_head
    out_offs = offs_m[:, None] * out_row + offs_d[None, :]
    out_mask = tl.broadcast_to(mask[:, None], (BLOCK_M, DIM_V))
    if HEAD_V != DIM_V:
        out_mask = out_mask & (offs_d < HEAD_V)[None, :]
    if PACK > 1:
        out_offs += head_offs[:, None] * out_head
        # a product is stored as its lanes have it, in pieces of a line, unless it is reshaped
        out = tl.reshape(out, (QUERIES, PACK, DIM_V))
        out_offs = tl.reshape(out_offs, (QUERIES, PACK, DIM_V))
        out_mask = tl.reshape(out_mask, (QUERIES, PACK, DIM_V))
    tl.store(out_ptr + out_offs, out, mask=out_mask)
    lse = tl.where(seen_any, (m_i - PEAK) * _LN2 + tl.log(l_i), float("-inf"))
    tl.store(lse_ptr + lse_offs, lse, mask=mask)
