"""Scores by which sparse attention chooses keys of a paged cache: the indexer of DeepSeek-V3.2."""

# Names bound under a constexpr are bound where they are used.
# pyright: reportPossiblyUnboundVariable=false
# Arguments of Triton functions become constants as they are compiled.
# pyright: reportArgumentType=false, reportOperatorIssue=false

from functools import partial
from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.dtypes import lookup
from wavecast.kernels import checks, choice
from wavecast.kernels.decode import arguments
from wavecast.kernels.decode.parts import (
    FP8_NAN,
    HALVES,
    cache_blocks,
    cache_ptrs,
    load_tokens,
    widen,
)
from wavecast.kernels.decode.sizes import made_cache, made_lengths, made_table
from wavecast.kernels.describe import (
    Axes,
    Device,
    KernelSpec,
    Operator,
    Problem,
    Settings,
    Signature,
    Work,
)
from wavecast.kernels.references import wide_dtype
from wavecast.kernels.strides import adjacent
from wavecast.launch import gpu
from wavecast.perfmodel.ranking.cache import CacheLoop

_FLOATS: Final = arguments.CACHE.removesuffix("|int8")
_STEPS: Final = 4
"""Tiles of keys that a program takes with the queries it has loaded."""
TENSORS = Signature(
    f"q: [tokens, heads, head] {_FLOATS}",
    "weights: [tokens, heads] float32",
    f"cache: [blocks, block_size, head] {_FLOATS}",
    "starts: [sequences + 1] index",
    "block_table: [sequences, _] index",
    "lengths: [sequences] index",
    "key_scale?: [blocks, block_size] float32",
    returns=("scores: [tokens, _] float32",),
)


