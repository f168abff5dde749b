"""Attention of one new token per sequence over a paged cache of keys and values."""

# Names bound under a constexpr are bound where they are used.
# pyright: reportPossiblyUnboundVariable=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.decode.arguments import Options, Paged, check
from wavecast.kernels.decode.combine import REDUCE, reduce_parts, splits
from wavecast.kernels.decode.parts import (
    FP8_NAN,
    cache_entries,
    cache_rows,
    cache_tile,
    capped,
    chunked_scores,
    widened,
)
from wavecast.kernels.decode.reference import attended
from wavecast.kernels.decode.sizes import LLAMA, made_lengths, paged_inputs, paged_work
from wavecast.kernels.decode.walking import Walk, chunks, compiler_options
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.bounds import Work

_SHORTEST = 64
"""Tokens that are worth a part of their own."""
_BESIDE = 4
"""Workgroups of a unit that it takes to have enough loads under way."""


@triton.jit
def paged_decode_kernel(
    q_ptr, key_ptr, value_ptr, table_ptr, length_ptr, k_scale_ptr, v_scale_ptr, sink_ptr,
    slope_ptr, out_ptr, part_ptr, stat_ptr, scale, soft_cap, window,
    sequences, kv_heads, group, q_sequence, q_head, table_stride,
    key_block, key_token, key_head, value_block, value_token, value_head, k_step, v_step,
    HEAD: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr, ROW_TILES: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, SPLITS: tl.constexpr, WINDOW: tl.constexpr, SINKS: tl.constexpr,
    SLOPES: tl.constexpr, CAPPED: tl.constexpr, K_SCALED: tl.constexpr,
    V_SCALED: tl.constexpr, WIDE: tl.constexpr,
    BLOCK_N: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """A program takes ROWS query heads that share one head of keys, and one of SPLITS parts of the
    tokens of a sequence."""
    program = tl.program_id(0)
    tile = program % ROW_TILES
    head = program // ROW_TILES % kv_heads
    split = program // (ROW_TILES * kv_heads) % SPLITS
    sequence = program // (ROW_TILES * kv_heads * SPLITS)
    length = tl.load(length_ptr + sequence).to(tl.int32)
    low = 0
    if WINDOW:
        low = tl.maximum(length - window, 0)
    first = low // BLOCK_N * BLOCK_N
    share = tl.cdiv(tl.cdiv(length - first, BLOCK_N), SPLITS) * BLOCK_N
    start = first + split * share
    end = tl.minimum(start + share, length)

    within = tile * ROWS + tl.arange(0, ROWS)
    inside = within < group
    row = head * group + within
    place = tl.arange(0, PADDED)
    from_q = q_ptr + sequence.to(tl.int64) * q_sequence + row * q_head
    stored = inside[:, None] & (place < HEAD)[None, :]
    if CHUNK == PADDED:
        q = tl.load(from_q[:, None] + place[None, :], mask=stored, other=0.0)
    kind: tl.constexpr = q_ptr.dtype.element_ty
    most = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    factor = scale
    if K_SCALED:
        factor *= tl.load(k_scale_ptr + head * k_step)
    if not CAPPED:
        factor *= 1.4426950408889634
    if SINKS:
        if split == 0:
            most = tl.load(sink_ptr + row, mask=inside, other=0.0).to(tl.float32)
            most *= 1.4426950408889634
            total += 1.0
    if SLOPES:
        slope = tl.load(slope_ptr + row, mask=inside, other=0.0).to(tl.float32)
        slope *= 1.4426950408889634
    found = tl.zeros((ROWS, PADDED), tl.float32)
    table = table_ptr + sequence.to(tl.int64) * table_stride
    keys = key_ptr + head * key_head
    values = value_ptr + head * value_head
    token = tl.arange(0, BLOCK_N)
    entries = cache_entries(table, start, end, BLOCK_N, BLOCK_SIZE)
    for at in range(start, end, BLOCK_N):
        kept = at + token < end
        key_rows = cache_rows(keys, entries, at, key_block, key_token, BLOCK_N, BLOCK_SIZE, WIDE)
        value_rows = cache_rows(
            values, entries, at, value_block, value_token, BLOCK_N, BLOCK_SIZE, WIDE
        )
        if CHUNK == PADDED:
            k = cache_tile(key_rows, place, kept, HEAD, PADDED)
            v = cache_tile(value_rows, place, kept, HEAD, PADDED)
            entries = cache_entries(table, at + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            score = tl.dot(q, tl.trans(widened(k, kind)), out_dtype=tl.float32)
        else:
            entries = cache_entries(table, at + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            score = chunked_scores(
                from_q, inside, key_rows, kept, tl.minimum(at, 0),
                HEAD, PADDED, CHUNK, BLOCK_N, ROWS, kind,
            )  # fmt: skip
            v = cache_tile(value_rows, place, kept, HEAD, PADDED)
        score *= factor
        if CAPPED:
            score = capped(score, soft_cap) * 1.4426950408889634
        if SLOPES:
            score += slope[:, None] * (at + token - (length - 1)).to(tl.float32)[None, :]
        if WINDOW:
            kept &= at + token >= low
        # every tile has a token that counts, so that no row's peak is -inf
        score = tl.where(kept[None, :], score, float("-inf"))
        peak = tl.maximum(most, tl.max(score, axis=1))
        weight = tl.exp2(score - peak[:, None])
        shrink = tl.exp2(most - peak)
        total = total * shrink + tl.sum(weight, axis=1)
        found = found * shrink[:, None]
        found = tl.dot(weight.to(kind), widened(v, kind), found, out_dtype=tl.float32)  # pyright: ignore[reportArgumentType]
        most = peak
    if V_SCALED:
        found *= tl.load(v_scale_ptr + head * v_step)
    row += sequence * (kv_heads * group)
    to = row[:, None].to(tl.int64)
    if SPLITS == 1:
        found = found / tl.where(total > 0, total, 1.0)[:, None]
        to_out = out_ptr + to * HEAD + place[None, :]
        tl.store(to_out, found.to(out_ptr.dtype.element_ty), mask=stored)
    else:
        to_part = part_ptr + (to * SPLITS + split) * HEAD + place[None, :]
        tl.store(to_part, found, mask=stored)
        to_stat = stat_ptr + row * SPLITS + split
        tl.store(to_stat, most, mask=inside)
        tl.store(to_stat + sequences * (kv_heads * group) * SPLITS, total, mask=inside)


def paged_decode(
    q: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    scale: float | None = None,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
    window: int = 0,
    sinks: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    alibi: torch.Tensor | None = None,
    max_length: int = 0,
) -> torch.Tensor:
    """Attention of one new token per sequence over a paged cache.

    `q` is [sequences, heads, head] of float16 or bfloat16, the caches [blocks, block size, heads of
    keys, head] of the dtype of `q`, float8_e4m3fn, float8_e4m3fnuz (AMD GPUs), float8_e5m2 or int8.
    Token t of sequence s lies in block `block_table[s, t // block size]`; `lengths` counts the
    tokens of each, the new one included, whose query is at the end. Both are int32 or int64.
    Heads have up to 256 elements; any strides but contiguous heads in the caches.

    Scores are q·k · `scale` (head**-0.5 by default) · `k_scale`, values are times `v_scale`: both
    float32, of one value or one per head of keys. With `window`, only the last so many tokens
    count, the new one included. `sinks` are scores per head that take part in the softmax and have
    no value; `soft_cap` c bounds scores to c·tanh(score / c); `alibi` are slopes per head, times
    the distance to the key (0 or less). `max_length` is a bound of `lengths` that saves work on
    splits where the table is much wider (0: the table's width).

    Returns [sequences, heads, head] in the dtype of `q`, zeros for a length of 0; computed in
    float32 but for the weights, which are multiplied with the values in the dtype of `q`. Raises
    ArgumentError.
    """
    options = Options(k_scale, v_scale, window, sinks, soft_cap, alibi)
    check("paged_decode", q, key_cache, value_cache, block_table, lengths, options)
    sequences, heads, head = q.shape
    checks.shape_is("paged_decode", "lengths", lengths, (sequences,))
    checks.require(max_length >= 0, "paged_decode", "max_length is negative")
    block_size, kv_heads = key_cache.shape[1:3]
    out = torch.empty((sequences, heads, head), dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    if not block_table.shape[1] or not key_cache.shape[0]:
        return out.zero_()
    device = gpu.launching()
    given = Paged.of(q, key_cache, value_cache, block_table, scale, options)
    group = heads // kv_heads
    rows = _rows(group)
    row_tiles = triton.cdiv(group, rows)
    tokens = block_table.shape[1] * block_size
    tokens = min(tokens, max_length or tokens, window or tokens)
    parts = splits(
        device,
        sequences * kv_heads * row_tiles,
        tokens,
        beside=_BESIDE,
        token_bytes=2.0 * head * key_cache.element_size() / row_tiles,
        token_flops=4.0 * rows * head,
        result_bytes=4.0 * min(rows, group) * head,
        least=_SHORTEST,
    )
    some = parts if parts > 1 else 0
    part = torch.empty((sequences * heads, some, head), dtype=torch.float32, device=q.device)
    stat = torch.empty((2, sequences * heads, some), dtype=torch.float32, device=q.device)
    launch(
        paged_decode_kernel,
        lambda _: (row_tiles * kv_heads * parts * sequences,),
        (
            *(given.q, key_cache, value_cache, given.block_table, lengths.contiguous()),
            *(given.k_scale, given.v_scale, given.sinks, given.alibi, out, part, stat),
            *(*given.factors, sequences, kv_heads, group, *given.q.stride()[:2]),
            *(given.block_table.stride(0), *given.strides),
        ),
        SPACE,
        {
            **given.problem,
            "sequences": sequences,
            "group": group,
            "tokens": tokens,
            "splits": parts,
            "window": window > 0,
        },
        ROWS=rows,
        ROW_TILES=row_tiles,
        SPLITS=parts,
        **given.constants,
    )
    if parts > 1:
        reduce_parts(part, stat, out.view(-1, head))
    return out


def paged_decode_reference(
    q: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    scale: float | None = None,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
    window: int = 0,
    sinks: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    alibi: torch.Tensor | None = None,
    max_length: int = 0,
) -> torch.Tensor:
    """Over all tokens a table can hold, with the others masked."""
    return attended(
        q,
        torch.arange(q.shape[0], device=q.device),
        lengths.long() - 1,
        key_cache,
        value_cache,
        block_table,
        q.shape[2] ** -0.5 if scale is None else scale,
        Options(k_scale, v_scale, window, sinks, soft_cap, alibi),
    )


def _rows(group: int) -> int:
    """Query heads that a workgroup takes: those that share a head of keys, up to 64."""
    return max(16, min(64, triton.next_power_of_2(group)))


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {
        "BLOCK_N": (16, 32, 64),
        "CHUNK": chunks(problem["head"], device),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (1,),
        **compiler_options(device),
    }


def _walk(problem: Problem, settings: Settings) -> Walk:
    rows, head = _rows(problem["group"]), triton.next_power_of_2(problem["head"])
    tiles = problem["kv_heads"] * triton.cdiv(problem["group"], rows) * problem["sequences"]
    size = getattr(torch, problem["cache"]).itemsize
    stored = problem["sequences"] * problem["kv_heads"] * problem["tokens"] * problem["head"]
    return Walk(
        programs=tiles * problem["splits"],
        warps=settings["num_warps"],
        steps=triton.cdiv(triton.cdiv(problem["tokens"], settings["BLOCK_N"]), problem["splits"]),
        rows=rows,
        columns=settings["BLOCK_N"],
        depth=head,
        width=head,
        size=size,
        bytes=2.0 * stored * size,
        held=settings["CHUNK"] == head,
    )


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    # waves that find no 16 tokens of their own repeat the work of others; with more than 32, few
    # waves fit and a unit has little under way
    waves, columns = settings["num_warps"], settings["BLOCK_N"]
    least = 16 if device.target.startswith("gfx9") else 8
    return least * waves <= columns <= 32 * waves and _walk(problem, settings).fits(device)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    kind = "fp16" if problem["dtype"] == "float16" else "bf16"
    return _walk(problem, settings).seconds(device, kind)


SPACE = Space(
    kernel="paged_decode_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("sequences", "tokens"),
)


def _inputs(
    make: Make, sequences: int, length: int, ragged: bool = False, **sizes: Any
) -> dict[str, Any]:
    lengths = made_lengths(make, sequences, length, ragged)
    return {**paged_inputs(make, lengths, sequences, **sizes), "max_length": 0}


def _work(sequences: int, length: int, window: int = 0, **sizes: Any) -> Work:
    tokens = sequences * min(length, window or length)
    return paged_work(sequences, tokens, tokens, **sizes)


_SMALL = {"sequences": 3, "heads": 8, "kv_heads": 2, "head": 64, "length": 150, "ragged": True}
_CASES = (
    {**_SMALL, "dtype": "bfloat16"},
    {
        **_SMALL,
        "heads": 9,
        "kv_heads": 3,
        "head": 80,
        "dtype": "float16",
        "block_size": 24,
        "sinks": True,
        "window": 70,
    },
    {
        **_SMALL,
        "dtype": "bfloat16",
        "head": 128,
        "cache": "float8_e4m3fn",
        "scales": 2,
        "soft_cap": 20.0,
        "block_size": 64,
    },
    {
        **_SMALL,
        "dtype": "bfloat16",
        "cache": "int8",
        "scales": 1,
        "alibi": True,
        "block_size": 32,
        "length": 700,
        "sequences": 1,
    },
)
_THOROUGH = (
    {**_SMALL, "dtype": "float16", "cache": "float8_e4m3fn", "scales": 1, "sinks": True},
    {**_SMALL, "dtype": "bfloat16", "cache": "float8_e4m3fnuz", "scales": 2, "window": 33},
    {**_SMALL, "dtype": "float16", "cache": "float8_e5m2", "scales": 0, "head": 96},
    {**_SMALL, "dtype": "float16", "cache": "int8", "scales": 2, "soft_cap": 5.0, "window": 64},
    {**_SMALL, "dtype": "bfloat16", "head": 256, "block_size": 128, "sinks": True, "alibi": True},
    {**_SMALL, "dtype": "bfloat16", "heads": 20, "kv_heads": 1, "head": 128, "block_size": 16},
    {**_SMALL, "dtype": "bfloat16", "heads": 70, "kv_heads": 1, "head": 64, "length": 90},
)
_SHAPES = (
    {**LLAMA, "sequences": 1, "heads": 64, "length": 16384},
    {**LLAMA, "sequences": 16, "heads": 64, "length": 4096},
    {**LLAMA, "sequences": 64, "heads": 32, "length": 4096, "block_size": 64},
    {**LLAMA, "sequences": 64, "heads": 64, "length": 4096, "cache": "float8_e4m3fn", "scales": 1},
    {**LLAMA, "sequences": 256, "heads": 128, "length": 1024},
    {
        **LLAMA,
        "sequences": 256,
        "heads": 64,
        "head": 64,
        "length": 4096,
        "window": 128,
        "sinks": True,
    },
)

OPERATORS = (
    Operator(
        name="paged_decode",
        notes=FP8_NAN,
        summary="attention of one new token per sequence over a paged cache",
        call=paged_decode,
        reference=paged_decode_reference,
        inputs=_inputs,
        work=_work,
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(SPACE, REDUCE),
        exact=("k_scale", "v_scale"),
    ),
)
