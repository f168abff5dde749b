"""Attention of several new tokens per sequence over a paged cache: prefill, decode, or both."""

# Names bound under a constexpr are bound where they are used.
# pyright: reportPossiblyUnboundVariable=false
# Arguments of Triton functions become constants as they are compiled.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

from functools import partial

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.dtypes import lookup
from wavecast.kernels import checks, choice
from wavecast.kernels.attention.parts import loop_bounds, round_like
from wavecast.kernels.decode import arguments
from wavecast.kernels.decode.parts import (
    FP8_NAN,
    cache_blocks,
    cache_ptrs,
    capped,
    chunked_scores,
    load_tokens,
    widen,
)
from wavecast.kernels.decode.reference import reference_attention
from wavecast.kernels.decode.sizes import llama, made_lengths, paged_inputs, paged_work
from wavecast.kernels.describe import Axes, Device, KernelSpec, Operator, Problem, Settings
from wavecast.launch import gpu
from wavecast.perfmodel.ranking.cache import PrefillLoop

TENSORS = arguments.signature("tokens", "starts: [sequences + 1] index")
_M_INIT: tl.constexpr = tl.constexpr(-1e38)
"""The maximum of no scores: finite, so that differences with it are finite."""


@triton.jit
def _step(
    acc, l_i, m_i, next_k, blocks, next_blocks, start_n, hi,
    q, q_ptrs, row_mask, offs_d, offs_v, position, table, keys, values,
    qk_scale, alibi, soft_cap, window, key_block, key_token, value_block, value_token,
    HEAD: tl.constexpr, PADDED: tl.constexpr, BLOCK_SIZE: tl.constexpr, BLOCK_N: tl.constexpr,
    CHUNK: tl.constexpr, EARLY: tl.constexpr, EDGE: tl.constexpr, WINDOW: tl.constexpr,
    ALIBI: tl.constexpr, CAPPED: tl.constexpr, SHORT: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Online softmax over the tokens from `start_n` to `start_n + BLOCK_N`, which all queries see
    unless EDGE. `m_i` is in powers of two. With EARLY, the keys of the next tile are loaded before
    the product with those of this one, else after it."""
    dtype: tl.constexpr = q_ptrs.dtype.element_ty
    offs_n = tl.arange(0, BLOCK_N)
    next_n = start_n + BLOCK_N
    token_mask = start_n + offs_n < (hi if EDGE else next_n)
    ptrs = cache_ptrs(values, blocks, start_n, value_block, value_token, BLOCK_N, BLOCK_SIZE, WIDE)
    if CHUNK == PADDED:
        k = next_k
        v = load_tokens(ptrs, offs_v, token_mask, HEAD, PADDED)
        if not EARLY:
            qk = tl.dot(q, tl.trans(widen(k, dtype)), out_dtype=tl.float32)
        ptrs = cache_ptrs(
            keys, next_blocks, next_n, key_block, key_token, BLOCK_N, BLOCK_SIZE, WIDE
        )
        next_k = load_tokens(ptrs, offs_d, next_n + offs_n < hi, HEAD, PADDED)
        if EARLY:
            qk = tl.dot(q, tl.trans(widen(k, dtype)), out_dtype=tl.float32)
    else:
        k_ptrs = cache_ptrs(keys, blocks, start_n, key_block, key_token, BLOCK_N, BLOCK_SIZE, WIDE)
        qk = chunked_scores(
            q_ptrs, row_mask, k_ptrs, token_mask, tl.minimum(start_n, 0),
            HEAD, PADDED, CHUNK, BLOCK_N, q_ptrs.shape[0], dtype,
        )  # fmt: skip
        v = load_tokens(ptrs, offs_v, token_mask, HEAD, PADDED)
    blocks = next_blocks
    next_blocks = cache_blocks(table, next_n + BLOCK_N, hi, BLOCK_N, BLOCK_SIZE)
    if CAPPED:
        qk = capped(qk * qk_scale, soft_cap) * 1.4426950408889634
        qk_scale = 1.0
    if ALIBI or EDGE or CHUNK != PADDED:
        distance = start_n + offs_n[None, :] - position[:, None]
        qk *= qk_scale
        qk_scale = 1.0
        if ALIBI:
            qk += alibi[:, None] * distance.to(tl.float32)
        if EDGE:
            visible = distance <= 0
            if WINDOW:
                visible &= distance > -window
            qk = tl.where(visible, qk, float("-inf"))
    m_new = tl.maximum(m_i, tl.max(qk, axis=1) * qk_scale)
    p = tl.exp2(qk * qk_scale - m_new[:, None])
    alpha = tl.exp2(m_i - m_new)
    l_i = l_i * alpha + tl.sum(p, axis=1)
    v = widen(v, dtype)
    acc = acc * alpha[:, None]
    acc = tl.dot(round_like(p, v, SHORT), v, acc, out_dtype=tl.float32)
    return acc, l_i, m_new, next_k, blocks, next_blocks


@triton.jit
def paged_attention_kernel(
    q_ptr, key_cache_ptr, value_cache_ptr, starts_ptr, block_table_ptr, lengths_ptr,
    k_scale_ptr, v_scale_ptr, sinks_ptr, alibi_ptr, out_ptr, scale, soft_cap, window,
    sequences, group, q_row, q_head, out_row, table_stride,
    key_block, key_token, key_head, value_block, value_token, value_head, k_step, v_step,
    HEAD: tl.constexpr, PADDED: tl.constexpr, VALUE: tl.constexpr, GROUP: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, WINDOW: tl.constexpr, SINKS: tl.constexpr, ALIBI: tl.constexpr,
    CAPPED: tl.constexpr,
    K_SCALED: tl.constexpr, V_SCALED: tl.constexpr, SHORT: tl.constexpr, WIDE: tl.constexpr,
    QUERIES: tl.constexpr, BLOCK_N: tl.constexpr, CHUNK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """A program takes QUERIES successive tokens of a sequence with GROUP heads each, those of one
    head of keys: rows of one product, and VALUE elements of their values. Sequence s has the
    programs from start[s] // QUERIES + s on, so that the grid is known without reading the starts;
    those that are too many end at once."""
    head = tl.program_id(0)
    pid = tl.program_id(1)
    # the last sequence whose programs begin here or before
    sequence = -1
    for first in range(0, sequences, 256):
        offs = first + tl.arange(0, 256)
        started = tl.load(starts_ptr + offs, mask=offs < sequences, other=0).to(tl.int32)
        started = (started // QUERIES + offs <= pid) & (offs < sequences)
        sequence += tl.sum(started.to(tl.int32), axis=0)
    start_row = tl.load(starts_ptr + sequence).to(tl.int32)
    queries = tl.load(starts_ptr + sequence + 1).to(tl.int32) - start_row
    # the last tokens, which see most, come first
    first_query = pid - (start_row // QUERIES + sequence)
    first_query = (tl.cdiv(queries, QUERIES) - 1 - first_query) * QUERIES
    if first_query >= 0:
        length = tl.load(lengths_ptr + sequence).to(tl.int32)
        offs_d = tl.arange(0, PADDED)
        offs_v = tl.arange(0, VALUE)
        if VALUE != PADDED:
            offs_v += tl.program_id(2) * VALUE
        offs_m = tl.arange(0, QUERIES * GROUP)
        query = first_query + offs_m // GROUP
        member = offs_m % GROUP
        row_mask = (query < queries) & (member < group)
        heads_q = head * group + member
        position = length - queries + query
        q_offs = (start_row + query).to(tl.int64) * q_row + heads_q * q_head
        mask = row_mask[:, None] & (offs_d < HEAD)[None, :]
        q_ptrs = q_ptr + q_offs
        qk_scale = scale
        if K_SCALED:
            qk_scale *= tl.load(k_scale_ptr + head * k_step)
        if not CAPPED:
            qk_scale *= 1.4426950408889634
        q = 0.0
        next_k = 0.0
        if CHUNK == PADDED:
            # a positive factor keeps the order of scores
            q = tl.load(q_ptrs[:, None] + offs_d[None, :], mask=mask, other=0.0)
            q = tl.where(qk_scale < 0, -q, q)
            qk_scale = tl.abs(qk_scale)
        m_i = tl.full((QUERIES * GROUP,), _M_INIT, tl.float32)
        l_i = tl.zeros((QUERIES * GROUP,), tl.float32)
        if SINKS:
            m_i = tl.load(sinks_ptr + heads_q, mask=row_mask, other=0.0).to(tl.float32)
            m_i = tl.maximum(m_i * 1.4426950408889634, _M_INIT)  # -inf means none
            l_i += 1.0
        alibi = 0.0
        if ALIBI:
            alibi = tl.load(alibi_ptr + heads_q, mask=row_mask, other=0.0).to(tl.float32)
            alibi *= 1.4426950408889634
        acc = tl.zeros((QUERIES * GROUP, VALUE), tl.float32)
        table = block_table_ptr + sequence.to(tl.int64) * table_stride  # pyright: ignore[reportAttributeAccessIssue]
        keys = key_cache_ptr + head * key_head
        values = value_cache_ptr + head * value_head
        # all queries see the tokens from `full_lo` to `full_hi`, the last ones the first query sees
        first_seen = length - queries + first_query
        hi = tl.minimum(first_seen + QUERIES, length)
        lo = 0
        full_lo = 0
        if WINDOW:
            lo = tl.maximum(first_seen - window + 1, 0) // BLOCK_N * BLOCK_N
            full_lo = tl.cdiv(tl.maximum(hi - window, 0), BLOCK_N) * BLOCK_N
        full_hi = (first_seen + 1) // BLOCK_N * BLOCK_N
        blocks = cache_blocks(table, lo, hi, BLOCK_N, BLOCK_SIZE)
        next_blocks = cache_blocks(table, lo + BLOCK_N, hi, BLOCK_N, BLOCK_SIZE)
        if CHUNK == PADDED:
            # keys are loaded a tile ahead
            ptrs = cache_ptrs(keys, blocks, lo, key_block, key_token, BLOCK_N, BLOCK_SIZE, WIDE)
            next_k = load_tokens(ptrs, offs_d, lo + tl.arange(0, BLOCK_N) < hi, HEAD, PADDED)
        for part in tl.static_range(0 if WINDOW else 1, 3):
            start, stop = loop_bounds(part, lo, full_lo, full_hi, hi)
            for start_n in range(start, stop, BLOCK_N):
                acc, l_i, m_i, next_k, blocks, next_blocks = _step(
                    acc, l_i, m_i, next_k, blocks, next_blocks, start_n, hi,
                    q, q_ptrs, row_mask, offs_d, offs_v, position, table, keys, values,
                    qk_scale, alibi, soft_cap, window,
                    key_block, key_token, value_block, value_token,
                    HEAD, PADDED, BLOCK_SIZE, BLOCK_N, CHUNK, EARLY, part != 1, WINDOW, ALIBI,
                    CAPPED, SHORT, WIDE,
                )  # fmt: skip
        norm = 1.0 / tl.where(l_i > 0, l_i, 1.0)
        if V_SCALED:
            norm *= tl.load(v_scale_ptr + head * v_step)
        acc = acc * norm[:, None]
        out_rows = (start_row + query).to(tl.int64) * out_row + heads_q * HEAD
        out_ptrs = out_ptr + out_rows[:, None] + offs_v[None, :]
        if VALUE != PADDED:
            mask = row_mask[:, None] & (offs_v < HEAD)[None, :]
        tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=mask)


@TENSORS.checked
def paged_attention(
    q: Tensor, key_cache: Tensor, value_cache: Tensor, starts: Tensor, block_table: Tensor,
    lengths: Tensor, scale: float | None = None, k_scale: Tensor | None = None,
    v_scale: Tensor | None = None, window: int = 0, sinks: Tensor | None = None,
    soft_cap: float = 0.0, alibi: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Causal attention of the new tokens of sequences over a paged cache that holds them already.

    `q` is [tokens, heads, head]: the new tokens of sequence s are rows `starts[s]` up to, but not,
    `starts[s + 1]` (int32 or int64, [sequences + 1], from 0 to tokens), any number of them, and are
    the last of its `lengths[s]` tokens; each sees the tokens up to itself. The other arguments, and
    their dtypes, are as in `paged_decode`.

    Returns [tokens, heads, head] in the dtype of `q`. Raises ArgumentError.
    """
    options = arguments.PagedOptions(k_scale, v_scale, window, sinks, soft_cap, alibi)
    arguments.check("paged_attention", q, key_cache, value_cache, options)
    tokens, heads, head = q.shape
    sequences = lengths.shape[0]
    block_size, kv_heads = key_cache.shape[1:3]
    out = torch.empty((tokens, heads, head), dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    checks.require(sequences > 0, "paged_attention", f"{tokens} tokens of no sequence")
    if not block_table.shape[1] or not key_cache.shape[0]:
        return out.zero_()
    group = heads // kv_heads
    padded_group = triton.next_power_of_2(group)
    problem = arguments.problem_of(q, key_cache, value_cache, options)
    problem |= {"rows": tokens, "sequences": sequences, "group": padded_group}
    problem |= {"tokens": block_table.shape[1] * block_size, "window": window}
    choice.run(
        SPEC, problem,
        **arguments.shared_arguments(
            q, key_cache, value_cache, block_table, lengths, scale, options
        ),
        starts=starts, out=out, group=group, SHORT=not gpu.launching().capabilities.bf16_conversion,
    )  # fmt: skip
    return out


def paged_attention_reference(
    q, key_cache, value_cache, starts, block_table, lengths, scale=None, k_scale=None,
    v_scale=None, window=0, sinks=None, soft_cap=0.0, alibi=None,
):  # fmt: skip
    """Over all tokens a table can hold, with the others masked."""
    row = torch.arange(q.shape[0], device=q.device)
    sequence = torch.searchsorted(starts[1:].contiguous().to(row.dtype), row, right=True)
    position = lengths[sequence].long() - starts[sequence + 1].long() + row
    options = arguments.PagedOptions(k_scale, v_scale, window, sinks, soft_cap, alibi)
    return reference_attention(
        q, sequence, position, key_cache, value_cache, block_table, scale, options
    )


def _axes(problem: Problem, device: Device) -> Axes:
    group = problem["group"]
    rows = tuple(rows for rows in (16, 32, 64, 128) if rows >= group) or (group,)
    return {
        "QUERIES": tuple(rows // group for rows in rows),
        "BLOCK_N": (16, 32, 64),
        "CHUNK": arguments.chunks(problem["head"], device),
        "EARLY": (False, True),
        "num_warps": (1, 2, 4, 8),
        **arguments.compiler_options(device),
        **({"matrix_instr_nonkdim": (32, 16)} if arguments.cdna(device) else {}),
    }


def _demand(problem: Problem, settings: Settings, device: Device) -> PrefillLoop:
    """Sequences are taken to have equally many new tokens."""
    queries = max(1, triton.cdiv(problem["rows"], problem["sequences"]))
    tiles = triton.cdiv(queries, settings["QUERIES"])
    head = triton.next_power_of_2(problem["head"])
    # new tokens see half of each other
    tokens = max(1, problem["tokens"] - queries // 2)
    if problem["window"]:
        tokens = min(tokens, problem["window"] + settings["QUERIES"])
    itemsize = getattr(torch, problem["cache"]).itemsize
    heads = problem["sequences"] * problem["kv_heads"]
    read = 2.0 * heads * min(problem["tokens"], tokens + queries) * problem["head"] * itemsize
    return PrefillLoop(
        programs=heads * tiles * problem["pieces"],
        steps=triton.cdiv(tokens, settings["BLOCK_N"]),
        rows=settings["QUERIES"] * problem["group"],
        columns=settings["BLOCK_N"],
        depth=head,
        width=head // problem["pieces"],
        itemsize=itemsize,
        read=read,
        dtype=lookup(problem["dtype"]).rate,
        queries_in_registers=settings["CHUNK"] == head,
        prefetched=1,
    )


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    # with more rows per wave, too few waves fit to hide their waits
    demand, waves = _demand(problem, settings, device), settings["num_warps"]
    rows = 32 if arguments.cdna(device) else 16
    most = rows * min(waves, 8) if problem["group"] <= 128 else problem["group"]
    large = settings.get("matrix_instr_nonkdim", 16) == 32
    if large and demand.rows < 32 * waves:
        return False
    # of executed samples, those of gfx90a and gfx942 are faster later, and those of large products
    if settings["EARLY"] == (large or device.capabilities.matrix_half_k):
        return False
    return demand.fits(device, waves) and 8 * waves <= demand.rows <= most


SPEC = KernelSpec(
    function=paged_attention_kernel,
    grid="kv_heads, rows // QUERIES + sequences, pieces",
    axes=_axes,
    fits=_fits,
    demand=_demand,
    strides={**arguments.STRIDES, "out": "out_row"},
    contiguous=(*arguments.CONTIGUOUS, "starts"),
    rounded=("rows", "sequences", "tokens"),
)


def _inputs(make, prefills, new, decodes, length, ragged=False, **sizes):
    lengths = made_lengths(make, prefills + decodes, length, ragged)
    counts = torch.tensor([new] * prefills + [1] * decodes, dtype=torch.int32)
    counts = torch.minimum(counts, lengths.cpu())
    starts = torch.cat([torch.zeros(1, dtype=torch.int32), counts.cumsum(0).int()])
    operands = paged_inputs(make, lengths, int(starts[-1]), **sizes)
    return {**operands, "starts": starts.to(make.device)}


def _work(prefills, new, decodes, length, window=0, **sizes):
    scores = sum(min(length - new + i + 1, window or length) for i in range(new)) * prefills
    scores += decodes * min(length, window or length)
    read = prefills * min(length, window + new if window else length)
    read += decodes * min(length, window or length)
    return paged_work(prefills * new + decodes, read, scores, **sizes)


_small = partial(
    dict, prefills=2, new=19, decodes=1, heads=8, kv_heads=2, head=64, length=75, ragged=True
)
OPERATOR = Operator(
    summary="causal attention of new tokens over a paged cache: prefill, decode, or both",
    notes=FP8_NAN,
    call=paged_attention,
    fake=lambda q, *_, **__: q.new_empty(q.shape),
    inputs=_inputs,
    work=_work,
    cases=(
        _small(dtype="bfloat16"),
        _small(dtype="float16", heads=6, head=80, window=21, sinks=True),
        _small(dtype="bfloat16", cache="float8_e4m3fn", scales=2, block_size=64),
    ),
    thorough=(
        _small(dtype="bfloat16", cache="int8", scales=1, alibi=True),
        _small(dtype="float16", cache="float8_e4m3fnuz", soft_cap=10.0),
        _small(dtype="float16", cache="float8_e5m2", new=1, block_size=24),
        _small(dtype="bfloat16", head=128, new=70, prefills=1, heads=2),
        _small(dtype="bfloat16", head=256, block_size=32, new=3),
        _small(dtype="bfloat16", head=512, new=5, length=40, window=17),
        _small(dtype="float16", head=400, new=40, prefills=1, heads=4, cache="float8_e5m2"),
    ),
    shapes=(
        llama(prefills=2, new=2048, decodes=0, heads=64, length=2048),
        llama(prefills=1, new=1024, decodes=32, heads=64, length=4096),
        llama(prefills=0, new=0, decodes=128, heads=64, length=4096),
    ),
    exact=("k_scale", "v_scale"),
)
