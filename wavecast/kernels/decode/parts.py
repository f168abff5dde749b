"""What the kernels of a paged cache share: reading its tiles."""

from typing import Final

import torch
import triton
import triton.language as tl

LOG2E: Final = 1.4426950408889634
HALVES: Final = (torch.float16, torch.bfloat16)
FP8: Final = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2)
FP8_NAN: Final = (
    "A NaN in an fp8 cache counts as a number where a GPU does not convert the format: to keep it "
    "would cost 11% of the time on gfx942 and double it on gfx90a."
)
"""A note on operators that read fp8 caches; from executed samples of `paged_decode`, 64 sequences
of 4096 tokens, with the cache widened by `quantise.formats.halves_of`."""


@triton.jit
def cache_blocks(table, start, end, BLOCK_N: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """The numbers of the blocks with the BLOCK_N tokens from `start` on: one where a block has all
    of them, else one per token."""
    if BLOCK_SIZE % BLOCK_N == 0:
        return tl.load(table + start // BLOCK_SIZE, mask=start < end, other=0)
    else:
        offs_n = start + tl.arange(0, BLOCK_N)
        return tl.load(table + offs_n // BLOCK_SIZE, mask=offs_n < end, other=0)


@triton.jit
def cache_ptrs(
    cache, blocks, start, block_stride, token_stride,
    BLOCK_N: tl.constexpr, BLOCK_SIZE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Pointers to the BLOCK_N tokens from `start` on, with their `cache_blocks`."""
    offs_n = tl.arange(0, BLOCK_N)
    if BLOCK_SIZE % BLOCK_N == 0:
        block_ptr = cache + blocks.to(tl.int64) * block_stride
        return block_ptr + (start % BLOCK_SIZE + offs_n) * token_stride
    else:
        if WIDE:
            blocks = blocks.to(tl.int64)
        return cache + (blocks * block_stride + (start + offs_n) % BLOCK_SIZE * token_stride)


@triton.jit
def load_tokens(ptrs, offs_d, mask, HEAD: tl.constexpr, PADDED: tl.constexpr):
    """Elements `offs_d` of the tokens at `ptrs`; zeros where not `mask` or past HEAD."""
    if HEAD == PADDED:
        return tl.load(ptrs[:, None] + offs_d[None, :], mask=mask[:, None], other=0.0)
    else:
        mask_2d = mask[:, None] & (offs_d < HEAD)[None, :]
        return tl.load(ptrs[:, None] + offs_d[None, :], mask=mask_2d, other=0.0)


@triton.jit
def widen(x, dtype: tl.constexpr):
    """A tile of a cache in the `dtype` of matrix products, exactly but for NaN (FP8_NAN)."""
    if x.dtype == dtype:
        return x
    elif x.dtype == tl.int8:
        wide = x.to(tl.float32)
        if dtype == tl.bfloat16:
            # 8 significant bits: the upper half of the float32 is all of it
            upper = (wide.to(tl.uint32, bitcast=True) >> 16).to(tl.uint16)
            return upper.to(tl.bfloat16, bitcast=True)
        else:
            return wide.to(dtype)
    elif dtype == tl.float16 and x.dtype.is_fp8():
        # Triton's conversion to bfloat16 is the short one where a target lacks the format
        return x.to(tl.bfloat16).to(tl.float32).to(tl.float16)
    else:
        return x.to(dtype)


@triton.jit
def capped(score, soft_cap):
    """soft_cap · tanh(score / soft_cap)."""
    power = tl.exp2(score * (2.0 * 1.4426950408889634 / soft_cap))
    return soft_cap * (1.0 - 2.0 / (power + 1.0))


@triton.jit
def chunked_scores(
    q_ptrs, q_mask, k_ptrs, k_mask, zero,
    HEAD: tl.constexpr, PADDED: tl.constexpr, CHUNK: tl.constexpr, BLOCK_N: tl.constexpr,
    ROWS: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """q·k of a tile of keys, CHUNK elements at a time, with the queries read again: for targets
    whose registers are too few for them. The compiler must not know that `zero` is 0."""
    score = tl.zeros((ROWS, BLOCK_N), tl.float32)
    for first in tl.static_range(0, PADDED, CHUNK):  # pyright: ignore[reportGeneralTypeIssues]
        offs_d = first + tl.arange(0, CHUNK)
        mask = q_mask[:, None] & (offs_d < HEAD)[None, :]
        q = tl.load(q_ptrs[:, None] + zero + offs_d[None, :], mask=mask, other=0.0)
        mask = k_mask[:, None] & (offs_d < HEAD)[None, :]
        k = tl.load(k_ptrs[:, None] + offs_d[None, :], mask=mask, other=0.0)
        score = tl.dot(q, tl.trans(widen(k, dtype)), score, out_dtype=tl.float32)
    return score