@triton.jit
def index_scores_kernel(
    q_ptr, weights_ptr, cache_ptr, key_scale_ptr, starts_ptr, block_table_ptr, lengths_ptr,
    scores_ptr, sequences, heads, width, q_row, q_head, weight_row, key_block, key_token,
    scale_block, scale_token, table_stride, score_row,
    HEAD: tl.constexpr, PADDED: tl.constexpr, HEADS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    SCALED: tl.constexpr, WIDEN: tl.constexpr, WIDE: tl.constexpr, STEPS: tl.constexpr,
    QUERIES: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """A program takes QUERIES successive tokens of a sequence with all heads, rows of one product,
    and STEPS tiles of keys. Sequence s has the programs from start[s] // QUERIES + s on."""
    pid = tl.program_id(1)
    sequence = -1
    for first in range(0, sequences, 256):
        offs = first + tl.arange(0, 256)
        started = tl.load(starts_ptr + offs, mask=offs < sequences, other=0).to(tl.int32)
        started = (started // QUERIES + offs <= pid) & (offs < sequences)
        sequence += tl.sum(started.to(tl.int32), axis=0)
    start_row = tl.load(starts_ptr + sequence).to(tl.int32)
    queries = tl.load(starts_ptr + sequence + 1).to(tl.int32) - start_row
    first_query = (pid - (start_row // QUERIES + sequence)) * QUERIES
    if first_query < queries:
        length = tl.load(lengths_ptr + sequence).to(tl.int32)
        offs_m = tl.arange(0, QUERIES * HEADS)
        query = first_query + offs_m // HEADS
        head = offs_m % HEADS
        row_mask = (query < queries) & (head < heads)
        rows = (start_row + query).to(tl.int64)
        offs_d = tl.arange(0, PADDED)
        q = load_tokens(q_ptr + rows * q_row + head * q_head, offs_d, row_mask, HEAD, PADDED)
        weight = tl.load(weights_ptr + rows * weight_row + head, mask=row_mask, other=0.0)
        dtype: tl.constexpr = tl.bfloat16 if q.dtype.is_fp8() else q.dtype  # pyright: ignore[reportAssignmentType]
        if WIDEN:
            q = widen(q, dtype)
        offs_q = first_query + tl.arange(0, QUERIES)
        position = length - queries + offs_q
        out_rows = (start_row + offs_q).to(tl.int64) * score_row
        table = block_table_ptr + sequence.to(tl.int64) * table_stride  # pyright: ignore[reportAttributeAccessIssue]
        hi = tl.minimum(length - queries + first_query + QUERIES, length)
        offs_n = tl.arange(0, BLOCK_N)
        begin = tl.program_id(0) * (STEPS * BLOCK_N)
        for start in range(begin, tl.minimum(begin + STEPS * BLOCK_N, width), BLOCK_N):
            token_mask = start + offs_n < hi
            blocks = cache_blocks(table, start, hi, BLOCK_N, BLOCK_SIZE)
            ptrs = cache_ptrs(
                cache_ptr, blocks, start, key_block, key_token, BLOCK_N, BLOCK_SIZE, WIDE
            )
            k = load_tokens(ptrs, offs_d, token_mask, HEAD, PADDED)
            if WIDEN:
                k = widen(k, dtype)
            score = tl.dot(q, tl.trans(k), out_dtype=tl.float32)
            score = tl.maximum(score, 0.0) * weight[:, None]
            score = tl.sum(tl.reshape(score, (QUERIES, HEADS, BLOCK_N)), axis=1)
            if SCALED:
                ptrs = cache_ptrs(
                    key_scale_ptr, blocks, start, scale_block, scale_token, BLOCK_N, BLOCK_SIZE,
                    WIDE,
                )  # fmt: skip
                score *= tl.load(ptrs, mask=token_mask, other=0.0)[None, :]
            visible = start + offs_n[None, :] <= position[:, None]
            mask = (offs_q < queries)[:, None] & (start + offs_n < width)[None, :]
            out_ptrs = scores_ptr + out_rows[:, None] + start + offs_n[None, :]
            tl.store(out_ptrs, tl.where(visible, score, float("-inf")), mask=mask)


@TENSORS.checked
def index_scores(
    q: Tensor, weights: Tensor, cache: Tensor, starts: Tensor, block_table: Tensor,
    lengths: Tensor, key_scale: Tensor | None = None, max_length: int = 0,
) -> Tensor:  # fmt: skip
    """Scores of new tokens for the tokens of their sequences, over a paged cache that holds them
    already: by these, sparse attention chooses the keys of each.

    `q` is [tokens, heads, head] of float16, bfloat16 or an fp8 of `paged_decode`; `cache` [blocks,
    block size, head] has a key per token, of the dtype of `q` or fp8, times `key_scale` (float32
    [blocks, block size]). The score of token t for token s is the sum over heads of
    `weights[t, head]` · max(0, q[t, head] · k[s]); scales of q belong to `weights` (float32
    [tokens, heads]). `starts`, `block_table` and `lengths` are as in `paged_attention`;
    `max_length` is a bound of `lengths` (0: the table's width).

    Returns float32 [tokens, columns], with a column per token that a table holds, or `max_length`:
    -inf for those after the token itself. Raises ArgumentError. Source: DeepSeek-V3.2, arXiv
    2512.02556, equation 1.
    """
    name = "index_scores"
    tokens, heads, head = q.shape
    sequences, block_size = lengths.shape[0], cache.shape[1]
    arguments.usable(name, "cache", cache)
    if q.dtype not in HALVES:
        arguments.usable(name, "q", q)
    checks.require(block_size > 0 and head > 0 and heads > 0, name, "the cache is empty")
    fits = cache.dtype == q.dtype or cache.dtype not in HALVES
    checks.require(fits, name, f"cache is {cache.dtype} and q {q.dtype}")
    checks.require(head <= 256, name, f"heads of {head} elements; it takes up to 256")
    checks.require(heads <= 128, name, f"{heads} heads; it takes up to 128")
    checks.require(max_length >= 0, name, "max_length is negative")
    table = block_table.shape[1] * block_size
    width = min(table, max_length) if max_length else table
    scores = torch.full((tokens, width), float("-inf"), dtype=torch.float32, device=q.device)
    if not scores.numel() or not cache.shape[0]:
        return scores
    checks.require(sequences > 0, name, f"{tokens} tokens of no sequence")
    able = gpu.launching().capabilities
    stored = str(cache.dtype).removeprefix("torch.")
    native = cache.dtype == q.dtype and (q.dtype in HALVES or stored in able.matrix_fp8)
    problem = {
        "rows": tokens,
        "sequences": sequences,
        "width": width,
        "heads": heads,
        "head": head,
        "block_size": block_size,
        "cache": stored,
        "widen": not native,
    }
    choice.run(
        SPEC, problem, q=adjacent(q), weights=adjacent(weights), cache=cache,
        key_scale=key_scale, starts=starts, block_table=adjacent(block_table), lengths=lengths,
        scores=scores, PADDED=max(16, triton.next_power_of_2(head)),
        HEADS=triton.next_power_of_2(heads), SCALED=key_scale is not None, STEPS=_STEPS,
    )  # fmt: skip
    return scores


def index_scores_reference(
    q, weights, cache, starts, block_table, lengths, key_scale=None, max_length=0
):
    """Over all tokens a table can hold, with the others masked."""
    dtype = wide_dtype(weights)
    block_size = cache.shape[1]
    table = block_table.shape[1] * block_size
    token = torch.arange(min(table, max_length) if max_length else table, device=q.device)
    row = torch.arange(q.shape[0], device=q.device)
    sequence = torch.searchsorted(starts[1:].contiguous().to(row.dtype), row, right=True)
    position = lengths[sequence].long() - starts[sequence + 1].long() + row
    visible = token[None, :] <= position[:, None]
    block = block_table.long()[sequence][:, token // block_size]
    block = torch.where(visible, block, 0)
    offset = (token % block_size)[None, :].expand_as(block)
    keys = cache.to(dtype)[block, offset]
    scores = torch.einsum("thd,tsd->ths", q.to(dtype), keys).clamp_min(0)
    scores = (scores * weights.to(dtype)[:, :, None]).sum(dim=1)
    if key_scale is not None:
        scores = scores * key_scale.to(dtype)[block, offset]
    return scores.masked_fill(~visible, float("-inf"))


def _fake(q, weights, cache, starts, block_table, lengths, key_scale=None, max_length=0):
    table = block_table.shape[1] * cache.shape[1]
    width = min(table, max_length) if max_length else table
    return q.new_empty((q.shape[0], width), dtype=torch.float32)


def _axes(problem: Problem, device: Device) -> Axes:
    padded = triton.next_power_of_2(problem["heads"])
    queries = tuple(count for count in (1, 2, 4, 8, 16) if 16 <= count * padded <= 128)
    return {
        "QUERIES": queries,
        "BLOCK_N": (32, 64, 128),
        "num_warps": (1, 2, 4, 8),
        **arguments.compiler_options(device),
    }


def _demand(problem: Problem, settings: Settings, device: Device) -> CacheLoop:
    rows = settings["QUERIES"] * triton.next_power_of_2(problem["heads"])
    # sequences are taken to have equally many new tokens
    queries = triton.cdiv(triton.cdiv(problem["rows"], problem["sequences"]), settings["QUERIES"])
    queries *= problem["sequences"]
    tiles = triton.cdiv(problem["width"], _STEPS * settings["BLOCK_N"])
    itemsize = getattr(torch, problem["cache"]).itemsize
    read = 1.0 * queries * problem["width"] * problem["head"] * itemsize
    return CacheLoop(
        programs=queries * tiles,
        steps=_STEPS,
        rows=rows,
        columns=settings["BLOCK_N"],
        depth=max(16, triton.next_power_of_2(problem["head"])),
        width=0,
        itemsize=itemsize,
        read=read + 4.0 * problem["rows"] * problem["width"],
        dtype=lookup("bfloat16" if problem["widen"] else problem["cache"]).rate,
    )


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    demand, waves = _demand(problem, settings, device), settings["num_warps"]
    # a wave multiplies rows of one or two matrix instructions: more leave no registers for others
    return demand.fits(device, waves) and 16 * waves <= demand.rows <= 32 * waves


SPEC = KernelSpec(
    function=index_scores_kernel,
    grid=f"cdiv(width, {_STEPS} * BLOCK_N), rows // QUERIES + sequences",
    axes=_axes,
    fits=_fits,
    demand=_demand,
    strides={
        "q": "q_row q_head",
        "weights": "weight_row",
        "cache": "key_block key_token",
        "key_scale": "scale_block scale_token",
        "block_table": "table_stride",
        "scores": "score_row",
    },
    contiguous=("lengths", "starts"),
    rounded=("rows", "sequences", "width"),
)


def _inputs(
    make, prefills, new, decodes, length, heads, dtype, head=128, block_size=64, scaled=True,
    cache="", ragged=False,
):  # fmt: skip
    lengths = made_lengths(make, prefills + decodes, length, ragged)
    counts = torch.tensor([new] * prefills + [1] * decodes, dtype=torch.int32)
    counts = torch.minimum(counts, lengths.cpu())
    starts = torch.cat([torch.zeros(1, dtype=torch.int32), counts.cumsum(0).int()])
    table, blocks = made_table(make, lengths, block_size)
    keys, _ = made_cache(make, (blocks, block_size, head), cache or dtype, 0)
    scale = make.uniform((blocks, block_size), "float32", 0.5, 1.0) if scaled else None
    return {
        "q": make.normal((int(starts[-1]), heads, head), dtype),
        "weights": make.normal((int(starts[-1]), heads), "float32", heads**-0.5),
        "cache": keys,
        "starts": starts.to(make.device),
        "block_table": table,
        "lengths": lengths,
        "key_scale": scale,
        "max_length": 0,
    }


def _work(
    prefills, new, decodes, length, heads, dtype, head=128, scaled=True, cache="", **_: Any
):  # fmt: skip
    pairs = sum(length - new + i + 1 for i in range(new)) * prefills + decodes * length
    rows, stored = prefills * new + decodes, getattr(torch, cache or dtype).itemsize
    read = 1.0 * (prefills + decodes) * length * (head * stored + 4 * scaled)
    read += rows * heads * (head * getattr(torch, dtype).itemsize + 4.0)
    flops = {lookup(dtype).rate: 2.0 * pairs * heads * head}
    return Work(flops, read, 4.0 * rows * length, "formula", "formula")


_small = partial(dict, prefills=1, new=19, decodes=2, heads=4, length=90, ragged=True)
_deepseek = partial(dict, heads=64, dtype="float8_e4m3fn")
OPERATOR = Operator(
    summary="scores by which sparse attention chooses keys of a paged cache",
    notes=FP8_NAN,
    call=index_scores,
    fake=_fake,
    inputs=_inputs,
    work=_work,
    cases=(
        _small(dtype="bfloat16", scaled=False),
        _small(dtype="float8_e4m3fn", heads=64, length=150),
        _small(dtype="float8_e4m3fnuz", heads=5, block_size=16),
    ),
    thorough=(
        _small(dtype="float16", cache="float8_e5m2", head=64, block_size=24),
        _small(dtype="bfloat16", cache="float8_e4m3fn", heads=32, new=70, length=300),
    ),
    shapes=(
        _deepseek(prefills=1, new=2048, decodes=0, length=4096),
        _deepseek(prefills=0, new=0, decodes=64, length=16384),
    ),
    exact=("key_scale",),
)
