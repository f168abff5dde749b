"""The kernels of dense products: tiles of the result, whole or in parts of K, and their sum."""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from wavecast.kernels.gemm.epilogue import finished
from wavecast.kernels.quantise.formats import halves_of
from wavecast.kernels.tiles import by_eights, columns_by_eights, rows_by_eights, tile_of

_WIDEST = tl.constexpr(8)
"""The widest sum of a tile has two to the power of this columns."""


class Operands(NamedTuple):
    """The matrices of a product, `a` [M, K] and `b` [K, N], with strides in elements.

    `a_tiles` and `b_tiles` are descriptors of the batch they are from, number `a_batch` and
    `b_batch` in it, through which NVIDIA's TMA loads tiles; None for loads by pointers.
    """

    a: Any
    a_row: Any
    a_step: Any
    b: Any
    b_step: Any
    b_column: Any
    M: Any
    N: Any
    K: Any
    a_tiles: Any
    a_batch: Any
    b_tiles: Any
    b_batch: Any


class Form(NamedTuple):
    """What the compiler knows of the operands.

    One that is contiguous along M or N (`a_rows`, `b_columns`) is masked at its end, unless tiles
    divide it (`a_even`, `b_even`), so that its loads stay wide; others read their last row
    again. With `k_even` steps divide K. With `widen` 8-bit floats become bfloat16.
    """

    a_rows: Any
    b_columns: Any
    a_even: Any
    b_even: Any
    k_even: Any
    widen: Any


@triton.jit
def sums_of_tile(
    of, form, tile_row, tile_column, first, last, PRECISION: tl.constexpr, SUM: tl.constexpr,
    WIDE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
) -> Any:  # fmt: skip
    """The sums of a tile over the steps from `first` up to, but not, `last`: a tensor for each
    power of two of its columns, the widest first (192 are 128 and 64)."""
    if of.a_tiles is not None:
        acc = tl.zeros((BLOCK_M, BLOCK_N), SUM)
        for step in range(first, last):
            a = tile_of_matrix(
                of.a_tiles, of.a_batch, tile_row, step, form.a_rows, BLOCK_M, BLOCK_K
            )
            b = tile_of_matrix(
                of.b_tiles, of.b_batch, tile_column, step, form.b_columns, BLOCK_N, BLOCK_K
            )
            acc = product_of_tiles(a, b.T, acc, PRECISION, SUM, BLOCK_K)
        return (acc,)
    offs_m = offsets(tile_row * BLOCK_M, BLOCK_M, WIDE)
    offs_k = tl.arange(0, BLOCK_K)
    row = offs_m if form.a_rows or form.a_even else tl.minimum(offs_m, of.M - 1)
    a_ptrs = of.a + row[:, None] * of.a_row + (first * BLOCK_K + offs_k)[None, :] * of.a_step
    accs = ()
    offs_n = ()
    b_ptrs = ()
    first_column = tile_column * BLOCK_N
    for bit in tl.static_range(_WIDEST, -1, -1):  # pyright: ignore[reportGeneralTypeIssues]
        if BLOCK_N >> bit & 1:
            within = offsets(first_column, 1 << bit, WIDE)
            first_column += 1 << bit
            column = within if form.b_columns or form.b_even else tl.minimum(within, of.N - 1)
            steps = (first * BLOCK_K + offs_k)[:, None] * of.b_step
            accs += (tl.zeros((BLOCK_M, 1 << bit), SUM),)
            offs_n += (within,)
            b_ptrs += (of.b + steps + column[None, :] * of.b_column,)
    for step in range(first, last):
        k_mask = offs_k < of.K - step * BLOCK_K
        a = loaded(
            a_ptrs, (offs_m < of.M)[:, None], k_mask[None, :], form.a_rows and not form.a_even,
            not form.k_even,
        )  # fmt: skip
        if form.widen:
            a = halves_of(a)
        sums = ()
        next_ptrs = ()
        for number in tl.static_range(len(accs)):  # pyright: ignore[reportGeneralTypeIssues]
            b = loaded(
                b_ptrs[number], (offs_n[number] < of.N)[None, :], k_mask[:, None],
                form.b_columns and not form.b_even, not form.k_even,
            )  # fmt: skip
            if form.widen:
                b = halves_of(b)
            sums += (product_of_tiles(a, b, accs[number], PRECISION, SUM, BLOCK_K),)
            next_ptrs += (b_ptrs[number] + BLOCK_K * of.b_step,)
        accs = sums
        a_ptrs += BLOCK_K * of.a_step
        b_ptrs = next_ptrs
    return accs


