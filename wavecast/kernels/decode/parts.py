"""What the kernels of a paged cache share: reading its tiles."""

from __future__ import annotations

from typing import Final

import torch
import triton
import triton.language as tl

LOG2E: Final = 1.4426950408889634
HALVES: Final = (torch.float16, torch.bfloat16)
FP8: Final = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2)
CACHES: Final = (*HALVES, *FP8, torch.int8)
FP8_NAN: Final = (
    "A NaN in an fp8 cache counts as a number where a GPU does not convert the format: to keep it "
    "would cost 11% of the time on gfx942 and double it on gfx90a."
)
"""A note of operators that read fp8 caches; from executed samples of `paged_decode`, 64 sequences
of 4096 tokens, with the cache widened by `quantise.formats.halves_of`."""


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
    """A tile of a cache in the dtype `kind` of matrix products, exactly but for NaN (FP8_NAN)."""
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


__all__ = [
    "CACHES",
    "FP8",
    "FP8_NAN",
    "HALVES",
    "LOG2E",
    "cache_entries",
    "cache_rows",
    "cache_tile",
    "capped",
    "chunked_scores",
    "widened",
]
