# pyright: reportArgumentType=false, reportGeneralTypeIssues=false
# pyright: reportAssignmentType=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false
# (arguments of Triton functions become constants as they are compiled)
"""The backward kernels: gradients of keys and values walk over queries, those of queries over keys.

Every program owns the rows it writes, so that sums have a fixed order. With P the probabilities and
delta = rowsum(dout · out) - dlse,

    dv = Pᵀ · dout,   dS = P · (dout · vᵀ - delta),   dk = dSᵀ · q · scale,   dq = dS · k · scale.
"""

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
    seen_queries,
    sequence,
    shared_out,
    tile,
)


@triton.jit
def _probabilities(
    s, lse, distance, seen, scale, soft_cap, slope,
    MASKED: tl.constexpr, CAP: tl.constexpr, ALIBI: tl.constexpr,
):  # fmt: skip
    """(probabilities, tanh of the soft cap) of products; `lse` in powers of two."""
    factor = scale * LOG2E
    bent = s
    if CAP:
        bent = capped(s, scale, soft_cap)
        s = bent
        factor = soft_cap * LOG2E
    s = s * factor - lse
    if ALIBI:
        s -= slope * tl.abs(distance).to(tl.float32)
    if MASKED:
        s = tl.where(seen, s, float("-inf"))
    return tl.exp2(s), bent


@triton.jit
def _rows(
    q_ptr, dout_ptr, row, q_row, dout_row, queries,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    MASKED: tl.constexpr, ACROSS: tl.constexpr = False,
):  # fmt: skip
    """(q, dout) of rows."""
    q = tile(q_ptr, row, q_row, queries, HEAD, DIM, MASKED, 0, ACROSS)
    return q, tile(dout_ptr, row, dout_row, queries, HEAD_V, DIM_V, MASKED, 0, ACROSS)


