"""Attention of one new token per sequence over compressed keys and values (multi-head latent
attention with the up-projections absorbed): all heads share one key per token, whose first part is
the value too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.decode.arguments import (
    Options,
    attended,
    cache_dtype,
    made_cache,
    made_lengths,
    made_table,
    tables,
)
from wavecast.kernels.decode.parts import (
    HALVES,
    REDUCE,
    cache_entries,
    cache_rows,
    reduce_parts,
    splits,
    widened,
)
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import xcds
from wavecast.model.bounds import Work


@triton.jit
def mla_decode_kernel(
    q_ptr, cache_ptr, table_ptr, length_ptr, scale_ptr, out_ptr, part_ptr, stat_ptr, factor,
    sequences, heads, q_sequence, q_head, table_stride, block_stride, token_stride,
    LATENT: tl.constexpr, ROPE: tl.constexpr, SPLITS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    SCALED: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    ROWS: tl.constexpr, BLOCK_N: tl.constexpr, VALUE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """A program takes ROWS heads, VALUE columns of their values, and one of SPLITS parts of the
    tokens of a sequence. With CHUNK = LATENT it keeps its queries in registers; else it reads them
    again for every tile, CHUNK elements at a time."""
    program = tl.program_id(0)
    count = tl.num_programs(0)
    if XCDS > 1:
        # neighbours, which read the same tokens, to one die and its L2
        die = program % XCDS
        program = die * (count // XCDS) + tl.minimum(die, count % XCDS) + program // XCDS
    row_tiles = tl.cdiv(heads, ROWS)
    tile = program % row_tiles
    column = program // row_tiles % (LATENT // VALUE) * VALUE
    split = program // (row_tiles * (LATENT // VALUE)) % SPLITS
    sequence = program // (row_tiles * (LATENT // VALUE) * SPLITS)
    length = tl.load(length_ptr + sequence).to(tl.int32)
    share = tl.cdiv(tl.cdiv(length, BLOCK_N), SPLITS) * BLOCK_N
    start = split * share
    end = tl.minimum(start + share, length)

    row = tile * ROWS + tl.arange(0, ROWS)
    inside = row < heads
    from_q = q_ptr + sequence.to(tl.int64) * q_sequence + row[:, None] * q_head
    rope = LATENT + tl.arange(0, ROPE)
    q_rope = tl.load(from_q + rope[None, :], mask=inside[:, None], other=0.0)
    place = tl.arange(0, CHUNK)
    if CHUNK == LATENT:
        q = tl.load(from_q + place[None, :], mask=inside[:, None], other=0.0)
    if SCALED:
        own = tl.load(scale_ptr)
        factor *= own
    most = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    found = tl.zeros((ROWS, VALUE), tl.float32)
    table = table_ptr + sequence.to(tl.int64) * table_stride
    token = tl.arange(0, BLOCK_N)
    columns = column + tl.arange(0, VALUE)
    entries = cache_entries(table, start, end, BLOCK_N, BLOCK_SIZE)
    for at in range(start, end, BLOCK_N):
        kept = at + token < end
        rows = cache_rows(
            cache_ptr, entries, at, block_stride, token_stride, BLOCK_N, BLOCK_SIZE, WIDE
        )
        k = tl.load(rows[:, None] + rope[None, :], mask=kept[:, None], other=0.0)
        if CHUNK == LATENT:
            c = tl.load(rows[:, None] + place[None, :], mask=kept[:, None], other=0.0)
            entries = cache_entries(table, at + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            c = widened(c, q_rope.dtype)
            score = tl.dot(q_rope, tl.trans(widened(k, q_rope.dtype)), out_dtype=tl.float32)
            score = tl.dot(q, tl.trans(c), score, out_dtype=tl.float32)
        else:
            entries = cache_entries(table, at + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            score = tl.dot(q_rope, tl.trans(widened(k, q_rope.dtype)), out_dtype=tl.float32)
            # zero, which the compiler must not know: it would keep all queries in registers
            again = tl.minimum(at, 0)
            for first in tl.static_range(0, LATENT, CHUNK):
                here = first + place[None, :]
                part = tl.load(from_q + again + here, mask=inside[:, None], other=0.0)
                k = tl.load(rows[:, None] + here, mask=kept[:, None], other=0.0)
                k = widened(k, q_rope.dtype)
                score = tl.dot(part, tl.trans(k), score, out_dtype=tl.float32)
            c = tl.load(rows[:, None] + columns[None, :], mask=kept[:, None], other=0.0)
            c = widened(c, q_rope.dtype)
        score = tl.where(kept[None, :], score * factor, float("-inf"))
        peak = tl.maximum(most, tl.max(score, axis=1))
        weight = tl.exp2(score - peak[:, None])
        shrink = tl.exp2(most - peak)
        total = total * shrink + tl.sum(weight, axis=1)
        found = found * shrink[:, None]
        found = tl.dot(weight.to(c.dtype), c, found, out_dtype=tl.float32)
        most = peak
    if SCALED:
        found *= own
    row += sequence * heads
    to = row.to(tl.int64)[:, None]
    if SPLITS == 1:
        found = found / tl.where(total > 0, total, 1.0)[:, None]
        to_out = out_ptr + to * LATENT + columns[None, :]
        tl.store(to_out, found.to(out_ptr.dtype.element_ty), mask=inside[:, None])
    else:
        to_part = part_ptr + (to * SPLITS + split) * LATENT + columns[None, :]
        tl.store(to_part, found, mask=inside[:, None])
        if column == 0:
            to_stat = stat_ptr + row * SPLITS + split
            tl.store(to_stat, most, mask=inside)
            tl.store(to_stat + sequences * heads * SPLITS, total, mask=inside)
