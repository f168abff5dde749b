"""Small Triton kernels that together use most kinds of instructions Triton emits."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def arithmetic(x_ptr, y_ptr, sums_ptr, i_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=1.0)
    i = tl.load(i_ptr + at, mask=inside, other=1)
    y = tl.exp(x) + tl.sqrt(tl.abs(x)) - tl.sin(x) / (x * x + 1.0)
    tl.store(y_ptr + at, tl.where(i % 3 == 0, y, -y), mask=inside)
    tl.store(i_ptr + at, (i * 7919) // 13 + (i >> 2) - (i ^ 5), mask=inside)
    tl.atomic_add(sums_ptr, tl.sum(tl.where(inside, x, 0.0), 0))


@triton.jit
def rows(x_ptr, soft_ptr, scan_ptr, order_ptr, best_ptr, n, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    at, inside = row * n + column, column < n
    x = tl.load(x_ptr + at, mask=inside, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(soft_ptr + at, e / tl.sum(e, 0), mask=inside)
    tl.store(scan_ptr + at, tl.cumsum(tl.where(inside, x, 0.0), 0), mask=inside)
    tl.store(order_ptr + at, tl.sort(tl.where(inside, x, float("inf"))), mask=inside)
    tl.store(best_ptr + row, tl.argmax(x, 0))


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, m, n, depth, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           ACC: tl.constexpr):  # fmt: skip
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), ACC)
    for start in range(0, depth, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + row[:, None] * depth + k[None, :],
                    mask=(row[:, None] < m) & (k[None, :] < depth), other=0)  # fmt: skip
        b = tl.load(b_ptr + k[:, None] * n + column[None, :],
                    mask=(k[:, None] < depth) & (column[None, :] < n), other=0)  # fmt: skip
        total = tl.dot(a, b, total, out_dtype=ACC)
    inside = (row[:, None] < m) & (column[None, :] < n)
    tl.store(c_ptr + row[:, None] * n + column[None, :], total, mask=inside)
