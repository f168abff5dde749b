# pyright: reportArgumentType=false, reportGeneralTypeIssues=false
# (arguments of Triton functions become constants as they are compiled)
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
    first, last, keys, left, right,
    BLOCK: tl.constexpr, EDGE: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
):  # fmt: skip
    """Keys that queries at key positions `first` to `last` see: (lo, full_lo, full_hi, hi), where
    blocks of `BLOCK` from `full_lo` to `full_hi` are seen in full by all of them. What lies before,
    from lo to min(full_lo, hi), and what lies behind, from max(full_lo, full_hi) to hi, goes in
    blocks of `EDGE`."""
    hi = keys
    full_hi = keys // BLOCK * BLOCK
    if RIGHT:
        hi = tl.minimum(keys, last + right + 1)
        full_hi = tl.minimum(full_hi, tl.maximum(first + right + 1, 0) // BLOCK * BLOCK)
    lo = 0
    full_lo = 0
    if LEFT:
        lo = tl.maximum(first - left, 0) // EDGE * EDGE
        full_lo = (tl.maximum(last - left, 0) + BLOCK - 1) // BLOCK * BLOCK
    return lo, full_lo, full_hi, hi


@triton.jit
def seen_queries(
    first, last, queries, shift, left, right,
    BLOCK: tl.constexpr, EDGE: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
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
        lo = tl.maximum(first - right - shift, 0) // EDGE * EDGE
        full_lo = (tl.maximum(last - right - shift, 0) + BLOCK - 1) // BLOCK * BLOCK
    return lo, full_lo, full_hi, hi


@triton.jit
def visible(j, oldest, newest, LEFT: tl.constexpr):
    """Whether a query that sees keys `oldest` to `newest` sees key `j`. One comparison: masks of
    two take more scalar registers than there are."""
    if LEFT:
        return (j - oldest).to(tl.uint32) <= (newest - oldest).to(tl.uint32)
    return j <= newest


@triton.jit
def capped(products, scale, soft_cap):
    """tanh(product · scale / cap)."""
    power = tl.exp2(products * (2.0 * LOG2E * scale / soft_cap))
    return 1.0 - 2.0 / (power + 1.0)


@triton.jit
def tile(
    pointer, row, step, length, HEAD: tl.constexpr, DIM: tl.constexpr, MASKED: tl.constexpr,
    FROM: tl.constexpr = 0, ACROSS: tl.constexpr = False,
):  # fmt: skip
    """`DIM` elements from the `FROM`-th of rows of a tensor, zeros outside of it; `ACROSS`: rows
    along the second dimension of the tile."""
    d = FROM + tl.arange(0, DIM)
    if ACROSS:
        at = pointer + row[None, :] * step + d[:, None]
        there = (row < length)[None, :]
        within = (d < HEAD)[:, None]
    else:
        at = pointer + row[:, None] * step + d[None, :]
        there = (row < length)[:, None]
        within = (d < HEAD)[None, :]
    if MASKED and HEAD < FROM + DIM:
        return tl.load(at, mask=there & within, other=0.0)
    elif MASKED:
        return tl.load(at, mask=there, other=0.0)
    elif HEAD < FROM + DIM:
        return tl.load(at, mask=within, other=0.0)
    else:
        return tl.load(at)


@triton.jit
def products(
    held, held_ptr, held_row, held_step, held_length, other, other_ptr, row, step, length,
    HEAD: tl.constexpr, DIM: tl.constexpr, CHUNK: tl.constexpr, MASKED: tl.constexpr,
    PRECISION: tl.constexpr, found=None,
):  # fmt: skip
    """`found` + held · other, which lies across. With `CHUNK`, both are read again, so many
    elements of a head at a time: where registers are few, neither fits beside the accumulators."""
    if CHUNK:
        if found is None:
            found = tl.zeros((held_row.shape[0], row.shape[0]), tl.float32)
        for part in tl.static_range(DIM // CHUNK):
            a = tile(held_ptr, held_row, held_step, held_length, HEAD, CHUNK, True, part * CHUNK)
            b = tile(other_ptr, row, step, length, HEAD, CHUNK, MASKED, part * CHUNK, True)
            found = tl.dot(a, b, found, input_precision=PRECISION)
        return found
    else:
        return tl.dot(held, other, found, input_precision=PRECISION)


@triton.jit
def rounded(x, like, SHORT: tl.constexpr):
    """float32 in the dtype of `like`. GPUs without an instruction for bfloat16 (`SHORT`) take seven
    to round to even; here ties go away from zero, in two, and infinities may become NaN."""
    if SHORT and like.dtype == tl.bfloat16:
        bits = x.to(tl.uint32, bitcast=True) + 0x8000
        return (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return x.to(like.dtype)


@triton.jit
def nearest(x, kind: tl.constexpr, SHORT: tl.constexpr):
    """float32 in the dtype `kind` of a result, ties to even. Where `rounded` is short it takes
    three instructions, not seven: no product of such operands is the NaN that would wrap, whose
    lower half is all ones."""
    if SHORT and kind == tl.bfloat16:
        bits = x.to(tl.uint32, bitcast=True)
        bits += 0x7FFF + ((bits >> 16) & 1)
        return (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return x.to(kind)


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
    "nearest",
    "products",
    "rounded",
    "seen_keys",
    "seen_queries",
    "sequence",
    "shared_out",
    "tile",
    "visible",
]
