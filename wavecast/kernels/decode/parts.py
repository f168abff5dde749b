"""What the kernels of a paged cache share: reading its tiles, and joining the parts of a softmax
that workgroups computed of one row each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.space import Problem, Settings, Space

LOG2E: Final = 1.4426950408889634
HALVES: Final = (torch.float16, torch.bfloat16)
FP8: Final = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2)
CACHES: Final = (*HALVES, *FP8, torch.int8)

_PROGRAMS_PER_UNIT = 8
_SHORTEST = 32768
"""Bytes of keys that are worth a part of their own."""
_MOST_SPLITS = 64
_AT_ONCE = 8
"""Parts whose loads the reduction has under way together."""


@triton.jit
def cache_entries(table, at, end, BLOCK_N: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """The blocks that hold tokens `at` to `at + BLOCK_N`: one number where a block holds them all,
    else one per token."""
    if BLOCK_SIZE % BLOCK_N == 0:
        return tl.load(table + at // BLOCK_SIZE, mask=at < end, other=0)
    else:
        token = at + tl.arange(0, BLOCK_N)
        return tl.load(table + token // BLOCK_SIZE, mask=token < end, other=0)


@triton.jit
def cache_rows(
    cache, entries, at, block_stride, token_stride,
    BLOCK_N: tl.constexpr, BLOCK_SIZE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Pointers to the BLOCK_N tokens from `at` on, whose `cache_entries` are known."""
    token = tl.arange(0, BLOCK_N)
    if BLOCK_SIZE % BLOCK_N == 0:
        start = cache + entries.to(tl.int64) * block_stride
        return start + (at % BLOCK_SIZE + token) * token_stride
    else:
        if WIDE:
            entries = entries.to(tl.int64)
        return cache + (entries * block_stride + (at + token) % BLOCK_SIZE * token_stride)


@triton.jit
def cache_tile(rows, place, inside, HEAD: tl.constexpr, PADDED: tl.constexpr):
    """Elements `place` of the tokens `rows` point to; zeros where not `inside` or past HEAD."""
    if HEAD == PADDED:
        return tl.load(rows[:, None] + place[None, :], mask=inside[:, None], other=0.0)
    else:
        kept = inside[:, None] & (place < HEAD)[None, :]
        return tl.load(rows[:, None] + place[None, :], mask=kept, other=0.0)


@triton.jit
def widened(x, kind: tl.constexpr):
    """A tile of a cache in the dtype `kind` of the matrix product, exactly."""
    if x.dtype == kind:
        return x
    elif x.dtype == tl.int8:
        wide = x.to(tl.float32)
        if kind == tl.bfloat16:
            # 8 significant bits: the upper half of the float32 is all of it
            upper = (wide.to(tl.uint32, bitcast=True) >> 16).to(tl.uint16)
            return upper.to(tl.bfloat16, bitcast=True)
        else:
            return wide.to(kind)
    elif kind == tl.float16 and x.dtype.is_fp8():
        # Triton's way to bfloat16 is the short one where a target lacks the format
        return x.to(tl.bfloat16).to(tl.float32).to(tl.float16)
    else:
        return x.to(kind)


@triton.jit
def capped(score, soft_cap):
    """soft_cap · tanh(score / soft_cap)."""
    grown = tl.exp2(score * (2.0 * 1.4426950408889634 / soft_cap))
    return soft_cap * (1.0 - 2.0 / (grown + 1.0))


@triton.jit
def chunked_scores(
    from_q, inside, rows, kept, again,
    HEAD: tl.constexpr, PADDED: tl.constexpr, CHUNK: tl.constexpr, BLOCK_N: tl.constexpr,
    ROWS: tl.constexpr, kind: tl.constexpr,
):  # fmt: skip
    """q·k of a tile of keys, CHUNK elements at a time, with the queries read again: for targets
    whose registers do not hold them. `again` is zero, which the compiler must not know."""
    score = tl.zeros((ROWS, BLOCK_N), tl.float32)
    for first in tl.static_range(0, PADDED, CHUNK):  # pyright: ignore[reportGeneralTypeIssues]
        place = first + tl.arange(0, CHUNK)
        mask = inside[:, None] & (place < HEAD)[None, :]
        q = tl.load(from_q[:, None] + again + place[None, :], mask=mask, other=0.0)
        mask = kept[:, None] & (place < HEAD)[None, :]
        k = tl.load(rows[:, None] + place[None, :], mask=mask, other=0.0)
        score = tl.dot(q, tl.trans(widened(k, kind)), score, out_dtype=tl.float32)
    return score


