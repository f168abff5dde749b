"""Attention of several new tokens per sequence over a paged cache: prefill, decode, or both."""

# Names bound under a constexpr are bound where they are used.
# pyright: reportPossiblyUnboundVariable=false
# Arguments of Triton functions become constants as they are compiled.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from wavecast.kernels.decode.walking import ManyRows, chunks, compiler_options

from wavecast.arch import Device
from wavecast.kernels import checks, gpu
from wavecast.kernels.attention.parts import round_like as rounded
from wavecast.kernels.choice import launch
from wavecast.kernels.decode.arguments import Options, Paged, check
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
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.bounds import Work

_LOWEST: tl.constexpr = tl.constexpr(-1e38)
"""The maximum of no scores: finite, so that differences with it are numbers."""


@triton.jit
def _step(
    found, total, most, k_ahead, entries, entries_ahead, at, end,
    q, from_q, inside, place, position, table, keys, values,
    factor, slope, soft_cap, window, key_block, key_token, value_block, value_token,
    HEAD: tl.constexpr, PADDED: tl.constexpr, BLOCK_SIZE: tl.constexpr, BLOCK_N: tl.constexpr,
    CHUNK: tl.constexpr, EARLY: tl.constexpr, EDGE: tl.constexpr, WINDOW: tl.constexpr,
    SLOPES: tl.constexpr, CAPPED: tl.constexpr, SHORT: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Online softmax over the tokens from `at` to `at + BLOCK_N`, which all queries see unless
    EDGE. `most` is in powers of two. `entries` are those of this tile and of the next one, whose
    keys are loaded before the product with this one's if EARLY, else after it."""
    kind: tl.constexpr = from_q.dtype.element_ty
    token = tl.arange(0, BLOCK_N)
    ahead = at + BLOCK_N
    kept = at + token < (end if EDGE else ahead)
    rows = cache_rows(values, entries, at, value_block, value_token, BLOCK_N, BLOCK_SIZE, WIDE)
    if CHUNK == PADDED:
        k = k_ahead
        v = cache_tile(rows, place, kept, HEAD, PADDED)
        if not EARLY:
            score = tl.dot(q, tl.trans(widened(k, kind)), out_dtype=tl.float32)
        rows = cache_rows(
            keys, entries_ahead, ahead, key_block, key_token, BLOCK_N, BLOCK_SIZE, WIDE
        )
        k_ahead = cache_tile(rows, place, ahead + token < end, HEAD, PADDED)
        if EARLY:
            score = tl.dot(q, tl.trans(widened(k, kind)), out_dtype=tl.float32)
    else:
        key_rows = cache_rows(keys, entries, at, key_block, key_token, BLOCK_N, BLOCK_SIZE, WIDE)
        score = chunked_scores(
            from_q, inside, key_rows, kept, tl.minimum(at, 0),
            HEAD, PADDED, CHUNK, BLOCK_N, from_q.shape[0], kind,
        )  # fmt: skip
        v = cache_tile(rows, place, kept, HEAD, PADDED)
    entries = entries_ahead
    entries_ahead = cache_entries(table, ahead + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
    if CAPPED:
        score = capped(score * factor, soft_cap) * 1.4426950408889634
        factor = 1.0
    if SLOPES or EDGE or CHUNK != PADDED:
        distance = at + token[None, :] - position[:, None]
        score *= factor
        factor = 1.0
        if SLOPES:
            score += slope[:, None] * distance.to(tl.float32)
        if EDGE:
            seen = distance <= 0
            if WINDOW:
                seen &= distance > -window
            score = tl.where(seen, score, float("-inf"))
    peak = tl.maximum(most, tl.max(score, axis=1) * factor)
    weight = tl.exp2(score * factor - peak[:, None])
    shrink = tl.exp2(most - peak)
    total = total * shrink + tl.sum(weight, axis=1)
    v = widened(v, kind)
    found = found * shrink[:, None]
    found = tl.dot(rounded(weight, v, SHORT), v, found, out_dtype=tl.float32)
    return found, total, peak, k_ahead, entries, entries_ahead


@triton.jit
def paged_attention_kernel(
    q_ptr, key_ptr, value_ptr, start_ptr, table_ptr, length_ptr, k_scale_ptr, v_scale_ptr, sink_ptr,
    slope_ptr, out_ptr, scale, soft_cap, window,
    sequences, group, q_row, q_head, out_row, table_stride,
    key_block, key_token, key_head, value_block, value_token, value_head, k_step, v_step,
    HEAD: tl.constexpr, PADDED: tl.constexpr, GROUP: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    WINDOW: tl.constexpr, SINKS: tl.constexpr, SLOPES: tl.constexpr, CAPPED: tl.constexpr,
    K_SCALED: tl.constexpr, V_SCALED: tl.constexpr, SHORT: tl.constexpr, WIDE: tl.constexpr,
    QUERIES: tl.constexpr, BLOCK_N: tl.constexpr, CHUNK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """A program takes QUERIES successive tokens of a sequence with GROUP heads each, those of one
    head of keys: rows of one product. Sequence s has the programs from start[s] // QUERIES + s on,
    so that the grid is known without reading the starts; those that are too many end at once."""
    head = tl.program_id(0)
    program = tl.program_id(1)
    # the last sequence whose programs begin here or before
    sequence = -1
    for first in range(0, sequences, 256):
        number = first + tl.arange(0, 256)
        begun = tl.load(start_ptr + number, mask=number < sequences, other=0).to(tl.int32)
        begun = (begun // QUERIES + number <= program) & (number < sequences)
        sequence += tl.sum(begun.to(tl.int32), axis=0)
    begin = tl.load(start_ptr + sequence).to(tl.int32)
    queries = tl.load(start_ptr + sequence + 1).to(tl.int32) - begin
    # the last tokens, which see most, come first
    first_query = program - (begin // QUERIES + sequence)
    first_query = (tl.cdiv(queries, QUERIES) - 1 - first_query) * QUERIES
    if first_query >= 0:
        length = tl.load(length_ptr + sequence).to(tl.int32)
        place = tl.arange(0, PADDED)
        row = tl.arange(0, QUERIES * GROUP)
        query = first_query + row // GROUP
        member = row % GROUP
        inside = (query < queries) & (member < group)
        own = head * group + member
        position = length - queries + query
        at_q = (begin + query).to(tl.int64) * q_row + own * q_head
        mask = inside[:, None] & (place < HEAD)[None, :]
        from_q = q_ptr + at_q
        factor = scale
        if K_SCALED:
            factor *= tl.load(k_scale_ptr + head * k_step)
        if not CAPPED:
            factor *= 1.4426950408889634
        q = 0.0
        k_ahead = 0.0
        if CHUNK == PADDED:
            # a positive factor keeps the order of scores
            q = tl.load(from_q[:, None] + place[None, :], mask=mask, other=0.0)
            q = tl.where(factor < 0, -q, q)
            factor = tl.abs(factor)
        most = tl.full((QUERIES * GROUP,), _LOWEST, tl.float32)
        total = tl.zeros((QUERIES * GROUP,), tl.float32)
        if SINKS:
            most = tl.load(sink_ptr + own, mask=inside, other=0.0).to(tl.float32)
            most = tl.maximum(most * 1.4426950408889634, _LOWEST)  # -inf is no sink
            total += 1.0
        slope = 0.0
        if SLOPES:
            slope = tl.load(slope_ptr + own, mask=inside, other=0.0).to(tl.float32)
            slope *= 1.4426950408889634
        found = tl.zeros((QUERIES * GROUP, PADDED), tl.float32)
        table = table_ptr + sequence.to(tl.int64) * table_stride  # pyright: ignore[reportAttributeAccessIssue]
        keys = key_ptr + head * key_head
        values = value_ptr + head * value_head
        # all queries see the tokens from `whole` to `partial`, which the first one sees last
        first_seen = length - queries + first_query
        end = tl.minimum(first_seen + QUERIES, length)
        low = 0
        whole = 0
        if WINDOW:
            low = tl.maximum(first_seen - window + 1, 0) // BLOCK_N * BLOCK_N
            whole = tl.cdiv(tl.maximum(end - window, 0), BLOCK_N) * BLOCK_N
        partial = (first_seen + 1) // BLOCK_N * BLOCK_N
        entries = cache_entries(table, low, end, BLOCK_N, BLOCK_SIZE)
        entries_ahead = cache_entries(table, low + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
        if CHUNK == PADDED:
            # keys are loaded a tile ahead
            rows = cache_rows(keys, entries, low, key_block, key_token, BLOCK_N, BLOCK_SIZE, WIDE)
            k_ahead = cache_tile(rows, place, low + tl.arange(0, BLOCK_N) < end, HEAD, PADDED)
        for part in tl.static_range(0 if WINDOW else 1, 3):
            start = whole
            stop = partial
            if part == 0:
                start = low
                stop = tl.minimum(whole, end)
            elif part == 2:
                start = tl.maximum(whole, partial)
                stop = end
            for at in range(start, stop, BLOCK_N):
                found, total, most, k_ahead, entries, entries_ahead = _step(
                    found, total, most, k_ahead, entries, entries_ahead, at, end,
                    q, from_q, inside, place, position, table, keys, values,
                    factor, slope, soft_cap, window, key_block, key_token, value_block, value_token,
                    HEAD, PADDED, BLOCK_SIZE, BLOCK_N, CHUNK, EARLY, part != 1, WINDOW, SLOPES,
                    CAPPED, SHORT, WIDE,
                )  # fmt: skip
        norm = 1.0 / tl.where(total > 0, total, 1.0)
        if V_SCALED:
            norm *= tl.load(v_scale_ptr + head * v_step)
        found = found * norm[:, None]
        to = (begin + query).to(tl.int64) * out_row + own * HEAD
        to_out = out_ptr + to[:, None] + place[None, :]
        tl.store(to_out, found.to(out_ptr.dtype.element_ty), mask=mask)


def paged_attention(
    q: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    starts: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    scale: float | None = None,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
    window: int = 0,
    sinks: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    alibi: torch.Tensor | None = None,
) -> torch.Tensor:
    """Causal attention of the new tokens of sequences over a paged cache that holds them already.

    `q` is [tokens, heads, head]: the new tokens of sequence s are rows `starts[s]` up to, but not,
    `starts[s + 1]` (int32 or int64, [sequences + 1], from 0 to tokens), any number of them, and are
    the last of its `lengths[s]` tokens; each sees the tokens up to itself. The other arguments, and
    their dtypes, are as in `paged_decode`.

    Returns [tokens, heads, head] in the dtype of `q`. Raises ArgumentError.
    """
    name = "paged_attention"
    options = Options(k_scale, v_scale, window, sinks, soft_cap, alibi)
    check(name, q, key_cache, value_cache, block_table, lengths, options)
    checks.dtype_in(name, "starts", starts, (torch.int32, torch.int64))
    checks.shape_is(name, "starts", starts, (lengths.shape[0] + 1,))
    checks.same_device(name, q=q, starts=starts)
    tokens, heads, head = q.shape
    sequences = lengths.shape[0]
    block_size, kv_heads = key_cache.shape[1:3]
    out = torch.empty((tokens, heads, head), dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    checks.require(sequences > 0, name, f"{tokens} tokens of no sequence")
    if not block_table.shape[1] or not key_cache.shape[0]:
        return out.zero_()
    group = heads // kv_heads
    given = Paged.of(q, key_cache, value_cache, block_table, scale, options)
    launch(
        paged_attention_kernel,
        lambda settings: (kv_heads, tokens // settings["QUERIES"] + sequences),
        (
            *(given.q, key_cache, value_cache, starts.contiguous(), given.block_table),
            *(lengths.contiguous(), given.k_scale, given.v_scale, given.sinks, given.alibi, out),
            *(*given.factors, sequences, group, *given.q.stride()[:2], out.stride(0)),
            *(given.block_table.stride(0), *given.strides),
        ),
        SPACE,
        {
            **given.problem,
            "rows": tokens,
            "sequences": sequences,
            "group": triton.next_power_of_2(group),
            "tokens": block_table.shape[1] * block_size,
            "window": window,
        },
        GROUP=triton.next_power_of_2(group),
        SHORT=not gpu.launching().capabilities.bf16_conversion,
        **given.constants,
    )
    return out


def paged_attention_reference(
    q: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    starts: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    scale: float | None = None,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
    window: int = 0,
    sinks: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    alibi: torch.Tensor | None = None,
) -> torch.Tensor:
    """Over all tokens a table can hold, with the others masked."""
    row = torch.arange(q.shape[0], device=q.device)
    sequence = torch.searchsorted(starts[1:].contiguous().to(row.dtype), row, right=True)
    position = lengths[sequence].long() - starts[sequence + 1].long() + row
    return attended(
        q,
        sequence,
        position,
        key_cache,
        value_cache,
        block_table,
        q.shape[2] ** -0.5 if scale is None else scale,
        Options(k_scale, v_scale, window, sinks, soft_cap, alibi),
    )


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    group = problem["group"]
    rows = tuple(rows for rows in (16, 32, 64, 128) if rows >= group) or (group,)
    return {
        "QUERIES": tuple(rows // group for rows in rows),
        "BLOCK_N": (16, 32, 64),
        "CHUNK": chunks(problem["head"], device),
        "EARLY": (False, True),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (1,),
        **compiler_options(device),
        **({"matrix_instr_nonkdim": (32, 16)} if device.target.startswith("gfx9") else {}),
    }


def _walk(problem: Problem, settings: Settings) -> ManyRows:
    """Sequences are taken to have equally many new tokens."""
    queries = max(1, triton.cdiv(problem["rows"], problem["sequences"]))
    tiles = triton.cdiv(queries, settings["QUERIES"])
    head = triton.next_power_of_2(problem["head"])
    # new tokens see half of each other
    tokens = max(1, problem["tokens"] - queries // 2)
    if problem["window"]:
        tokens = min(tokens, problem["window"] + settings["QUERIES"])
    size = getattr(torch, problem["cache"]).itemsize
    heads = problem["sequences"] * problem["kv_heads"]
    return ManyRows(
        programs=heads * tiles,
        warps=settings["num_warps"],
        steps=triton.cdiv(tokens, settings["BLOCK_N"]),
        rows=settings["QUERIES"] * problem["group"],
        columns=settings["BLOCK_N"],
        depth=head,
        width=head,
        size=size,
        bytes=2.0 * heads * min(problem["tokens"], tokens + queries) * problem["head"] * size,
        held=settings["CHUNK"] == head,
        ahead=1,
    )


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    # with more rows a wave, too few waves fit to hide their waits
    walk, waves = _walk(problem, settings), settings["num_warps"]
    rows = 32 if device.target.startswith("gfx9") else 16
    most = rows * min(waves, 8) if problem["group"] <= 128 else problem["group"]
    large = settings.get("matrix_instr_nonkdim", 16) == 32
    if large and walk.rows < 32 * waves:
        return False
    # of executed samples, those of gfx90a and gfx942 are faster later, and those of large products
    if settings["EARLY"] == (large or device.target in ("gfx90a", "gfx942")):
        return False
    return walk.fits(device) and 8 * waves <= walk.rows <= most


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    kind = "fp16" if problem["dtype"] == "float16" else "bf16"
    return _walk(problem, settings).seconds(device, kind)


SPACE = Space(
    kernel="paged_attention_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("rows", "sequences", "tokens"),
)


def _inputs(
    make: Make,
    prefills: int,
    new: int,
    decodes: int,
    length: int,
    ragged: bool = False,
    **sizes: Any,
) -> dict[str, Any]:
    lengths = made_lengths(make, prefills + decodes, length, ragged)
    counts = torch.tensor([new] * prefills + [1] * decodes, dtype=torch.int32)
    counts = torch.minimum(counts, lengths.cpu())
    starts = torch.cat([torch.zeros(1, dtype=torch.int32), counts.cumsum(0).int()])
    given = paged_inputs(make, lengths, int(starts[-1]), **sizes)
    return {**given, "starts": starts.to(make.device)}


def _work(
    prefills: int, new: int, decodes: int, length: int, window: int = 0, **sizes: Any
) -> Work:
    seen = sum(min(length - new + i + 1, window or length) for i in range(new)) * prefills
    seen += decodes * min(length, window or length)
    read = prefills * min(length, window + new if window else length)
    read += decodes * min(length, window or length)
    return paged_work(prefills * new + decodes, read, seen, **sizes)


_SMALL = {
    "prefills": 2,
    "new": 19,
    "decodes": 1,
    "heads": 8,
    "kv_heads": 2,
    "head": 64,
    "length": 75,
    "ragged": True,
}
_CASES = (
    {**_SMALL, "dtype": "bfloat16"},
    {**_SMALL, "dtype": "float16", "heads": 6, "head": 80, "window": 21, "sinks": True},
    {**_SMALL, "dtype": "bfloat16", "cache": "float8_e4m3fn", "scales": 2, "block_size": 64},
)
_THOROUGH = (
    {**_SMALL, "dtype": "bfloat16", "cache": "int8", "scales": 1, "alibi": True},
    {**_SMALL, "dtype": "float16", "cache": "float8_e4m3fnuz", "soft_cap": 10.0},
    {**_SMALL, "dtype": "float16", "cache": "float8_e5m2", "new": 1, "block_size": 24},
    {**_SMALL, "dtype": "bfloat16", "head": 128, "new": 70, "prefills": 1, "heads": 2},
    {**_SMALL, "dtype": "bfloat16", "head": 256, "block_size": 32, "new": 3},
)
_SHAPES = (
    {**LLAMA, "prefills": 2, "new": 2048, "decodes": 0, "heads": 64, "length": 2048},
    {**LLAMA, "prefills": 1, "new": 1024, "decodes": 32, "heads": 64, "length": 4096},
    {**LLAMA, "prefills": 0, "new": 0, "decodes": 128, "heads": 64, "length": 4096},
)

OPERATORS = (
    Operator(
        name="paged_attention",
        notes=FP8_NAN,
        summary="causal attention of new tokens over a paged cache: prefill, decode, or both",
        call=paged_attention,
        reference=paged_attention_reference,
        inputs=_inputs,
        work=_work,
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(SPACE,),
        exact=("k_scale", "v_scale"),
    ),
)
