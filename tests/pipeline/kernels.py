"""A kernel for tests of the pipeline. Triton wants kernels in files."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def gather(table, index, out, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * BLOCK + at, tl.load(table + tl.load(index + row) * BLOCK + at))


@triton.jit
def ragged(values, lengths, out, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(tl.load(lengths + row)):
        total += tl.load(values + step * BLOCK + at)
    tl.store(out + row * BLOCK + at, total)


@triton.jit
def below_diagonal(x, out, K, BLOCK: tl.constexpr):
    i, j = tl.program_id(0) // 4, tl.program_id(0) % 4
    if i <= j:
        return
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, K, BLOCK):
        total += tl.load(x + i * K + k + at) * tl.load(x + j * K + k + at)
    tl.store(out + (i * 4 + j) * BLOCK + at, total)


@triton.jit
def broken(x, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 4096, "BLOCK is too small")
    tl.store(x + tl.arange(0, BLOCK), 0.0)
