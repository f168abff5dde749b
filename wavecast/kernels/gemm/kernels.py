"""The kernels of dense products: tiles of the result, whole or in parts of K, and their sum."""

from __future__ import annotations

import triton
import triton.language as tl

from wavecast.kernels.gemm.epilogue import finished
from wavecast.kernels.quantise.formats import halves_of
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
            a = halves_of(a)
            b = halves_of(b)
        total = tl.dot(
            a,
            b,
            total,
            input_precision=PRECISION,
            max_num_imprecise_acc=min(BLOCK_K, 128),
            out_dtype=SUM,
        )
        from_a += BLOCK_K * a_step
        from_b += BLOCK_K * b_step
    return total


@triton.jit
def share_of_steps(program, steps, PROGRAMS: tl.constexpr):
    """The first of `steps` that one of PROGRAMS takes, which take equal numbers of them but for
    one; that of the next program is where it ends."""
    each = steps // PROGRAMS
    return program * each + tl.minimum(program, steps % PROGRAMS)


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
    SPLIT_K: tl.constexpr, PROGRAMS: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A program computes a tile, or with SPLIT_K its part over some steps of K, which goes to
    `part_ptr` [SPLIT_K, M, N] for `matmul_sum_kernel` to add up. The divisors are powers of two
    that divide M, N and K.

    With PROGRAMS there are only so many, and each computes every PROGRAMS-th tile. Of the tiles
    left over in the last round they take equal numbers of steps, as parts of two tiles at most,
    which go to `part_ptr` [PROGRAMS, 2, BLOCK_M, BLOCK_N] for `matmul_rest_kernel` to add up.
    """
    SUM: tl.constexpr = (  # pyright: ignore[reportAssignmentType]
        tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32
    )
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    batch = tl.program_id(2)
    if WIDE:
        batch = batch.to(tl.int64)
    a_ptr += batch * a_batch
    b_ptr += batch * b_batch
    out_ptr += batch * M * N
    if PROGRAMS == 0:
        tile_row, tile_column = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
        rows = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
        if WIDE:
            rows, columns = rows.to(tl.int64), columns.to(tl.int64)
        share = tl.cdiv(steps, SPLIT_K)
        first = tl.program_id(1) * share if SPLIT_K > 1 else 0
        last = tl.minimum(first + share, steps) if SPLIT_K > 1 else steps
        total = part_of_tile(
            a_ptr, a_row, a_step, b_ptr, b_step, b_column, rows, columns, first, last, M, N, K,
            A_ROWS, B_COLUMNS, M_DIVISOR % BLOCK_M == 0, N_DIVISOR % BLOCK_N == 0,
            K_DIVISOR % BLOCK_K == 0, WIDEN, PRECISION, SUM, BLOCK_K,
        )  # fmt: skip
        inside = (rows < M)[:, None] & (columns < N)[None, :]
        if SPLIT_K > 1:
            part = tl.program_id(1) * M
            tl.store(part_ptr + (part + rows)[:, None] * N + columns[None, :], total, mask=inside)
        else:
            total = finished(
                total, rows, columns, M, N, bias_ptr,
                gate_ptr, gate_row, gate_column, residual_ptr, residual_row, residual_column,
                scale_a_ptr, scale_a_row, scale_b_ptr, scale_b_column, out_scale_ptr,
                ACTIVATION, LIMIT,
            )  # fmt: skip
            at = out_ptr + rows[:, None] * N + columns[None, :]
            tl.store(at, total.to(out_ptr.dtype.element_ty), mask=inside)
    else:
        program = tl.program_id(0)
        rounds = down * across // PROGRAMS
        rest = (down * across - rounds * PROGRAMS) * steps
        start = share_of_steps(program, rest, PROGRAMS)
        end = share_of_steps(program + 1, rest, PROGRAMS)
        for turn in range(rounds + 2):
            whole = turn < rounds
            tile = turn * PROGRAMS + program
            first = 0
            last = steps
            if turn >= rounds:
                tile = rounds * PROGRAMS + start // steps
                first = start % steps
                last = tl.minimum(first + end - start, steps)
                start += last - first
            if last > first:
                tile_row, tile_column = tile_of(tile, down, across, GROUP, XCDS)
                rows = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
                columns = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
                total = part_of_tile(
                    a_ptr, a_row, a_step, b_ptr, b_step, b_column, rows, columns, first, last,
                    M, N, K, A_ROWS, B_COLUMNS, M_DIVISOR % BLOCK_M == 0, N_DIVISOR % BLOCK_N == 0,
                    K_DIVISOR % BLOCK_K == 0, WIDEN, PRECISION, SUM, BLOCK_K,
                )  # fmt: skip
                if whole:
                    result = finished(
                        total, rows, columns, M, N, bias_ptr, gate_ptr, gate_row, gate_column,
                        residual_ptr, residual_row, residual_column, scale_a_ptr, scale_a_row,
                        scale_b_ptr, scale_b_column, out_scale_ptr, ACTIVATION, LIMIT,
                    )  # fmt: skip
                    inside = (rows < M)[:, None] & (columns < N)[None, :]
                    place = rows[:, None] * N + columns[None, :]
                    tl.store(out_ptr + place, result.to(out_ptr.dtype.element_ty), mask=inside)
                else:
                    part = (program * 2 + turn - rounds) * BLOCK_M + tl.arange(0, BLOCK_M)
                    within = part[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
                    tl.store(part_ptr + within, total)


@triton.jit
def matmul_vector_kernel(
    a_ptr, b_ptr, out_ptr, N, K, a_batch, a_step, b_batch, b_step, b_column,
    bias_ptr, gate_ptr, gate_row, gate_column, residual_ptr, residual_row, residual_column,
    scale_a_ptr, scale_a_row, scale_b_ptr, scale_b_column, out_scale_ptr,
    ACTIVATION: tl.constexpr, LIMIT: tl.constexpr, N_DIVISOR: tl.constexpr,
    K_DIVISOR: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One row of A: vector instructions, which need no tiles in the LDS, keep up with memory."""
    batch = tl.program_id(1)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    place = tl.arange(0, BLOCK_K)
    column = columns if N_DIVISOR % BLOCK_N == 0 else tl.minimum(columns, N - 1)
    from_a = a_ptr + batch * a_batch + place * a_step
    from_b = b_ptr + batch * b_batch + column[:, None] * b_column + place[None, :] * b_step
    total = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        if K_DIVISOR % BLOCK_K == 0:
            a = tl.load(from_a)
            b = tl.load(from_b)
        else:
            left = place < K - step * BLOCK_K
            a = tl.load(from_a, mask=left, other=0.0)
            b = tl.load(from_b, mask=left[None, :], other=0.0)
        total += b.to(tl.float32) * a.to(tl.float32)[None, :]
        from_a += BLOCK_K * a_step
        from_b += BLOCK_K * b_step
    result = finished(
        tl.expand_dims(tl.sum(total, axis=1), 0), tl.arange(0, 1), columns, 1, N,
        bias_ptr, gate_ptr, gate_row, gate_column, residual_ptr, residual_row, residual_column,
        scale_a_ptr, scale_a_row, scale_b_ptr, scale_b_column, out_scale_ptr,
        ACTIVATION, LIMIT,
    )  # fmt: skip
    to = out_ptr + batch * N + columns[None, :]
    tl.store(to, result.to(out_ptr.dtype.element_ty), mask=(columns < N)[None, :])


