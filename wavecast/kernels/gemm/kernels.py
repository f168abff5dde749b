"""The kernels of dense products: tiles of the result, whole or in parts of K, and their sum."""

from __future__ import annotations

import triton
import triton.language as tl

from wavecast.kernels.gemm.epilogue import finished
from wavecast.kernels.tiles import tile_of


@triton.jit
def part_of_tile(
    a_ptr, a_row, a_step, b_ptr, b_step, b_column, rows, columns, first, last, M, N, K,
    A_ROWS: tl.constexpr, B_COLUMNS: tl.constexpr, A_EVEN: tl.constexpr, B_EVEN: tl.constexpr,
    K_EVEN: tl.constexpr, WIDEN: tl.constexpr, PRECISION: tl.constexpr, SUM: tl.constexpr,
    BLOCK_K: tl.constexpr,
):  # fmt: skip
    """The sums of a tile over the steps from `first` up to, but not, `last`.

    An operand that is contiguous along M or N (A_ROWS, B_COLUMNS) is masked at its end, unless it
    is EVEN, so that its loads stay wide; the other kind reads its last row again.
    """
    place = tl.arange(0, BLOCK_K)
    row = rows if A_ROWS or A_EVEN else tl.minimum(rows, M - 1)
    column = columns if B_COLUMNS or B_EVEN else tl.minimum(columns, N - 1)
    from_a = a_ptr + row[:, None] * a_row + (first * BLOCK_K + place)[None, :] * a_step
    from_b = b_ptr + (first * BLOCK_K + place)[:, None] * b_step + column[None, :] * b_column
    total = tl.zeros((rows.shape[0], columns.shape[0]), SUM)
    for step in range(first, last):
        if K_EVEN:
            if A_ROWS and not A_EVEN:
                a = tl.load(from_a, mask=(rows < M)[:, None], other=0.0)
            else:
                a = tl.load(from_a)
            if B_COLUMNS and not B_EVEN:
                b = tl.load(from_b, mask=(columns < N)[None, :], other=0.0)
            else:
                b = tl.load(from_b)
        else:
            left = place < K - step * BLOCK_K
            if A_ROWS and not A_EVEN:
                a = tl.load(from_a, mask=(rows < M)[:, None] & left[None, :], other=0.0)
            else:
                a = tl.load(from_a, mask=left[None, :], other=0.0)
            if B_COLUMNS and not B_EVEN:
                b = tl.load(from_b, mask=left[:, None] & (columns < N)[None, :], other=0.0)
            else:
                b = tl.load(from_b, mask=left[:, None], other=0.0)
        if WIDEN:
            a = a.to(tl.bfloat16)
            b = b.to(tl.bfloat16)
        total = tl.dot(
            a, b, total, input_precision=PRECISION, max_num_imprecise_acc=128, out_dtype=SUM
        )
        from_a += BLOCK_K * a_step
        from_b += BLOCK_K * b_step
    return total


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, part_ptr, M, N, K,
    a_batch, a_row, a_step, b_batch, b_step, b_column,
    bias_ptr, gate_ptr, gate_row, gate_column, residual_ptr, residual_row, residual_column,
    scale_a_ptr, scale_a_row, scale_b_ptr, scale_b_column, out_scale_ptr,
    ACTIVATION: tl.constexpr, LIMIT: tl.constexpr,
    A_ROWS: tl.constexpr, B_COLUMNS: tl.constexpr, M_DIVISOR: tl.constexpr,
    N_DIVISOR: tl.constexpr, K_DIVISOR: tl.constexpr, WIDEN: tl.constexpr,
    PRECISION: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A program computes a tile, or with SPLIT_K its part over some steps of K, which goes to
    `part_ptr` [SPLIT_K, M, N] for `matmul_sum_kernel` to add up. The divisors are powers of two
    that divide M, N and K."""
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    tile_row, tile_column = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    rows = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
    batch = tl.program_id(2)
    steps = tl.cdiv(K, BLOCK_K)
    if SPLIT_K > 1:
        share = tl.cdiv(steps, SPLIT_K)
        first = tl.program_id(1) * share
        last = tl.minimum(first + share, steps)
    else:
        first = 0
        last = steps
    if WIDE:
        rows, columns, batch = rows.to(tl.int64), columns.to(tl.int64), batch.to(tl.int64)
    SUM: tl.constexpr = tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32
    total = part_of_tile(
        a_ptr + batch * a_batch, a_row, a_step, b_ptr + batch * b_batch, b_step, b_column,
        rows, columns, first, last, M, N, K,
        A_ROWS, B_COLUMNS, M_DIVISOR % BLOCK_M == 0, N_DIVISOR % BLOCK_N == 0,
        K_DIVISOR % BLOCK_K == 0, WIDEN, PRECISION, SUM, BLOCK_K,
    )  # fmt: skip
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    if SPLIT_K > 1:
        part = tl.program_id(1) * M
        tl.store(part_ptr + (part + rows)[:, None] * N + columns[None, :], total, mask=inside)
    else:
        total = finished(
            total, rows, columns, M, N,
            bias_ptr, gate_ptr, gate_row, gate_column, residual_ptr, residual_row, residual_column,
            scale_a_ptr, scale_a_row, scale_b_ptr, scale_b_column, out_scale_ptr,
            ACTIVATION, LIMIT,
        )  # fmt: skip
        at = out_ptr + batch * M * N + rows[:, None] * N + columns[None, :]
        tl.store(at, total.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def matmul_sum_kernel(
    part_ptr, out_ptr, M, N,
    bias_ptr, gate_ptr, gate_row, gate_column, residual_ptr, residual_row, residual_column,
    scale_a_ptr, scale_a_row, scale_b_ptr, scale_b_column, out_scale_ptr,
    ACTIVATION: tl.constexpr, LIMIT: tl.constexpr, SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Adds up the parts of a tile in their order, and finishes it."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    at = rows[:, None] * N + columns[None, :]
    total = tl.load(part_ptr + at, mask=inside, other=0)
    for part in tl.static_range(1, SPLITS):
        total += tl.load(part_ptr + part * M * N + at, mask=inside, other=0)
    total = finished(
        total, rows, columns, M, N,
        bias_ptr, gate_ptr, gate_row, gate_column, residual_ptr, residual_row, residual_column,
        scale_a_ptr, scale_a_row, scale_b_ptr, scale_b_column, out_scale_ptr,
        ACTIVATION, LIMIT,
    )  # fmt: skip
    tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=inside)


__all__ = ["matmul_kernel", "matmul_sum_kernel"]
