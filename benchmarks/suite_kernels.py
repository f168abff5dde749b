"""Triton kernels of `rocjitsu_cases.py`."""

import triton
import triton.language as tl


@triton.jit
def copy(x, y, count, BLOCK: tl.constexpr):
    """y = x."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < count), mask=at < count)


@triton.jit
def add(x, y, z, count, BLOCK: tl.constexpr):
    """z = x + y."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def transpose(x, y, rows, columns, SIDE: tl.constexpr):
    """y[column][row] = x[row][column]."""
    row = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    column = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    tile = tl.load(x + row[:, None] * columns + column[None, :], mask=inside)
    target = y + column[:, None] * rows + row[None, :]
    tl.store(target, tl.trans(tile), mask=(column[:, None] < columns) & (row[None, :] < rows))


@triton.jit
def gather(x, index, y, count, BLOCK: tl.constexpr):
    """y[i] = x[index[i]]."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    place = tl.load(index + at, mask=inside, other=0)
    tl.store(y + at, tl.load(x + place, mask=inside), mask=inside)


@triton.jit
def scatter_add(x, index, sums, count, BLOCK: tl.constexpr):
    """sums[index[i]] += x[i]."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    place = tl.load(index + at, mask=inside, other=0)
    tl.atomic_add(sums + place, tl.load(x + at, mask=inside), mask=inside, sem="relaxed")


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    """Softmax of one row."""
    at = tl.arange(0, BLOCK)
    inside = at < columns
    start = tl.program_id(0) * columns
    value = tl.load(x + start + at, mask=inside, other=-float("inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + start + at, power / tl.sum(power, 0), mask=inside)


@triton.jit
def rmsnorm(x, weight, y, columns, epsilon, BLOCK: tl.constexpr):
    """y = x / sqrt(mean(x²) + epsilon) · weight for one row."""
    at = tl.arange(0, BLOCK)
    inside = at < columns
    start = tl.program_id(0) * columns
    value = tl.load(x + start + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + epsilon)
    factor = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + start + at, value * scale * factor, mask=inside)


@triton.jit
def gemm(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c[m][n] = a[m][k] · b[k][n]."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        depth = start + tl.arange(0, BK)
        left = a + row[:, None] * k + depth[None, :]
        right = b + depth[:, None] * n + column[None, :]
        x = tl.load(left, mask=(row[:, None] < m) & (depth[None, :] < k), other=0.0)
        y = tl.load(right, mask=(depth[:, None] < k) & (column[None, :] < n), other=0.0)
        total = tl.dot(x, y, total)
    inside = (row[:, None] < m) & (column[None, :] < n)
    tl.store(c + row[:, None] * n + column[None, :], total.to(c.dtype.element_ty), mask=inside)


@triton.jit
def sink_attention(
    q, k, v, sinks, out, length, scale,
    GROUP: tl.constexpr, WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    D: tl.constexpr,
):  # fmt: skip
    """Causal attention over the last WINDOW keys, with one more logit per head that has no value.

    q and out are [head][row][D], k and v [head // GROUP][row][D].
    """
    head = tl.program_id(1)
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    depth = tl.arange(0, D)
    mine = head * length * D
    theirs = head // GROUP * length * D
    known = row[:, None] < length
    query = tl.load(q + mine + row[:, None] * D + depth[None, :], mask=known, other=0.0)
    best = tl.zeros((BM,), tl.float32) + tl.load(sinks + head).to(tl.float32)
    weight = tl.full((BM,), 1.0, tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    first = tl.maximum(tl.program_id(0) * BM - WINDOW + 1, 0) // BN * BN
    for start in range(first, tl.minimum((tl.program_id(0) + 1) * BM, length), BN):
        column = start + tl.arange(0, BN)
        there = column[None, :] < length
        keys = tl.load(k + theirs + column[None, :] * D + depth[:, None], mask=there, other=0.0)
        logits = tl.dot(query, keys) * scale
        behind = row[:, None] - column[None, :]
        logits = tl.where((behind >= 0) & (behind < WINDOW) & there, logits, -float("inf"))
        higher = tl.maximum(best, tl.max(logits, 1))
        power = tl.exp(logits - higher[:, None])
        shrink = tl.exp(best - higher)
        weight = weight * shrink + tl.sum(power, 1)
        values = tl.load(
            v + theirs + column[:, None] * D + depth[None, :],
            mask=column[:, None] < length,
            other=0.0,
        )
        total = tl.dot(power.to(values.dtype), values, total * shrink[:, None])
        best = higher
    result = (total / weight[:, None]).to(out.dtype.element_ty)
    tl.store(out + mine + row[:, None] * D + depth[None, :], result, mask=known)


@triton.jit
def attention(
    q, k, v, out, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    """softmax(q kᵀ · scale) v for one head of `[head][row][D]`; length a multiple of the tiles."""
    head = tl.program_id(1) * length * D
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    depth = tl.arange(0, D)
    query = tl.load(q + head + row[:, None] * D + depth[None, :])
    best = tl.full((BM,), -float("inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        column = start + tl.arange(0, BN)
        keys = tl.load(k + head + column[None, :] * D + depth[:, None])
        logits = tl.dot(query, keys) * (scale * 1.4426950408889634)
        higher = tl.maximum(best, tl.max(logits, 1))
        power = tl.exp2(logits - higher[:, None])
        shrink = tl.exp2(best - higher)
        weight = weight * shrink + tl.sum(power, 1)
        values = tl.load(v + head + column[:, None] * D + depth[None, :])
        total = tl.dot(power.to(values.dtype), values, total * shrink[:, None])
        best = higher
    result = (total / weight[:, None]).to(out.dtype.element_ty)
    tl.store(out + head + row[:, None] * D + depth[None, :], result)