@triton.jit
def matmul_rest_kernel(
    part_ptr, out_ptr, M, N, K,
    bias_ptr, gate_ptr, gate_row, gate_column, residual_ptr, residual_row, residual_column,
    scale_a_ptr, scale_a_row, scale_b_ptr, scale_b_column, out_scale_ptr,
    ACTIVATION: tl.constexpr, LIMIT: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PROGRAMS: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Adds up the parts that `matmul_kernel` left of a tile, in the order of K, and finishes it:
    ROWS rows of it in each program."""
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    before = down * across // PROGRAMS * PROGRAMS
    number = tl.program_id(0)
    within = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    tile_row, tile_column = tile_of(before + number, down, across, GROUP, XCDS)
    rows = tile_row * BLOCK_M + within
    columns = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
    rest = (down * across - before) * steps
    each = rest // PROGRAMS
    more = rest % PROGRAMS
    # The program that has the first step of this tile: the first `more` programs take one more.
    step = number * steps
    if step < more * (each + 1):
        program = step // (each + 1)
    else:
        program = more + (step - more * (each + 1)) // tl.maximum(each, 1)
    place = within[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((ROWS, BLOCK_N), part_ptr.dtype.element_ty)
    start = share_of_steps(program, rest, PROGRAMS)
    while start < step + steps:
        slot = 1 if start < step else 0
        total += tl.load(part_ptr + (program * 2 + slot) * BLOCK_M * BLOCK_N + place)
        program += 1
        start = share_of_steps(program, rest, PROGRAMS)
    total = finished(
        total, rows, columns, M, N,
        bias_ptr, gate_ptr, gate_row, gate_column, residual_ptr, residual_row, residual_column,
        scale_a_ptr, scale_a_row, scale_b_ptr, scale_b_column, out_scale_ptr,
        ACTIVATION, LIMIT,
    )  # fmt: skip
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    at = rows[:, None] * N + columns[None, :]
    tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=inside)


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
    for part in tl.static_range(1, SPLITS):  # pyright: ignore[reportGeneralTypeIssues]
        total += tl.load(part_ptr + part * M * N + at, mask=inside, other=0)
    total = finished(
        total, rows, columns, M, N,
        bias_ptr, gate_ptr, gate_row, gate_column, residual_ptr, residual_row, residual_column,
        scale_a_ptr, scale_a_row, scale_b_ptr, scale_b_column, out_scale_ptr,
        ACTIVATION, LIMIT,
    )  # fmt: skip
    tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=inside)


__all__ = [
    "matmul_kernel",
    "matmul_rest_kernel",
    "matmul_sum_kernel",
    "matmul_vector_kernel",
]