@triton.jit
def loaded(ptrs, mask, k_mask, ENDS, RESTS):
    """A tile of an operand, with ENDS zeros where `mask` is not set, with RESTS where `k_mask` is
    not."""
    if ENDS and RESTS:
        return tl.load(ptrs, mask=mask & k_mask, other=0.0)
    if ENDS:
        return tl.load(ptrs, mask=mask, other=0.0)
    if RESTS:
        return tl.load(ptrs, mask=k_mask, other=0.0)
    return tl.load(ptrs)


@triton.jit
def offsets(first, COUNT: tl.constexpr, WIDE: tl.constexpr):
    """COUNT rows (or columns) from the `first` on."""
    indices = first + tl.arange(0, COUNT)
    if WIDE:
        indices = indices.to(tl.int64)
    return indices


@triton.jit
def tile_of_matrix(
    tiles, batch, tile, step, ALONG: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):
    """[BLOCK, BLOCK_K] through a descriptor of [batch, K, size] if ALONG, else [batch, size, K];
    zeros beyond the ends."""
    if ALONG:
        return tl.reshape(tiles.load([batch, step * BLOCK_K, tile * BLOCK]), (BLOCK_K, BLOCK)).T
    return tl.reshape(tiles.load([batch, tile * BLOCK, step * BLOCK_K]), (BLOCK, BLOCK_K))


@triton.jit
def product_of_tiles(a, b, acc, PRECISION: tl.constexpr, SUM: tl.constexpr, BLOCK_K: tl.constexpr):
    """`acc` and the product of two tiles."""
    return tl.dot(
        a, b, acc, input_precision=PRECISION, max_num_imprecise_acc=min(BLOCK_K, 128),
        out_dtype=SUM,
    )  # fmt: skip


