"""Pieces that the forward and the backward kernels share: which program does what, which keys a
query sees, what a product becomes as a logit, which probabilities dropout keeps."""

from __future__ import annotations

import triton
import triton.language as tl

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)


@triton.jit
def shared_out(number, count, XCDS: tl.constexpr):
    """Workgroups go to the XCDs of an MI300 in turns; renumbered, each XCD takes neighbours, which
    read the same keys through its L2."""
    if XCDS > 1:
        share = count // XCDS
        more = count % XCDS
        xcd = number % XCDS
        number = xcd * share + tl.minimum(xcd, more) + number // XCDS
    return number


@triton.jit
def sequence(starts_ptr, batch, length, VARLEN: tl.constexpr, WIDE: tl.constexpr):
    """(row of the tensor where a sequence starts, its length)."""
    start = 0
    if VARLEN:
        start = tl.load(starts_ptr + batch).to(tl.int32)
        length = tl.load(starts_ptr + batch + 1).to(tl.int32) - start
    return tl.cast(start, tl.int64) if WIDE else start, length


@triton.jit
def seen_keys(
    first, last, keys, left, right, BLOCK: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr
):
    """Keys that queries at key positions `first` to `last` see, in blocks: (lo, full_lo, full_hi,
    hi), where only blocks from `full_lo` to `full_hi` are seen in full by all of them. What lies
    before is from lo to min(full_lo, hi), what lies behind from max(full_lo, full_hi) to hi."""
    hi = keys
    full_hi = keys // BLOCK * BLOCK
    if RIGHT:
        hi = tl.minimum(keys, last + right + 1)
        full_hi = tl.minimum(full_hi, tl.maximum(first + right + 1, 0) // BLOCK * BLOCK)
    lo = 0
    full_lo = 0
    if LEFT:
        lo = tl.maximum(first - left, 0) // BLOCK * BLOCK
        full_lo = (tl.maximum(last - left, 0) + BLOCK - 1) // BLOCK * BLOCK
    return lo, full_lo, full_hi, hi


@triton.jit
def seen_queries(
    first, last, queries, shift, left, right,
    BLOCK: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
):  # fmt: skip
    """As `seen_keys`: the queries that see keys `first` to `last`, where query i stands at key
    position i + shift."""
    hi = queries
    full_hi = queries // BLOCK * BLOCK
    if LEFT:
        hi = tl.minimum(queries, last + left - shift + 1)
        full_hi = tl.minimum(full_hi, tl.maximum(first + left - shift + 1, 0) // BLOCK * BLOCK)
    lo = 0
    full_lo = 0
    if RIGHT:
        lo = tl.maximum(first - right - shift, 0) // BLOCK * BLOCK
        full_lo = (tl.maximum(last - right - shift, 0) + BLOCK - 1) // BLOCK * BLOCK
    return lo, full_lo, full_hi, hi


@triton.jit
def visible(i, j, keys, left, right, LEFT: tl.constexpr, RIGHT: tl.constexpr):
    """Whether the query at key position `i` sees key `j`."""
    seen = j < keys
    if RIGHT:
        seen = seen & (j <= i + right)
    if LEFT:
        seen = seen & (j >= i - left)
    return seen


@triton.jit
def capped(products, scale, soft_cap):
    """tanh(product · scale / cap)."""
    power = tl.exp2(products * (2.0 * LOG2E * scale / soft_cap))
    return 1.0 - 2.0 / (power + 1.0)


@triton.jit
def kept(seed, row, j, threshold):
    """Which probabilities dropout keeps: the word of Philox at counter (key, row of lse)."""
    zero = tl.zeros_like(j).to(tl.uint32)
    word, _, _, _ = tl.philox(seed, j.to(tl.uint32), row.to(tl.uint32), zero, zero)
    return word >= threshold.to(tl.uint32)


__all__ = [
    "LOG2E",
    "capped",
    "kept",
    "seen_keys",
    "seen_queries",
    "sequence",
    "shared_out",
    "visible",
]