@triton.jit
def _over_queries(
    dk, dv, k, v, k_ptr, v_ptr, k_row, v_row, keys, q_ptr, dout_ptr, lse_ptr, delta_ptr, q_row,
    dout_row, start, stop, j, queries, shift, left, right, scale, soft_cap, slope, threshold, keep,
    seed, place, none,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    SHORT: tl.constexpr, CHUNK: tl.constexpr, AHEAD: tl.constexpr, TWICE: tl.constexpr,
    KEYS: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """Adds to dk if `KEYS`, to dv if `VALUES`. With `AHEAD`, the rows of a step are loaded one step
    before. With `TWICE`, they are loaded for either way they are multiplied: the compiler can then
    load both ahead, straight to where they are read from."""
    STAGES: tl.constexpr = 1 if MASKED else None
    if AHEAD:
        q_next, dout_next = _rows(
            q_ptr, dout_ptr, start + tl.arange(0, BLOCK), q_row, dout_row, queries,
            HEAD, HEAD_V, DIM, DIM_V, True,
        )  # fmt: skip
    for first in tl.range(start, stop, BLOCK, num_stages=STAGES):
        row = first + tl.arange(0, BLOCK)
        if MASKED:  # rows there are not have no probabilities
            lse = tl.load(lse_ptr + row, mask=row < queries, other=float("inf"))
            delta = tl.load(delta_ptr + row, mask=row < queries, other=0.0)
            lse = tl.where(lse == float("-inf"), 0.0, lse)
        else:
            lse = tl.load(lse_ptr + row)
            delta = tl.load(delta_ptr + row)
        if AHEAD:
            q, dout = q_next, dout_next
            q_next, dout_next = _rows(
                q_ptr, dout_ptr, row + BLOCK, q_row, dout_row, queries,
                HEAD, HEAD_V, DIM, DIM_V, True,
            )  # fmt: skip
        else:
            q, dout = _rows(
                q_ptr, dout_ptr, row, q_row, dout_row, queries, HEAD, HEAD_V, DIM, DIM_V, MASKED
            )
        if TWICE:
            q_across, dout_across = _rows(
                q_ptr, dout_ptr, row, q_row, dout_row, queries, HEAD, HEAD_V, DIM, DIM_V, MASKED,
                True,
            )  # fmt: skip
        else:
            q_across, dout_across = tl.trans(q), tl.trans(dout)
        distance = (row + shift)[None, :] - j[:, None]
        seen = (row < queries)[None, :]
        if RIGHT:
            seen = seen & (distance >= -right)
        if LEFT:
            seen = seen & (distance <= left)
        s = products(
            k, k_ptr + first * none, j, k_row, keys, q_across, q_ptr, row, q_row, queries,
            HEAD, DIM, CHUNK, MASKED, PRECISION,
        )  # fmt: skip
        p, bent = _probabilities(
            s, (lse * LOG2E)[None, :], distance, seen, scale, soft_cap, slope, MASKED, CAP, ALIBI
        )
        shown = p
        if DROPOUT:
            some = kept(seed, (place + row)[None, :], j[:, None], threshold)
            shown = tl.where(some, p * keep, 0.0)
        if VALUES:
            dv = tl.dot(rounded(shown, dout, SHORT), dout, dv, input_precision=PRECISION)
        if KEYS:
            dp = products(
                v, v_ptr + first * none, j, v_row, keys, dout_across, dout_ptr, row, dout_row,
                queries,
                HEAD_V, DIM_V, CHUNK, MASKED, PRECISION,
            )  # fmt: skip
            if DROPOUT:
                dp = tl.where(some, dp * keep, 0.0)
            ds = p * (dp - delta[None, :])
            if CAP:
                ds *= 1.0 - bent * bent
            dk = tl.dot(rounded(ds, q, SHORT), q, dk, input_precision=PRECISION)
    return dk, dv


@triton.jit
def _gradients_of_block(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, alibi_ptr, q_row, q_head, k_row,
    v_row, dout_row, dout_head, lse_head, place, shared, first, queries, keys, left, right, scale,
    soft_cap, threshold, keep, seed, none,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    GROUP: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, CAP: tl.constexpr,
    ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr, SHORT: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EDGE: tl.constexpr, CHUNK: tl.constexpr,
    AHEAD: tl.constexpr, TWICE: tl.constexpr, KEYS: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """(dk, dv) of the keys from `first`; what is not wanted is a scalar."""
    j = first + tl.arange(0, BLOCK_N)
    k = 0.0
    v = 0.0
    if not CHUNK:
        k = tile(k_ptr, j, k_row, keys, HEAD, DIM, True)
        if KEYS:
            v = tile(v_ptr, j, v_row, keys, HEAD_V, DIM_V, True)
    dk = tl.zeros((BLOCK_N, DIM), tl.float32) if KEYS else 0.0
    dv = tl.zeros((BLOCK_N, DIM_V), tl.float32) if VALUES else 0.0
    shift = keys - queries
    last = tl.minimum(first + BLOCK_N, keys) - 1
    lo, full_lo, full_hi, hi = seen_queries(
        first, last, queries, shift, left, right, BLOCK_M, EDGE, LEFT, RIGHT
    )
    for member in range(GROUP):
        head = shared * GROUP + member
        mine = place + head * lse_head
        slope = 0.0
        if ALIBI:
            slope = tl.load(alibi_ptr + head).to(tl.float32) * LOG2E
        for part in tl.static_range(0 if RIGHT else 1, 3):  # an edge, the middle, the other edge
            start = full_lo
            stop = full_hi
            if part == 0:
                start = lo
                stop = tl.minimum(full_lo, hi)
            elif part == 2:
                start = tl.maximum(full_lo, full_hi)
                stop = hi
            dk, dv = _over_queries(
                dk, dv, k, v, k_ptr, v_ptr, k_row, v_row, keys, q_ptr + head * q_head,
                dout_ptr + head * dout_head, lse_ptr + mine, delta_ptr + mine, q_row, dout_row,
                start, stop, j, queries, shift, left, right, scale, soft_cap, slope, threshold,
                keep, seed, mine, none,
                HEAD, HEAD_V, DIM, DIM_V, BLOCK_M if part == 1 else EDGE, part != 1, LEFT, RIGHT,
                CAP, ALIBI, DROPOUT, PRECISION, SHORT, CHUNK, AHEAD and part == 1,
                TWICE and part == 1, KEYS, VALUES,
            )  # fmt: skip
    return dk, dv


@triton.jit
def _store(pointer, gradient, row, step, length, HEAD: tl.constexpr, DIM: tl.constexpr):
    d = tl.arange(0, DIM)
    inside = (row < length)[:, None] & (d < HEAD)[None, :]
    at = pointer + row[:, None] * step + d[None, :]
    tl.store(at, gradient.to(pointer.dtype.element_ty), mask=inside)


@triton.jit
def attention_backward_kv_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, alibi_ptr,
    starts_q_ptr, starts_k_ptr,
    q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head,
    dout_batch, dout_row, dout_head, dk_batch, dk_row, dk_head, dv_batch, dv_row, dv_head,
    lse_batch, lse_head, queries, keys, heads, left, right, scale, soft_cap, threshold, keep, seed,
    none, HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    GROUP: tl.constexpr, VARLEN: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    SHORT: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EDGE: tl.constexpr,
    CHUNK: tl.constexpr, AHEAD: tl.constexpr, TWICE: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """One block of keys of one head, over all queries of all heads that share it. With `SPLIT`,
    programs along the second axis compute either dk or dv: both are too much for few registers."""
    number = shared_out(tl.program_id(0), tl.num_programs(0), XCDS)
    blocks = tl.cdiv(keys, BLOCK_N)
    block = number % blocks
    number = number // blocks
    shared = number % (heads // GROUP)
    batch = number // (heads // GROUP)
    start_q, queries = sequence(starts_q_ptr, batch, queries, VARLEN, WIDE)
    start_k, keys = sequence(starts_k_ptr, batch, keys, VARLEN, WIDE)
    first = block * BLOCK_N
    if VARLEN:
        if first >= keys:
            return
    if WIDE:
        batch = batch.to(tl.int64)
        q_row = tl.cast(q_row, tl.int64)
        k_row = tl.cast(k_row, tl.int64)
        v_row = tl.cast(v_row, tl.int64)
        dout_row = tl.cast(dout_row, tl.int64)
        dk_row = tl.cast(dk_row, tl.int64)
        dv_row = tl.cast(dv_row, tl.int64)
    q_ptr += batch * q_batch + start_q * q_row
    k_ptr += batch * k_batch + start_k * k_row + shared * k_head
    v_ptr += batch * v_batch + start_k * v_row + shared * v_head
    dout_ptr += batch * dout_batch + start_q * dout_row
    dk_ptr += batch * dk_batch + start_k * dk_row + shared * dk_head
    dv_ptr += batch * dv_batch + start_k * dv_row + shared * dv_head
    place = batch * lse_batch + start_q
    j = first + tl.arange(0, BLOCK_N)
    if not SPLIT:
        dk, dv = _gradients_of_block(
            q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, alibi_ptr, q_row, q_head, k_row,
            v_row, dout_row, dout_head, lse_head, place, shared, first, queries, keys, left,
            right, scale,
            soft_cap, threshold, keep, seed, none,
            HEAD, HEAD_V, DIM, DIM_V, GROUP, LEFT, RIGHT, CAP, ALIBI, DROPOUT, PRECISION, SHORT,
            BLOCK_M, BLOCK_N, EDGE, CHUNK, AHEAD, TWICE, True, True,
        )  # fmt: skip
        _store(dk_ptr, dk * scale, j, dk_row, keys, HEAD, DIM)
        _store(dv_ptr, dv, j, dv_row, keys, HEAD_V, DIM_V)
    elif tl.program_id(1) == 0:
        dk, _ = _gradients_of_block(
            q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, alibi_ptr, q_row, q_head, k_row,
            v_row, dout_row, dout_head, lse_head, place, shared, first, queries, keys, left,
            right, scale,
            soft_cap, threshold, keep, seed, none,
            HEAD, HEAD_V, DIM, DIM_V, GROUP, LEFT, RIGHT, CAP, ALIBI, DROPOUT, PRECISION, SHORT,
            BLOCK_M, BLOCK_N, EDGE, CHUNK, AHEAD, TWICE, True, False,
        )  # fmt: skip
        _store(dk_ptr, dk * scale, j, dk_row, keys, HEAD, DIM)
    else:
        _, dv = _gradients_of_block(
            q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, alibi_ptr, q_row, q_head, k_row,
            v_row, dout_row, dout_head, lse_head, place, shared, first, queries, keys, left,
            right, scale,
            soft_cap, threshold, keep, seed, none,
            HEAD, HEAD_V, DIM, DIM_V, GROUP, LEFT, RIGHT, CAP, ALIBI, DROPOUT, PRECISION, SHORT,
            BLOCK_M, BLOCK_N, EDGE, CHUNK, AHEAD, TWICE, False, True,
        )  # fmt: skip
        _store(dv_ptr, dv, j, dv_row, keys, HEAD_V, DIM_V)


@triton.jit
def _keys(
    k_ptr, v_ptr, j, k_row, v_row, keys,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    MASKED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """(k, v) of rows, v across."""
    k = tile(k_ptr, j, k_row, keys, HEAD, DIM, MASKED)
    v = 0.0
    if not CHUNK:
        v = tile(v_ptr, j, v_row, keys, HEAD_V, DIM_V, MASKED, 0, True)
    return k, v


@triton.jit
def _over_keys(
    dq, q, dout, q_ptr, dout_ptr, q_row, dout_row, place, queries, lse, delta, k_ptr, v_ptr, k_row,
    v_row, start, stop, i, keys, left, right, scale, soft_cap, slope, threshold, keep, seed, row,
    none,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    SHORT: tl.constexpr, CHUNK: tl.constexpr, AHEAD: tl.constexpr, TWICE: tl.constexpr,
):  # fmt: skip
    STAGES: tl.constexpr = 1 if MASKED else None
    if AHEAD:
        j = start + tl.arange(0, BLOCK)
        k_next, v_next = _keys(
            k_ptr, v_ptr, j, k_row, v_row, keys, HEAD, HEAD_V, DIM, DIM_V, True, CHUNK
        )
    for first in tl.range(start, stop, BLOCK, num_stages=STAGES):
        j = first + tl.arange(0, BLOCK)
        if AHEAD:
            k, v = k_next, v_next
            k_next, v_next = _keys(
                k_ptr, v_ptr, j + BLOCK, k_row, v_row, keys, HEAD, HEAD_V, DIM, DIM_V, True, CHUNK
            )
        else:
            k, v = _keys(
                k_ptr, v_ptr, j, k_row, v_row, keys, HEAD, HEAD_V, DIM, DIM_V, MASKED, CHUNK
            )
        if TWICE:
            k_across = tile(k_ptr, j, k_row, keys, HEAD, DIM, MASKED, 0, True)
        else:
            k_across = tl.trans(k)
        distance = i[:, None] - j[None, :]
        seen = (j < keys)[None, :]
        if RIGHT:
            seen = seen & (distance >= -right)
        if LEFT:
            seen = seen & (distance <= left)
        s = products(
            q, q_ptr + first * none, place, q_row, queries, k_across, k_ptr, j, k_row, keys,
            HEAD, DIM, CHUNK, MASKED, PRECISION,
        )  # fmt: skip
        p, bent = _probabilities(
            s, lse[:, None], distance, seen, scale, soft_cap, slope, MASKED, CAP, ALIBI
        )
        dp = products(
            dout, dout_ptr + first * none, place, dout_row, queries, v, v_ptr, j, v_row, keys,
            HEAD_V, DIM_V, CHUNK, MASKED, PRECISION,
        )  # fmt: skip
        if DROPOUT:
            dp = tl.where(kept(seed, row[:, None], j[None, :], threshold), dp * keep, 0.0)
        ds = p * (dp - delta[:, None])
        if CAP:
            ds *= 1.0 - bent * bent
        dq = tl.dot(rounded(ds, k, SHORT), k, dq, input_precision=PRECISION)
    return dq


@triton.jit
def attention_backward_q_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, alibi_ptr,
    starts_q_ptr, starts_k_ptr,
    q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head,
    dout_batch, dout_row, dout_head, dq_batch, dq_row, dq_head,
    lse_batch, lse_head, queries, keys, heads, left, right, scale, soft_cap, threshold, keep, seed,
    none, HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    GROUP: tl.constexpr, VARLEN: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    SHORT: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EDGE: tl.constexpr,
    CHUNK: tl.constexpr, AHEAD: tl.constexpr, TWICE: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head, in the order of the forward kernel."""
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
        dout_row = tl.cast(dout_row, tl.int64)
        dq_row = tl.cast(dq_row, tl.int64)
    q_ptr += batch * q_batch + start_q * q_row + head * q_head
    k_ptr += batch * k_batch + start_k * k_row + shared * k_head
    v_ptr += batch * v_batch + start_k * v_row + shared * v_head
    dout_ptr += batch * dout_batch + start_q * dout_row + head * dout_head
    dq_ptr += batch * dq_batch + start_q * dq_row + head * dq_head
    place = batch * lse_batch + head * lse_head + start_q
    row = first + tl.arange(0, BLOCK_M)
    inside = row < queries
    q = 0.0
    dout = 0.0
    if not CHUNK:
        q = tile(q_ptr, row, q_row, queries, HEAD, DIM, True)
        dout = tile(dout_ptr, row, dout_row, queries, HEAD_V, DIM_V, True)
    lse = tl.load(lse_ptr + place + row, mask=inside, other=float("inf"))
    lse = tl.where(lse == float("-inf"), 0.0, lse) * LOG2E
    delta = tl.load(delta_ptr + place + row, mask=inside, other=0.0)
    slope = 0.0
    if ALIBI:
        slope = tl.load(alibi_ptr + head).to(tl.float32) * LOG2E
    dq = tl.zeros((BLOCK_M, DIM), tl.float32)
    shift = keys - queries
    i = row + shift
    last = tl.minimum(first + BLOCK_M, queries) - 1 + shift
    lo, full_lo, full_hi, hi = seen_keys(
        first + shift, last, keys, left, right, BLOCK_N, EDGE, LEFT, RIGHT
    )
    for part in tl.static_range(0 if LEFT else 1, 3):  # the left edge, the middle, the right edge
        start = full_lo
        stop = full_hi
        if part == 0:
            start = lo
            stop = tl.minimum(full_lo, hi)
        elif part == 2:
            start = tl.maximum(full_lo, full_hi)
            stop = hi
        dq = _over_keys(
            dq, q, dout, q_ptr, dout_ptr, q_row, dout_row, row, queries, lse, delta, k_ptr, v_ptr,
            k_row, v_row, start, stop, i,
            keys, left, right, scale, soft_cap, slope, threshold, keep, seed, place + row, none,
            HEAD, HEAD_V, DIM, DIM_V, BLOCK_N if part == 1 else EDGE, part != 1, LEFT, RIGHT, CAP,
            ALIBI, DROPOUT, PRECISION, SHORT, CHUNK, AHEAD and part == 1, TWICE and part == 1,
        )  # fmt: skip
    _store(dq_ptr, dq * scale, row, dq_row, queries, HEAD, DIM)


__all__ = ["attention_backward_kv_kernel", "attention_backward_q_kernel"]
