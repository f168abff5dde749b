# pyright: reportArgumentType=false, reportGeneralTypeIssues=false
# (arguments of Triton functions become constants as they are compiled)
"""Pieces that the forward and the backward kernels share: which program does what, which keys a
query sees, what a product becomes as a logit, which probabilities dropout keeps."""

import triton
import triton.language as tl

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)


@triton.jit
def remap_xcds(pid, num_pids, XCDS: tl.constexpr):
    """The hardware deals workgroups to the XCDs of an MI300 in rotation; renumbered, each XCD has
    neighbours, which read the same keys through its L2."""
    if XCDS > 1:
        per_xcd = num_pids // XCDS
        remainder = num_pids % XCDS
        xcd = pid % XCDS
        pid = xcd * per_xcd + tl.minimum(xcd, remainder) + pid // XCDS
    return pid


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
    all of them see all keys in blocks of `BLOCK` from `full_lo` to `full_hi`. Keys before, from lo
    to min(full_lo, hi), and keys after, from max(full_lo, full_hi) to hi, go in blocks of `EDGE`.
    """
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
    """As `seen_keys`: the queries that see keys `first` to `last`, where query i has the position
    of key i + shift."""
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
def loop_bounds(PART: tl.constexpr, lo, full_lo, full_hi, hi):
    """(start, stop) of one of three loops over `seen_keys`: the left edge, the middle without
    masks, the right edge."""
    start = full_lo
    stop = full_hi
    if PART == 0:
        start = lo
        stop = tl.minimum(full_lo, hi)
    elif PART == 2:
        start = tl.maximum(full_lo, full_hi)
        stop = hi
    return start, stop


@triton.jit
def visible(offs_n, oldest, newest, LEFT: tl.constexpr):
    """Whether a query that sees keys `oldest` to `newest` sees the keys `offs_n`. One comparison:
    masks of two take more scalar registers than there are."""
    if LEFT:
        return (offs_n - oldest).to(tl.uint32) <= (newest - oldest).to(tl.uint32)
    return offs_n <= newest


@triton.jit
def masked(qk, ptr, offs_m, row_stride, queries, offs_n, keys):
    """Logits of the queries `offs_m` and the keys `offs_n`, -inf where the mask at `ptr` has a zero
    in the row of the query, or where there is no such query or key. A minimum with the bits of
    infinities, since Triton does not move booleans from the lanes that load to those of a product.
    """
    there = (offs_m < queries) & (offs_n < keys)
    seen = tl.load(ptr + offs_m * row_stride + offs_n, mask=there, other=0).to(tl.uint32)
    return tl.minimum(qk, (((1 - seen) << 31) | 0x7F800000).to(tl.float32, bitcast=True))


@triton.jit
def tanh_of_cap(qk, scale, soft_cap):
    """tanh(qk · scale / cap)."""
    power = tl.exp2(qk * (2.0 * LOG2E * scale / soft_cap))
    return 1.0 - 2.0 / (power + 1.0)


@triton.jit
def load_tile(
    ptr, rows, row_stride, num_rows, HEAD: tl.constexpr, DIM: tl.constexpr, MASKED: tl.constexpr,
    FROM: tl.constexpr = 0, TRANSPOSED: tl.constexpr = False,
):  # fmt: skip
    """`DIM` elements from the `FROM`-th of rows of a tensor, zeros outside of it; `TRANSPOSED`:
    rows along the second dimension of the tile."""
    offs_d = FROM + tl.arange(0, DIM)
    if TRANSPOSED:
        ptrs = ptr + rows[None, :] * row_stride + offs_d[:, None]
        row_mask = (rows < num_rows)[None, :]
        dim_mask = (offs_d < HEAD)[:, None]
    else:
        ptrs = ptr + rows[:, None] * row_stride + offs_d[None, :]
        row_mask = (rows < num_rows)[:, None]
        dim_mask = (offs_d < HEAD)[None, :]
    if MASKED and HEAD < FROM + DIM:
        return tl.load(ptrs, mask=row_mask & dim_mask, other=0.0)
    elif MASKED:
        return tl.load(ptrs, mask=row_mask, other=0.0)
    elif HEAD < FROM + DIM:
        return tl.load(ptrs, mask=dim_mask, other=0.0)
    else:
        return tl.load(ptrs)


@triton.jit
def dot(
    a, a_ptr, a_rows, a_stride, a_length, b, b_ptr, b_rows, b_stride, b_length,
    HEAD: tl.constexpr, DIM: tl.constexpr, CHUNK: tl.constexpr, MASKED: tl.constexpr,
    PRECISION: tl.constexpr, acc=None,
):  # fmt: skip
    """`acc` + a · b, where b is transposed. With `CHUNK`, both are read again, so many elements of
    a head at a time: where registers are few, neither fits along with the accumulators."""
    if CHUNK:
        if acc is None:
            acc = tl.zeros((a_rows.shape[0], b_rows.shape[0]), tl.float32)
        for part in tl.static_range(DIM // CHUNK):
            a = load_tile(a_ptr, a_rows, a_stride, a_length, HEAD, CHUNK, True, part * CHUNK)
            b = load_tile(
                b_ptr, b_rows, b_stride, b_length, HEAD, CHUNK, MASKED, part * CHUNK, True
            )
            acc = tl.dot(a, b, acc, input_precision=PRECISION)
        return acc
    else:
        return tl.dot(a, b, acc, input_precision=PRECISION)


@triton.jit
def round_like(x, like, SHORT: tl.constexpr):
    """float32 in the dtype of `like`. GPUs without an instruction for bfloat16 (`SHORT`) take seven
    to round to even; here ties go away from zero, in two, and infinities may become NaN."""
    if SHORT and like.dtype == tl.bfloat16:
        bits = x.to(tl.uint32, bitcast=True) + 0x8000
        return (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return x.to(like.dtype)


@triton.jit
def round_even(x, dtype: tl.constexpr, SHORT: tl.constexpr):
    """float32 in the `dtype` of a result, ties to even. With `SHORT` it takes three instructions,
    not seven: no product of operands by `round_like` is the NaN that would wrap, whose lower half
    is all ones."""
    if SHORT and dtype == tl.bfloat16:
        bits = x.to(tl.uint32, bitcast=True)
        bits += 0x7FFF + ((bits >> 16) & 1)
        return (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return x.to(dtype)


@triton.jit
def dropout_mask(seed, rows, offs_n, threshold):
    """Which probabilities dropout keeps: the word of Philox at counter (key, row of lse)."""
    zero = tl.zeros_like(offs_n).to(tl.uint32)
    word, _, _, _ = tl.philox(seed, offs_n.to(tl.uint32), rows.to(tl.uint32), zero, zero)
    return word >= threshold.to(tl.uint32)
