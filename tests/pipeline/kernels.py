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
def broken(x, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 4096, "BLOCK is too small")
    tl.store(x + tl.arange(0, BLOCK), 0.0)