@triton.jit
def store_finished(
    acc, offs_m, offs_n, M, N, out_ptr, terms, ACTIVATION: tl.constexpr, LIMIT: tl.constexpr
):
    """Finish the sums of a tile, whose rows and columns are by eights, and store them to the
    M x N result."""
    result = finished(by_eights(acc), offs_m, offs_n, M, N, terms, ACTIVATION, LIMIT)
    mask = (offs_m < M) & (offs_n < N)
    tl.store(out_ptr + offs_m * N + offs_n, result.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def share_of_steps(pid, steps, PROGRAMS: tl.constexpr):
    """The first of `steps` that one of PROGRAMS takes, which take equal numbers of them but for
    one; that of the next program is where it ends."""
    each = steps // PROGRAMS
    return pid * each + tl.minimum(pid, steps % PROGRAMS)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, part_ptr, a_tiles, b_tiles, M, N, K,
    a_batch, a_row, a_step, b_batch, b_step, b_column, terms,
    ACTIVATION: tl.constexpr, LIMIT: tl.constexpr,
    A_ROWS: tl.constexpr, B_COLUMNS: tl.constexpr, M_DIVISOR: tl.constexpr,
    N_DIVISOR: tl.constexpr, K_DIVISOR: tl.constexpr, WIDEN: tl.constexpr,
    PRECISION: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr, PROGRAMS: tl.constexpr, GROUP: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """A program computes a tile, or with SPLIT_K its part over some steps of K, which goes to
    `part_ptr` [SPLIT_K, M, N] for `matmul_sum_kernel` to add up. The divisors divide M, N and K.

    With PROGRAMS there are only so many, and each computes every PROGRAMS-th tile. Of the tiles
    left over in the last round they take equal numbers of steps, as parts of two tiles at most,
    which go to `part_ptr` [PROGRAMS, 2, BLOCK_M, BLOCK_N] for `matmul_rest_kernel` to add up.

    With TMA tiles are loaded through the descriptors `a_tiles` and `b_tiles` of the batches,
    contiguous dimensions last, which are None without.

    BLOCK_N is a power of two with PROGRAMS or TMA, and otherwise any sum of some.
    """
    SUM: tl.constexpr = (  # pyright: ignore[reportAssignmentType]
        tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32
    )
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    batch = tl.program_id(2)
    if WIDE:
        batch = batch.to(tl.int64)
    of = Operands(
        a_ptr + batch * a_batch, a_row, a_step, b_ptr + batch * b_batch, b_step, b_column, M, N, K,
        a_tiles if TMA else None, batch if a_batch else 0,
        b_tiles if TMA else None, batch if b_batch else 0,
    )  # fmt: skip
    form: tl.constexpr = Form(  # pyright: ignore[reportAssignmentType]
        A_ROWS, B_COLUMNS, M_DIVISOR % BLOCK_M == 0, N_DIVISOR % BLOCK_N == 0,
        K_DIVISOR % BLOCK_K == 0, WIDEN,
    )  # fmt: skip
    out_ptr += batch * M * N
    if PROGRAMS == 0:
        tile_row, tile_column = tile_of(tl.program_id(0), tiles_m, tiles_n, GROUP, XCDS)
        steps_each = tl.cdiv(steps, SPLIT_K)
        first = tl.program_id(1) * steps_each if SPLIT_K > 1 else 0
        last = tl.minimum(first + steps_each, steps) if SPLIT_K > 1 else steps
        accs = sums_of_tile(
            of, form, tile_row, tile_column, first, last,
            PRECISION, SUM, WIDE, BLOCK_M, BLOCK_N, BLOCK_K,
        )  # fmt: skip
        offs_m = rows_by_eights(offsets(tile_row * BLOCK_M, BLOCK_M, WIDE))
        first_column = tile_column * BLOCK_N
        for number in tl.static_range(len(accs)):  # pyright: ignore[reportGeneralTypeIssues]
            acc = accs[number]
            offs_n = columns_by_eights(offsets(first_column, acc.shape[1], WIDE))
            first_column += acc.shape[1]
            if SPLIT_K > 1:
                mask = (offs_m < M) & (offs_n < N)
                ptrs = part_ptr + (tl.program_id(1) * M + offs_m) * N + offs_n
                tl.store(ptrs, by_eights(acc), mask=mask)
            else:
                store_finished(acc, offs_m, offs_n, M, N, out_ptr, terms, ACTIVATION, LIMIT)
    else:
        pid = tl.program_id(0)
        rounds = tiles_m * tiles_n // PROGRAMS
        rest = (tiles_m * tiles_n - rounds * PROGRAMS) * steps
        start = share_of_steps(pid, rest, PROGRAMS)
        end = share_of_steps(pid + 1, rest, PROGRAMS)
        # Addresses that all tiles share, were they kept, would take registers from the sums.
        for iteration in tl.range(rounds + 2, disable_licm=True):  # pyright: ignore[reportGeneralTypeIssues]
            whole = iteration < rounds
            tile = iteration * PROGRAMS + pid
            first = 0
            last = steps
            if iteration >= rounds:
                tile = rounds * PROGRAMS + start // steps
                first = start % steps
                last = tl.minimum(first + end - start, steps)
                start += last - first
            if last > first:
                tile_row, tile_column = tile_of(tile, tiles_m, tiles_n, GROUP, XCDS)
                accs = sums_of_tile(
                    of, form, tile_row, tile_column, first, last,
                    PRECISION, SUM, WIDE, BLOCK_M, BLOCK_N, BLOCK_K,
                )  # fmt: skip
                tl.static_assert(len(accs) == 1)
                acc = accs[0]
                if whole:
                    offs_m = rows_by_eights(offsets(tile_row * BLOCK_M, BLOCK_M, WIDE))
                    offs_n = columns_by_eights(offsets(tile_column * BLOCK_N, BLOCK_N, WIDE))
                    store_finished(acc, offs_m, offs_n, M, N, out_ptr, terms, ACTIVATION, LIMIT)
                else:
                    part = offsets((pid * 2 + iteration - rounds) * BLOCK_M, BLOCK_M, WIDE)
                    ptrs = part[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
                    tl.store(part_ptr + ptrs, acc)


@triton.jit
def matmul_vector_kernel(
    a_ptr, b_ptr, out_ptr, N, K, a_batch, a_step, b_batch, b_step, b_column,
    terms, ACTIVATION: tl.constexpr, LIMIT: tl.constexpr, N_DIVISOR: tl.constexpr,
    K_DIVISOR: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One row of A: vector instructions, which need no tiles in the LDS, keep up with memory."""
    batch = tl.program_id(1)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    column = offs_n if N_DIVISOR % BLOCK_N == 0 else tl.minimum(offs_n, N - 1)
    # a row of A for each column: alone it has another layout than B, and lanes exchange it
    a_ptrs = a_ptr + batch * a_batch + tl.zeros((BLOCK_N, 1), tl.int32) + offs_k[None, :] * a_step
    b_ptrs = b_ptr + batch * b_batch + column[:, None] * b_column + offs_k[None, :] * b_step
    acc = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        if K_DIVISOR % BLOCK_K == 0:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            k_mask = offs_k < K - step * BLOCK_K
            a = tl.load(a_ptrs, mask=k_mask[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=k_mask[None, :], other=0.0)
        acc += b.to(tl.float32) * a.to(tl.float32)
        a_ptrs += BLOCK_K * a_step
        b_ptrs += BLOCK_K * b_step
    result = finished(tl.sum(acc, axis=1), 0, offs_n, 1, N, terms, ACTIVATION, LIMIT)
    ptrs = out_ptr + batch * N + offs_n
    tl.store(ptrs, result.to(out_ptr.dtype.element_ty), mask=offs_n < N)


@triton.jit
def matmul_rest_kernel(
    part_ptr, out_ptr, M, N, K,
    terms, ACTIVATION: tl.constexpr, LIMIT: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PROGRAMS: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Adds up the parts that `matmul_kernel` left of a tile, in the order of K, and finishes it:
    ROWS rows of it in each program."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    before = tiles_m * tiles_n // PROGRAMS * PROGRAMS
    number = tl.program_id(0)
    within = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    tile_row, tile_column = tile_of(before + number, tiles_m, tiles_n, GROUP, XCDS)
    offs_m = (tile_row * BLOCK_M + within)[:, None]
    offs_n = (tile_column * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    rest = (tiles_m * tiles_n - before) * steps
    each = rest // PROGRAMS
    more = rest % PROGRAMS
    # The program that has the first step of this tile: the first `more` programs take one more.
    step = number * steps
    if step < more * (each + 1):
        pid = step // (each + 1)
    else:
        pid = more + (step - more * (each + 1)) // tl.maximum(each, 1)
    offs = within[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc = tl.zeros((ROWS, BLOCK_N), part_ptr.dtype.element_ty)
    start = share_of_steps(pid, rest, PROGRAMS)
    while start < step + steps:
        slot = 1 if start < step else 0
        acc += tl.load(part_ptr + (pid * 2 + slot) * BLOCK_M * BLOCK_N + offs)
        pid += 1
        start = share_of_steps(pid, rest, PROGRAMS)
    result = finished(acc, offs_m, offs_n, M, N, terms, ACTIVATION, LIMIT)
    mask = (offs_m < M) & (offs_n < N)
    tl.store(out_ptr + offs_m * N + offs_n, result.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def matmul_sum_kernel(
    part_ptr, out_ptr, M, N,
    terms, ACTIVATION: tl.constexpr, LIMIT: tl.constexpr, SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Adds up the parts of a tile in their order, and finishes it."""
    offs_m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    mask = (offs_m < M) & (offs_n < N)
    offs = offs_m * N + offs_n
    acc = tl.load(part_ptr + offs, mask=mask, other=0)
    for part in tl.static_range(1, SPLITS):  # pyright: ignore[reportGeneralTypeIssues]
        acc += tl.load(part_ptr + part * M * N + offs, mask=mask, other=0)
    result = finished(acc, offs_m, offs_n, M, N, terms, ACTIVATION, LIMIT)
    tl.store(out_ptr + offs, result.to(out_ptr.dtype.element_ty), mask=mask)
