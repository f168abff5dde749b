"""Attention of one new token per sequence over a paged cache of keys and values."""

# Names bound under a constexpr are bound where they are used.
# pyright: reportPossiblyUnboundVariable=false

from functools import partial

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.dtypes import lookup
from wavecast.kernels import checks, choice
from wavecast.kernels.decode import arguments
from wavecast.kernels.decode.combine import reduce_parts, workspaces
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
from wavecast.perfmodel.ranking.cache import CacheLoop, splits

TENSORS = arguments.signature("sequences")
_RESIDENT = 4
"""Workgroups of a unit that it takes to have enough loads under way."""


@triton.jit
def paged_decode_kernel(
    q_ptr, key_cache_ptr, value_cache_ptr, block_table_ptr, lengths_ptr,
    k_scale_ptr, v_scale_ptr, sinks_ptr, alibi_ptr, out_ptr, part_ptr, stat_ptr,
    scale, soft_cap, window, sequences, kv_heads, group, q_row, q_head, table_stride,
    key_block, key_token, key_head, value_block, value_token, value_head, k_step, v_step,
    HEAD: tl.constexpr, PADDED: tl.constexpr, VALUE: tl.constexpr, ROWS: tl.constexpr,
    ROW_TILES: tl.constexpr, BLOCK_SIZE: tl.constexpr, SPLITS: tl.constexpr, WINDOW: tl.constexpr,
    SINKS: tl.constexpr, ALIBI: tl.constexpr, CAPPED: tl.constexpr, K_SCALED: tl.constexpr,
    V_SCALED: tl.constexpr, WIDE: tl.constexpr,
    BLOCK_N: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """A program takes ROWS query heads that share one head of keys, VALUE elements of their values,
    and one of SPLITS parts of the tokens of a sequence."""
    pid = tl.program_id(0)
    PIECES: tl.constexpr = PADDED // VALUE  # pyright: ignore[reportAssignmentType]
    piece = pid % PIECES
    pid = pid // PIECES
    tile = pid % ROW_TILES
    head = pid // ROW_TILES % kv_heads
    part = pid // (ROW_TILES * kv_heads) % SPLITS
    sequence = pid // (ROW_TILES * kv_heads * SPLITS)
    length = tl.load(lengths_ptr + sequence).to(tl.int32)
    low = 0
    if WINDOW:
        low = tl.maximum(length - window, 0)
    first = low // BLOCK_N * BLOCK_N
    tokens_per_part = tl.cdiv(tl.cdiv(length - first, BLOCK_N), SPLITS) * BLOCK_N
    start = first + part * tokens_per_part
    end = tl.minimum(start + tokens_per_part, length)

    member = tile * ROWS + tl.arange(0, ROWS)
    row_mask = member < group
    heads_q = head * group + member
    offs_d = tl.arange(0, PADDED)
    offs_v = piece * VALUE + tl.arange(0, VALUE)
    q_ptrs = q_ptr + sequence.to(tl.int64) * q_row + heads_q * q_head
    mask = row_mask[:, None] & (offs_d < HEAD)[None, :]
    if CHUNK == PADDED:
        q = tl.load(q_ptrs[:, None] + offs_d[None, :], mask=mask, other=0.0)
    dtype: tl.constexpr = q_ptr.dtype.element_ty
    m_i = tl.full((ROWS,), float("-inf"), tl.float32)
    l_i = tl.zeros((ROWS,), tl.float32)
    qk_scale = scale
    if K_SCALED:
        qk_scale *= tl.load(k_scale_ptr + head * k_step)
    if not CAPPED:
        qk_scale *= 1.4426950408889634
    if SINKS:
        if part == 0:
            m_i = tl.load(sinks_ptr + heads_q, mask=row_mask, other=0.0).to(tl.float32)
            m_i *= 1.4426950408889634
            l_i += 1.0
    if ALIBI:
        alibi = tl.load(alibi_ptr + heads_q, mask=row_mask, other=0.0).to(tl.float32)
        alibi *= 1.4426950408889634
    acc = tl.zeros((ROWS, VALUE), tl.float32)
    table = block_table_ptr + sequence.to(tl.int64) * table_stride
    keys = key_cache_ptr + head * key_head
    values = value_cache_ptr + head * value_head
    offs_n = tl.arange(0, BLOCK_N)
    blocks = cache_blocks(table, start, end, BLOCK_N, BLOCK_SIZE)
    for start_n in range(start, end, BLOCK_N):
        token_mask = start_n + offs_n < end
        k_ptrs = cache_ptrs(keys, blocks, start_n, key_block, key_token, BLOCK_N, BLOCK_SIZE, WIDE)
        v_ptrs = cache_ptrs(
            values, blocks, start_n, value_block, value_token, BLOCK_N, BLOCK_SIZE, WIDE
        )
        if CHUNK == PADDED:
            k = load_tokens(k_ptrs, offs_d, token_mask, HEAD, PADDED)
            v = load_tokens(v_ptrs, offs_v, token_mask, HEAD, PADDED)
            blocks = cache_blocks(table, start_n + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            qk = tl.dot(q, tl.trans(widen(k, dtype)), out_dtype=tl.float32)
        else:
            blocks = cache_blocks(table, start_n + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            qk = chunked_scores(
                q_ptrs, row_mask, k_ptrs, token_mask, tl.minimum(start_n, 0),
                HEAD, PADDED, CHUNK, BLOCK_N, ROWS, dtype,
            )  # fmt: skip
            v = load_tokens(v_ptrs, offs_v, token_mask, HEAD, PADDED)
        qk *= qk_scale
        if CAPPED:
            qk = capped(qk, soft_cap) * 1.4426950408889634
        if ALIBI:
            qk += alibi[:, None] * (start_n + offs_n - (length - 1)).to(tl.float32)[None, :]
        if WINDOW:
            token_mask &= start_n + offs_n >= low
        # every tile has a token that counts, so that no maximum is -inf
        qk = tl.where(token_mask[None, :], qk, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, axis=1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(dtype), widen(v, dtype), acc, out_dtype=tl.float32)  # pyright: ignore[reportArgumentType]
        m_i = m_new
    if V_SCALED:
        acc *= tl.load(v_scale_ptr + head * v_step)
    heads_q += sequence * (kv_heads * group)
    out_rows = heads_q[:, None].to(tl.int64)
    mask = row_mask[:, None] & (offs_v < HEAD)[None, :]
    if SPLITS == 1:
        acc = acc / tl.where(l_i > 0, l_i, 1.0)[:, None]
        out_ptrs = out_ptr + out_rows * HEAD + offs_v[None, :]
        tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=mask)
    else:
        part_ptrs = part_ptr + (out_rows * SPLITS + part) * HEAD + offs_v[None, :]
        tl.store(part_ptrs, acc, mask=mask)
        stat_ptrs = stat_ptr + heads_q * SPLITS + part
        if PIECES > 1:
            row_mask &= piece == 0
        tl.store(stat_ptrs, m_i, mask=row_mask)
        tl.store(stat_ptrs + sequences * (kv_heads * group) * SPLITS, l_i, mask=row_mask)


@TENSORS.checked
def paged_decode(
    q: Tensor, key_cache: Tensor, value_cache: Tensor, block_table: Tensor, lengths: Tensor,
    scale: float | None = None, k_scale: Tensor | None = None, v_scale: Tensor | None = None,
    window: int = 0, sinks: Tensor | None = None, soft_cap: float = 0.0,
    alibi: Tensor | None = None, max_length: int = 0,
) -> Tensor:  # fmt: skip
    """Attention of one new token per sequence over a paged cache.

    `q` is [sequences, heads, head] of float16 or bfloat16, the caches [blocks, block size, heads of
    keys, head] of the dtype of `q`, float8_e4m3fn, float8_e4m3fnuz (AMD GPUs), float8_e5m2 or int8.
    Token t of sequence s is in block `block_table[s, t // block size]`; `lengths` counts the
    tokens of each, the new one included, whose query is the last. Both are int32 or int64.
    Heads have up to 512 elements; any strides but contiguous heads in the caches.

    Scores are q·k · `scale` (head**-0.5 by default) · `k_scale`, values are times `v_scale`: both
    float32, of one value or one per head of keys. With `window`, only the last so many tokens
    count, the new one included. `sinks` are scores per head that take part in the softmax and have
    no value; `soft_cap` c bounds scores to c·tanh(score / c); `alibi` are factors per head, times
    the distance to the key (0 or less). `max_length` is a bound of `lengths` that saves work on
    splits where the table is much wider (0: the table's width).

    Returns [sequences, heads, head] in the dtype of `q`, zeros for a length of 0; computed in
    float32 but for the weights, which are multiplied with the values in the dtype of `q`. Raises
    ArgumentError.
    """
    name = "paged_decode"
    options = arguments.PagedOptions(k_scale, v_scale, window, sinks, soft_cap, alibi)
    arguments.check(name, q, key_cache, value_cache, options)
    checks.require(max_length >= 0, name, "max_length is negative")
    sequences, heads, head = q.shape
    block_size, kv_heads = key_cache.shape[1:3]
    out = torch.empty((sequences, heads, head), dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    if not block_table.shape[1] or not key_cache.shape[0]:
        return out.zero_()
    group = heads // kv_heads
    rows = _rows(group)
    row_tiles = triton.cdiv(group, rows)
    tokens = block_table.shape[1] * block_size
    tokens = min(tokens, max_length or tokens, window or tokens)
    parts = splits(
        gpu.launching(), sequences * kv_heads * row_tiles, tokens, resident=_RESIDENT,
        token_bytes=2.0 * head * key_cache.element_size() / row_tiles,
        token_flops=4.0 * rows * head, result_bytes=4.0 * min(rows, group) * head,
    )  # fmt: skip
    problem = arguments.problem_of(q, key_cache, value_cache, options)
    problem |= {"sequences": sequences, "group": group, "tokens": tokens, "splits": parts}
    problem |= {"window": window > 0}
    given_alike = arguments.shared_arguments(
        q, key_cache, value_cache, block_table, lengths, scale, options
    )
    launched = choice.run(SPEC, problem, **given_alike, out=out, ROWS=rows, ROW_TILES=row_tiles)
    if parts > 1:
        reduce_parts(**launched.workspaces, out=out.view(-1, head))
    return out


def paged_decode_reference(
    q, key_cache, value_cache, block_table, lengths, scale=None, k_scale=None, v_scale=None,
    window=0, sinks=None, soft_cap=0.0, alibi=None, max_length=0,
):  # fmt: skip
    """Over all tokens a table can hold, with the others masked."""
    sequence, position = torch.arange(q.shape[0], device=q.device), lengths.long() - 1
    options = arguments.PagedOptions(k_scale, v_scale, window, sinks, soft_cap, alibi)
    return reference_attention(
        q, sequence, position, key_cache, value_cache, block_table, scale, options
    )


def _rows(group: int) -> int:
    """Query heads of a workgroup: those that share a head of keys, up to 64."""
    return max(16, min(64, triton.next_power_of_2(group)))


def _axes(problem: Problem, device: Device) -> Axes:
    return {
        "BLOCK_N": (16, 32, 64),
        "CHUNK": arguments.chunks(problem["head"], device),
        "num_warps": (1, 2, 4, 8),
        **arguments.compiler_options(device),
    }


def _demand(problem: Problem, settings: Settings, device: Device) -> CacheLoop:
    head = triton.next_power_of_2(problem["head"])
    itemsize = getattr(torch, problem["cache"]).itemsize
    stored = problem["sequences"] * problem["kv_heads"] * problem["tokens"] * problem["head"]
    return CacheLoop(
        programs=SPEC.programs(problem, settings)[0],
        steps=triton.cdiv(triton.cdiv(problem["tokens"], settings["BLOCK_N"]), problem["splits"]),
        rows=_rows(problem["group"]),
        columns=settings["BLOCK_N"],
        depth=head,
        width=head // problem["pieces"],
        itemsize=itemsize,
        read=2.0 * stored * itemsize,
        dtype=lookup(problem["dtype"]).rate,
        queries_in_registers=settings["CHUNK"] == head,
    )


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    # waves without 16 separate tokens repeat the work of others; with more than 32, few waves
    # fit and a unit has little under way
    waves, columns = settings["num_warps"], settings["BLOCK_N"]
    if not (16 if arguments.cdna(device) else 8) * waves <= columns <= 32 * waves:
        return False
    return _demand(problem, settings, device).fits(device, waves)


SPEC = KernelSpec(
    function=paged_decode_kernel,
    grid="pieces * cdiv(group, max(16, min(64, next_power_of_2(group)))) * kv_heads * splits"
    " * sequences",
    axes=_axes,
    fits=_fits,
    demand=_demand,
    workspaces=lambda problem, settings: workspaces(
        problem["sequences"] * problem["kv_heads"] * problem["group"],
        problem["splits"],
        problem["head"],
    ),
    strides=arguments.STRIDES,
    contiguous=arguments.CONTIGUOUS,
    rounded=("sequences", "tokens"),
)


def _inputs(make, sequences, length, ragged=False, **sizes):
    lengths = made_lengths(make, sequences, length, ragged)
    return {**paged_inputs(make, lengths, sequences, **sizes), "max_length": 0}


def _work(sequences, length, window=0, **sizes):
    tokens = sequences * min(length, window or length)
    return paged_work(sequences, tokens, tokens, **sizes)


_small = partial(dict, sequences=3, heads=8, kv_heads=2, head=64, length=150, ragged=True)
OPERATOR = Operator(
    summary="attention of one new token per sequence over a paged cache",
    notes=FP8_NAN,
    call=paged_decode,
    fake=lambda q, *_, **__: q.new_empty(q.shape),
    inputs=_inputs,
    work=_work,
    cases=(
        _small(dtype="bfloat16"),
        _small(heads=9, kv_heads=3, head=80, dtype="float16", block_size=24, sinks=True, window=70),
        _small(dtype="bfloat16", head=128, cache="float8_e4m3fn", scales=2, soft_cap=20.0,
               block_size=64),
        _small(dtype="bfloat16", cache="int8", scales=1, alibi=True, block_size=32, length=700,
               sequences=1),
    ),
    thorough=(
        _small(dtype="float16", cache="float8_e4m3fn", scales=1, sinks=True),
        _small(dtype="bfloat16", cache="float8_e4m3fnuz", scales=2, window=33),
        _small(dtype="float16", cache="float8_e5m2", scales=0, head=96),
        _small(dtype="float16", cache="int8", scales=2, soft_cap=5.0, window=64),
        _small(dtype="bfloat16", head=256, block_size=128, sinks=True, alibi=True),
        _small(dtype="bfloat16", head=512, block_size=32, length=400, sequences=1),
        _small(dtype="float16", head=400, length=60, cache="float8_e5m2", sinks=True),
        _small(dtype="bfloat16", heads=20, kv_heads=1, head=128, block_size=16),
        _small(dtype="bfloat16", heads=70, kv_heads=1, head=64, length=90),
    ),
    shapes=(
        llama(sequences=1, heads=64, length=16384),
        llama(sequences=16, heads=64, length=4096),
        llama(sequences=64, heads=32, length=4096, block_size=64),
        llama(sequences=64, heads=64, length=4096, cache="float8_e4m3fn", scales=1),
        llama(sequences=256, heads=128, length=1024),
        llama(sequences=256, heads=64, head=64, length=4096, window=128, sinks=True),
    ),
    exact=("k_scale", "v_scale"),
)  # fmt: skip
