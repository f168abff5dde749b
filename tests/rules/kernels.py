"""Small Triton kernels, each written so that one of its launches shows what a rule looks for."""

# pyright: reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def matmul(
    a, b, c, M, N, K, stride_am, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr = "ieee",
):  # fmt: skip
    """C = A·B with A [M, K] row-major, B given as its transpose [N, K], masked in M, N and K."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inside = start + depth < K
        x = tl.load(
            a + rows[:, None] * stride_am + (start + depth)[None, :],
            mask=(rows < M)[:, None] & inside[None, :],
            other=0.0,
        )
        y = tl.load(
            b + columns[None, :] * stride_bn + (start + depth)[:, None],
            mask=(columns < N)[None, :] & inside[:, None],
            other=0.0,
        )
        total = tl.dot(x, y, total, input_precision=PRECISION)
    tl.store(
        c + rows[:, None] * stride_cm + columns[None, :],
        total,
        mask=(rows < M)[:, None] & (columns < N)[None, :],
    )


@triton.jit
def persistent_matmul(
    a, b, c, tiles, tiles_n, K, stride_a, stride_b, stride_c,
    PROGRAMS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """C = A·B, every program a tile after the other; at least two blocks along K."""
    depth, lines = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK)
    steps = tl.cdiv(K, BLOCK_K)
    tl.assume(steps > 1)
    for tile in range(tl.program_id(0), tiles, PROGRAMS):
        rows, columns = tile // tiles_n * BLOCK + lines, tile % tiles_n * BLOCK + lines
        x = a + rows[:, None] * stride_a + depth[None, :]
        y = b + depth[:, None] * stride_b + columns[None, :]
        total = tl.zeros((BLOCK, BLOCK), tl.float32)
        for _ in range(steps):
            total = tl.dot(tl.load(x), tl.load(y), total)
            x += BLOCK_K
            y += BLOCK_K * stride_b
        tl.store(c + rows[:, None] * stride_c + columns[None, :], total)


@triton.jit
def row_sum(x, y, columns, stride, BLOCK: tl.constexpr):
    """Sum of every row, a block of columns at a time."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + offsets, mask=offsets < columns, other=0.0)
    tl.store(y + row, tl.sum(total, 0))


@triton.jit
def repeated_exponential(x, y, steps, BLOCK: tl.constexpr):
    """Iterates 2**-v `steps` times on every element."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    for _ in range(steps):
        value = tl.exp2(-value)
        tl.store(y + offsets, value)


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    """y = x, masked at n."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def copy_column_wise(x, y, stride, BLOCK: tl.constexpr):
    """Copies a column of x, whose neighbours are `stride` elements apart, to a row of y."""
    offsets = tl.arange(0, BLOCK)
    column = tl.program_id(0)
    tl.store(y + column * BLOCK + offsets, tl.load(x + offsets * stride + column))


@triton.jit
def descriptor_copy(x, y, M, N, BLOCK: tl.constexpr):
    """Copies tiles of x [M, N] through a tensor descriptor made in the kernel."""
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BLOCK, BLOCK])
    tile = source.load([tl.program_id(0) * BLOCK, 0])
    lines = tl.arange(0, BLOCK)
    tl.store(y + lines[:, None] * BLOCK + lines[None, :], tile)


@triton.jit
def gather_wrapped(x, y, period, steps, BLOCK: tl.constexpr):
    """Reads x at offsets modulo `period`, which is known at run time only."""
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(steps):
        total += tl.load(x + (offsets * step) % period)
    tl.store(y + offsets, total)


@triton.jit
def gather_by_constant(x, y, steps, PERIOD: tl.constexpr, BLOCK: tl.constexpr):
    """`gather_wrapped` with the period known to the compiler."""
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(steps):
        total += tl.load(x + (offsets * step) % PERIOD)
    tl.store(y + offsets, total)