@triton.jit
def decode_reduce_kernel(
    part_ptr, stat_ptr, out_ptr, rows, row_stride,
    HEAD: tl.constexpr, PADDED: tl.constexpr, SPLITS: tl.constexpr, PADDED_SPLITS: tl.constexpr,
    AT_ONCE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Joins the SPLITS parts of every row: `part_ptr` [rows, SPLITS, HEAD] are sums weighted with
    exp2(score - most), `stat_ptr` [2, rows, SPLITS] `most` and the sum of weights."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    place = tl.arange(0, PADDED)
    split = tl.arange(0, PADDED_SPLITS)
    valid = row < rows
    stats = stat_ptr + row[:, None] * SPLITS + split[None, :]
    given = valid[:, None] & (split < SPLITS)[None, :]
    peaks = tl.load(stats, mask=given, other=float("-inf"))
    most = tl.max(peaks, axis=1)
    most = tl.where(most == float("-inf"), 0.0, most)
    sums = tl.load(stats + rows * SPLITS, mask=given, other=0.0)
    total = tl.sum(sums * tl.exp2(peaks - most[:, None]), axis=1)
    found = tl.zeros((ROWS, PADDED), tl.float32)
    from_row = part_ptr + row.to(tl.int64)[:, None] * (SPLITS * HEAD) + place[None, :]
    kept = valid[:, None] & (place < HEAD)[None, :]
    for start in range(0, SPLITS, AT_ONCE):
        for step in tl.static_range(0, AT_ONCE):  # pyright: ignore[reportGeneralTypeIssues]
            number = start + step
            here = valid & (number < SPLITS)
            peak = tl.load(stat_ptr + row * SPLITS + number, mask=here, other=float("-inf"))
            weight = tl.exp2(peak - most)[:, None]
            part = tl.load(from_row + number * HEAD, mask=kept & (weight > 0), other=0.0)
            found += part * weight
    found = found / tl.where(total > 0, total, 1.0)[:, None]  # pyright: ignore[reportOperatorIssue]
    to_row = out_ptr + row.to(tl.int64)[:, None] * row_stride + place[None, :]
    tl.store(to_row, found.to(out_ptr.dtype.element_ty), mask=kept)


def splits(device: Device, programs: int, tokens: int, token_bytes: int) -> int:
    """In how many parts the tokens of a sequence are best taken, with `programs` that each walk
    `tokens` otherwise: as many as fill the GPU, and none too short to be worth its own start."""
    wanted = _PROGRAMS_PER_UNIT * device.compute_units / max(1, programs)
    longest = max(1, tokens // max(64, _SHORTEST // token_bytes))
    return 1 << max(0, math.ceil(math.log2(max(1.0, min(wanted, longest, _MOST_SPLITS)))))


def reduce_parts(part: torch.Tensor, stat: torch.Tensor, out: torch.Tensor) -> None:
    """Join `part` [rows, splits, head] with `stat` [2, rows, splits] into `out` [rows, head]."""
    rows, count, head = part.shape
    launch(
        decode_reduce_kernel,
        lambda settings: (triton.cdiv(rows, settings["ROWS"]),),
        (part, stat, out, rows, out.stride(0)),
        REDUCE,
        {"rows": rows, "head": head, "splits": count},
        HEAD=head,
        PADDED=triton.next_power_of_2(head),
        SPLITS=count,
        PADDED_SPLITS=triton.next_power_of_2(count),
        AT_ONCE=min(count, _AT_ONCE),
    )


def _reduce_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"ROWS": (1, 2, 4, 8), "num_warps": (1, 2, 4), "num_stages": (1,)}


def _reduce_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, head, count = problem["rows"], problem["head"], problem["splits"]
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(rows, settings["ROWS"]),
        read=4.0 * rows * count * (head + 2),
        written=2.0 * rows * head,
        elements=settings["ROWS"] * triton.next_power_of_2(head),
        operations=8.0 + 4.0 * count,
        held=4.0,
    )


REDUCE = Space(
    kernel="decode_reduce_kernel",
    axes=_reduce_axes,
    seconds=_reduce_seconds,
    classes=("rows",),
)


__all__ = [
    "CACHES",
    "FP8",
    "HALVES",
    "LOG2E",
    "REDUCE",
    "cache_entries",
    "cache_rows",
    "cache_tile",
    "capped",
    "chunked_scores",
    "decode_reduce_kernel",
    "reduce_parts",
    "splits",
    "widened",
]
