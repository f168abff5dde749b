# pyright: reportArgumentType=false, reportGeneralTypeIssues=false
# pyright: reportAssignmentType=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false
# (arguments of Triton functions become constants as they are compiled)
"""The backward kernels: delta, gradients of keys and values in a loop over queries, gradients of
queries in a loop over keys.

Every program owns the rows it writes, so that sums have a fixed order. With P the probabilities and
delta = rowsum(dout · out) - dlse,

    dv = Pᵀ · dout,   dS = P · (dout · vᵀ - delta),   dk = dSᵀ · q · scale,   dq = dS · k · scale.
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
    round_like,
    seen_keys,
    seen_queries,
    sequence,
    tanh_of_cap,
)


@triton.jit
def attention_delta_kernel(
    out_ptr, dout_ptr, dlse_ptr, delta_ptr, rows, heads, queries, lse_batch, lse_head,
    HEAD: tl.constexpr, DIM: tl.constexpr, DLSE: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """Of rows in the order (batch, query, head), to the order of lse."""
    offs_m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row_mask = offs_m < rows
    query = offs_m // heads
    lse_offs = query // queries * lse_batch + query % queries + offs_m % heads * lse_head
    offs_d = tl.arange(0, DIM)
    wide = offs_m.to(tl.int64) if WIDE else offs_m
    mask = row_mask[:, None] & (offs_d < HEAD)[None, :]
    out = tl.load(out_ptr + wide[:, None] * HEAD + offs_d[None, :], mask=mask, other=0.0)
    dout = tl.load(dout_ptr + wide[:, None] * HEAD + offs_d[None, :], mask=mask, other=0.0)
    delta = tl.sum(out.to(tl.float32) * dout.to(tl.float32), 1)
    if DLSE:
        delta -= tl.load(dlse_ptr + lse_offs, mask=row_mask, other=0.0).to(tl.float32)
    tl.store(delta_ptr + lse_offs, delta, mask=row_mask)


@triton.jit
def _probabilities(
    qk, lse, distance, mask, scale, soft_cap, alibi,
    mask_ptr, offs_m, mask_row, queries, offs_n, keys,
    MASKED: tl.constexpr, CAP: tl.constexpr, ALIBI: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """(probabilities, tanh of the soft cap) of q · kᵀ; `lse` in powers of two."""
    factor = scale * LOG2E
    tanh = qk
    if CAP:
        tanh = tanh_of_cap(qk, scale, soft_cap)
        qk = tanh
        factor = soft_cap * LOG2E
    qk = qk * factor - lse
    if ALIBI:
        qk -= alibi * tl.abs(distance).to(tl.float32)
    if MASKED:
        qk = tl.where(mask, qk, float("-inf"))
    if MASK:
        qk = masked(qk, mask_ptr, offs_m, mask_row, queries, offs_n, keys)
    return tl.exp2(qk), tanh


@triton.jit
def _load_rows(
    q_ptr, dout_ptr, offs_m, q_row, dout_row, queries,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    MASKED: tl.constexpr, TRANSPOSED: tl.constexpr = False,
):  # fmt: skip
    """(q, dout) of rows."""
    q = load_tile(q_ptr, offs_m, q_row, queries, HEAD, DIM, MASKED, 0, TRANSPOSED)
    dout = load_tile(dout_ptr, offs_m, dout_row, queries, HEAD_V, DIM_V, MASKED, 0, TRANSPOSED)
    return q, dout


@triton.jit
def _loop_over_queries(
    dk, dv, k, v, k_ptr, v_ptr, k_row, v_row, keys, q_ptr, dout_ptr, lse_ptr, delta_ptr, q_row,
    dout_row, start, stop, offs_n, queries, shift, left, right, scale, soft_cap, alibi, threshold,
    keep, seed, lse_offs, zero, mask_ptr, mask_row,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    SHORT: tl.constexpr, CHUNK: tl.constexpr, AHEAD: tl.constexpr, TWICE: tl.constexpr,
    KEYS: tl.constexpr, VALUES: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """Adds to dk if `KEYS`, to dv if `VALUES`. With `AHEAD`, the rows of a step are loaded one step
    before. With `TWICE`, they are loaded once for each product they are in: the compiler can then
    load both ahead, straight to where they are read from."""
    STAGES: tl.constexpr = 1 if MASKED else None
    if AHEAD:
        q_next, dout_next = _load_rows(
            q_ptr, dout_ptr, start + tl.arange(0, BLOCK), q_row, dout_row, queries,
            HEAD, HEAD_V, DIM, DIM_V, True,
        )  # fmt: skip
    for first in tl.range(start, stop, BLOCK, num_stages=STAGES):
        offs_m = first + tl.arange(0, BLOCK)
        if MASKED:  # rows past the end have no probabilities
            lse = tl.load(lse_ptr + offs_m, mask=offs_m < queries, other=float("inf"))
            delta = tl.load(delta_ptr + offs_m, mask=offs_m < queries, other=0.0)
            lse = tl.where(lse == float("-inf"), 0.0, lse)
        else:
            lse = tl.load(lse_ptr + offs_m)
            delta = tl.load(delta_ptr + offs_m)
        if AHEAD:
            q, dout = q_next, dout_next
            q_next, dout_next = _load_rows(
                q_ptr, dout_ptr, offs_m + BLOCK, q_row, dout_row, queries,
                HEAD, HEAD_V, DIM, DIM_V, True,
            )  # fmt: skip
        else:
            q, dout = _load_rows(
                q_ptr, dout_ptr, offs_m, q_row, dout_row, queries, HEAD, HEAD_V, DIM, DIM_V, MASKED
            )
        if TWICE:
            q_t, dout_t = _load_rows(
                q_ptr, dout_ptr, offs_m, q_row, dout_row, queries, HEAD, HEAD_V, DIM, DIM_V, MASKED,
                True,
            )  # fmt: skip
        else:
            q_t, dout_t = tl.trans(q), tl.trans(dout)
        distance = (offs_m + shift)[None, :] - offs_n[:, None]
        mask = (offs_m < queries)[None, :]
        if RIGHT:
            mask = mask & (distance >= -right)
        if LEFT:
            mask = mask & (distance <= left)
        qk = dot(
            k, k_ptr + first * zero, offs_n, k_row, keys, q_t, q_ptr, offs_m, q_row, queries,
            HEAD, DIM, CHUNK, MASKED, PRECISION,
        )  # fmt: skip
        p, tanh = _probabilities(
            qk, (lse * LOG2E)[None, :], distance, mask, scale, soft_cap, alibi,
            mask_ptr, offs_m[None, :], mask_row, queries, offs_n[:, None], keys,
            MASKED, CAP, ALIBI, MASK,
        )  # fmt: skip
        p_kept = p
        if DROPOUT:
            keep_mask = dropout_mask(seed, (lse_offs + offs_m)[None, :], offs_n[:, None], threshold)
            p_kept = tl.where(keep_mask, p * keep, 0.0)
        if VALUES:
            dv = tl.dot(round_like(p_kept, dout, SHORT), dout, dv, input_precision=PRECISION)
        if KEYS:
            dp = dot(
                v, v_ptr + first * zero, offs_n, v_row, keys,
                dout_t, dout_ptr, offs_m, dout_row, queries,
                HEAD_V, DIM_V, CHUNK, MASKED, PRECISION,
            )  # fmt: skip
            if DROPOUT:
                dp = tl.where(keep_mask, dp * keep, 0.0)
            ds = p * (dp - delta[None, :])
            if CAP:
                ds *= 1.0 - tanh * tanh
            dk = tl.dot(round_like(ds, q, SHORT), q, dk, input_precision=PRECISION)
    return dk, dv


@triton.jit
def _key_block(
    operands,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    GROUP: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, CAP: tl.constexpr,
    ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr, SHORT: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EDGE: tl.constexpr, CHUNK: tl.constexpr,
    AHEAD: tl.constexpr, TWICE: tl.constexpr, MASK: tl.constexpr, KEYS: tl.constexpr,
    VALUES: tl.constexpr,
):  # fmt: skip
    """(dk, dv) of the keys from `first`; a gradient that is not wanted is a scalar."""
    (
        q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, alibi_ptr, q_row, q_head, k_row, v_row,
        dout_row, dout_head, lse_head, lse_offs, kv_head, first, queries, keys, left, right, scale,
        soft_cap, threshold, keep, seed, zero, mask_ptr, mask_head, mask_row,
    ) = operands  # fmt: skip
    offs_n = first + tl.arange(0, BLOCK_N)
    k = 0.0
    v = 0.0
    if not CHUNK:
        k = load_tile(k_ptr, offs_n, k_row, keys, HEAD, DIM, True)
        if KEYS:
            v = load_tile(v_ptr, offs_n, v_row, keys, HEAD_V, DIM_V, True)
    dk = tl.zeros((BLOCK_N, DIM), tl.float32) if KEYS else 0.0
    dv = tl.zeros((BLOCK_N, DIM_V), tl.float32) if VALUES else 0.0
    shift = keys - queries
    last = tl.minimum(first + BLOCK_N, keys) - 1
    lo, full_lo, full_hi, hi = seen_queries(
        first, last, queries, shift, left, right, BLOCK_M, EDGE, LEFT, RIGHT
    )
    for group_head in range(GROUP):
        head = kv_head * GROUP + group_head
        head_offs = lse_offs + head * lse_head
        alibi = 0.0
        if ALIBI:
            alibi = tl.load(alibi_ptr + head).to(tl.float32) * LOG2E
        head_mask_ptr = mask_ptr
        if MASK:
            head_mask_ptr = mask_ptr + head * mask_head
        for part in tl.static_range(0 if RIGHT else 1, 3):
            start, stop = loop_bounds(part, lo, full_lo, full_hi, hi)
            dk, dv = _loop_over_queries(
                dk, dv, k, v, k_ptr, v_ptr, k_row, v_row, keys, q_ptr + head * q_head,
                dout_ptr + head * dout_head, lse_ptr + head_offs, delta_ptr + head_offs,
                q_row, dout_row, start, stop, offs_n, queries, shift, left, right, scale, soft_cap,
                alibi, threshold, keep, seed, head_offs, zero, head_mask_ptr, mask_row,
                HEAD, HEAD_V, DIM, DIM_V, BLOCK_M if part == 1 else EDGE, part != 1, LEFT, RIGHT,
                CAP, ALIBI, DROPOUT, PRECISION, SHORT, CHUNK, AHEAD and part == 1,
                TWICE and part == 1, KEYS, VALUES, MASK,
            )  # fmt: skip
    return dk, dv


@triton.jit
def _store(ptr, grad, offs_m, stride, length, HEAD: tl.constexpr, DIM: tl.constexpr):
    offs_d = tl.arange(0, DIM)
    mask = (offs_m < length)[:, None] & (offs_d < HEAD)[None, :]
    ptrs = ptr + offs_m[:, None] * stride + offs_d[None, :]
    tl.store(ptrs, grad.to(ptr.dtype.element_ty), mask=mask)


@triton.jit
def attention_backward_kv_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, alibi_ptr,
    starts_q_ptr, starts_k_ptr, mask_ptr,
    q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head,
    dout_batch, dout_row, dout_head, dk_batch, dk_row, dk_head, dv_batch, dv_row, dv_head,
    lse_batch, lse_head, queries, keys, heads, left, right, scale, soft_cap, threshold, keep, seed,
    zero, mask_batch, mask_head, mask_row,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    GROUP: tl.constexpr, VARLEN: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    SHORT: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr, MASK: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EDGE: tl.constexpr,
    CHUNK: tl.constexpr, AHEAD: tl.constexpr, TWICE: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """One block of keys of one head, over all queries of all heads that share it. With `SPLIT`,
    programs along the second axis compute either dk or dv: both are too much for few registers."""
    pid = remap_xcds(tl.program_id(0), tl.num_programs(0), XCDS)
    blocks = tl.cdiv(keys, BLOCK_N)
    block = pid % blocks
    pid = pid // blocks
    kv_head = pid % (heads // GROUP)
    batch = pid // (heads // GROUP)
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
        mask_row = tl.cast(mask_row, tl.int64)
        dk_row = tl.cast(dk_row, tl.int64)
        dv_row = tl.cast(dv_row, tl.int64)
    q_ptr += batch * q_batch + start_q * q_row
    k_ptr += batch * k_batch + start_k * k_row + kv_head * k_head
    v_ptr += batch * v_batch + start_k * v_row + kv_head * v_head
    dout_ptr += batch * dout_batch + start_q * dout_row
    dk_ptr += batch * dk_batch + start_k * dk_row + kv_head * dk_head
    dv_ptr += batch * dv_batch + start_k * dv_row + kv_head * dv_head
    if MASK:
        mask_ptr += batch * mask_batch
    lse_offs = batch * lse_batch + start_q
    offs_n = first + tl.arange(0, BLOCK_N)
    operands = (
        q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, alibi_ptr, q_row, q_head, k_row, v_row,
        dout_row, dout_head, lse_head, lse_offs, kv_head, first, queries, keys, left, right, scale,
        soft_cap, threshold, keep, seed, zero, mask_ptr, mask_head, mask_row,
    )  # fmt: skip
    if not SPLIT:
        dk, dv = _key_block(
            operands, HEAD, HEAD_V, DIM, DIM_V, GROUP, LEFT, RIGHT, CAP, ALIBI, DROPOUT, PRECISION,
            SHORT, BLOCK_M, BLOCK_N, EDGE, CHUNK, AHEAD, TWICE, MASK, True, True,
        )  # fmt: skip
        _store(dk_ptr, dk * scale, offs_n, dk_row, keys, HEAD, DIM)
        _store(dv_ptr, dv, offs_n, dv_row, keys, HEAD_V, DIM_V)
    elif tl.program_id(1) == 0:
        dk, _ = _key_block(
            operands, HEAD, HEAD_V, DIM, DIM_V, GROUP, LEFT, RIGHT, CAP, ALIBI, DROPOUT, PRECISION,
            SHORT, BLOCK_M, BLOCK_N, EDGE, CHUNK, AHEAD, TWICE, MASK, True, False,
        )  # fmt: skip
        _store(dk_ptr, dk * scale, offs_n, dk_row, keys, HEAD, DIM)
    else:
        _, dv = _key_block(
            operands, HEAD, HEAD_V, DIM, DIM_V, GROUP, LEFT, RIGHT, CAP, ALIBI, DROPOUT, PRECISION,
            SHORT, BLOCK_M, BLOCK_N, EDGE, CHUNK, AHEAD, TWICE, MASK, False, True,
        )  # fmt: skip
        _store(dv_ptr, dv, offs_n, dv_row, keys, HEAD_V, DIM_V)


@triton.jit
def _load_keys(
    k_ptr, v_ptr, offs_n, k_row, v_row, keys,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    MASKED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """(k, v) of rows, v transposed."""
    k = load_tile(k_ptr, offs_n, k_row, keys, HEAD, DIM, MASKED)
    v = 0.0
    if not CHUNK:
        v = load_tile(v_ptr, offs_n, v_row, keys, HEAD_V, DIM_V, MASKED, 0, True)
    return k, v


@triton.jit
def _loop_over_keys(
    dq, q, dout, q_ptr, dout_ptr, q_row, dout_row, offs_m, queries, lse, delta, k_ptr, v_ptr, k_row,
    v_row, start, stop, positions, keys, left, right, scale, soft_cap, alibi, threshold, keep, seed,
    lse_offs, zero, mask_ptr, mask_row,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    SHORT: tl.constexpr, CHUNK: tl.constexpr, AHEAD: tl.constexpr, TWICE: tl.constexpr,
    MASK: tl.constexpr,
):  # fmt: skip
    STAGES: tl.constexpr = 1 if MASKED else None
    if AHEAD:
        offs_n = start + tl.arange(0, BLOCK)
        k_next, v_next = _load_keys(
            k_ptr, v_ptr, offs_n, k_row, v_row, keys, HEAD, HEAD_V, DIM, DIM_V, True, CHUNK
        )
    for first in tl.range(start, stop, BLOCK, num_stages=STAGES):
        offs_n = first + tl.arange(0, BLOCK)
        if AHEAD:
            k, v = k_next, v_next
            k_next, v_next = _load_keys(
                k_ptr, v_ptr, offs_n + BLOCK, k_row, v_row, keys,
                HEAD, HEAD_V, DIM, DIM_V, True, CHUNK,
            )  # fmt: skip
        else:
            k, v = _load_keys(
                k_ptr, v_ptr, offs_n, k_row, v_row, keys, HEAD, HEAD_V, DIM, DIM_V, MASKED, CHUNK
            )
        if TWICE:
            k_t = load_tile(k_ptr, offs_n, k_row, keys, HEAD, DIM, MASKED, 0, True)
        else:
            k_t = tl.trans(k)
        distance = positions[:, None] - offs_n[None, :]
        mask = (offs_n < keys)[None, :]
        if RIGHT:
            mask = mask & (distance >= -right)
        if LEFT:
            mask = mask & (distance <= left)
        qk = dot(
            q, q_ptr + first * zero, offs_m, q_row, queries, k_t, k_ptr, offs_n, k_row, keys,
            HEAD, DIM, CHUNK, MASKED, PRECISION,
        )  # fmt: skip
        p, tanh = _probabilities(
            qk, lse[:, None], distance, mask, scale, soft_cap, alibi,
            mask_ptr, offs_m[:, None], mask_row, queries, offs_n[None, :], keys,
            MASKED, CAP, ALIBI, MASK,
        )  # fmt: skip
        dp = dot(
            dout, dout_ptr + first * zero, offs_m, dout_row, queries, v, v_ptr, offs_n, v_row, keys,
            HEAD_V, DIM_V, CHUNK, MASKED, PRECISION,
        )  # fmt: skip
        if DROPOUT:
            keep_mask = dropout_mask(seed, lse_offs[:, None], offs_n[None, :], threshold)
            dp = tl.where(keep_mask, dp * keep, 0.0)
        ds = p * (dp - delta[:, None])
        if CAP:
            ds *= 1.0 - tanh * tanh
        dq = tl.dot(round_like(ds, k, SHORT), k, dq, input_precision=PRECISION)
    return dq


@triton.jit
def attention_backward_q_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, alibi_ptr,
    starts_q_ptr, starts_k_ptr, mask_ptr,
    q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head,
    dout_batch, dout_row, dout_head, dq_batch, dq_row, dq_head,
    lse_batch, lse_head, queries, keys, heads, left, right, scale, soft_cap, threshold, keep, seed,
    zero, mask_batch, mask_head, mask_row,
    HEAD: tl.constexpr, HEAD_V: tl.constexpr, DIM: tl.constexpr, DIM_V: tl.constexpr,
    GROUP: tl.constexpr, VARLEN: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
    CAP: tl.constexpr, ALIBI: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
    SHORT: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr, MASK: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EDGE: tl.constexpr,
    CHUNK: tl.constexpr, AHEAD: tl.constexpr, TWICE: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head, in the order of the forward kernel."""
    pid = remap_xcds(tl.program_id(0), tl.num_programs(0), XCDS)
    head = pid % GROUP
    pid = pid // GROUP
    blocks = tl.cdiv(queries, BLOCK_M)
    block = blocks - 1 - pid % blocks
    pid = pid // blocks
    kv_head = pid % (heads // GROUP)
    batch = pid // (heads // GROUP)
    head += kv_head * GROUP
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
        mask_row = tl.cast(mask_row, tl.int64)
        dq_row = tl.cast(dq_row, tl.int64)
    q_ptr += batch * q_batch + start_q * q_row + head * q_head
    k_ptr += batch * k_batch + start_k * k_row + kv_head * k_head
    v_ptr += batch * v_batch + start_k * v_row + kv_head * v_head
    dout_ptr += batch * dout_batch + start_q * dout_row + head * dout_head
    dq_ptr += batch * dq_batch + start_q * dq_row + head * dq_head
    lse_offs = batch * lse_batch + head * lse_head + start_q
    if MASK:
        mask_ptr += batch * mask_batch + head * mask_head
    offs_m = first + tl.arange(0, BLOCK_M)
    mask = offs_m < queries
    q = 0.0
    dout = 0.0
    if not CHUNK:
        q = load_tile(q_ptr, offs_m, q_row, queries, HEAD, DIM, True)
        dout = load_tile(dout_ptr, offs_m, dout_row, queries, HEAD_V, DIM_V, True)
    lse = tl.load(lse_ptr + lse_offs + offs_m, mask=mask, other=float("inf"))
    lse = tl.where(lse == float("-inf"), 0.0, lse) * LOG2E
    delta = tl.load(delta_ptr + lse_offs + offs_m, mask=mask, other=0.0)
    alibi = 0.0
    if ALIBI:
        alibi = tl.load(alibi_ptr + head).to(tl.float32) * LOG2E
    dq = tl.zeros((BLOCK_M, DIM), tl.float32)
    shift = keys - queries
    positions = offs_m + shift
    last = tl.minimum(first + BLOCK_M, queries) - 1 + shift
    lo, full_lo, full_hi, hi = seen_keys(
        first + shift, last, keys, left, right, BLOCK_N, EDGE, LEFT, RIGHT
    )
    for part in tl.static_range(0 if LEFT else 1, 3):
        start, stop = loop_bounds(part, lo, full_lo, full_hi, hi)
        dq = _loop_over_keys(
            dq, q, dout, q_ptr, dout_ptr, q_row, dout_row, offs_m, queries, lse, delta,
            k_ptr, v_ptr, k_row, v_row, start, stop, positions, keys, left, right, scale, soft_cap,
            alibi, threshold, keep, seed, lse_offs + offs_m, zero, mask_ptr, mask_row,
            HEAD, HEAD_V, DIM, DIM_V, BLOCK_N if part == 1 else EDGE, part != 1, LEFT, RIGHT, CAP,
            ALIBI, DROPOUT, PRECISION, SHORT, CHUNK, AHEAD and part == 1, TWICE and part == 1,
            MASK,
        )  # fmt: skip
    _store(dq_ptr, dq * scale, offs_m, dq_row, queries, HEAD, DIM)
