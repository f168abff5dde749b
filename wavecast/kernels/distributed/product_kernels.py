"""The kernels of products fused with collectives: communication overlaps the product tile by tile.

Programs are persistent. Program p of every rank makes tiles p, p + P, … and signals its peers after
each (the epoch of a signal counts the tiles of the program), so a tile is sent while the next one
is computed: an iteration multiplies one tile and reduces the one before.
"""

# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

import triton
import triton.language as tl

from wavecast.kernels.distributed.kernels import total
from wavecast.kernels.distributed.signals import notify, notify_one, wait_for, wait_for_one


@triton.jit
def selected(pointers, index, WORLD: tl.constexpr):
    """Pointer number `index` of a tuple."""
    pointer = pointers[0]
    for peer in tl.static_range(1, WORLD):
        pointer = tl.where(index == peer, pointers[peer], pointer)
    return pointer


@triton.jit
def product(
    x, w, row, rows, column, columns, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """float32 x[row : row + BM] @ w[column : column + BN]ᵀ of x[rows, k] and w[columns, k]."""
    rm, rn = row + tl.arange(0, BM), column + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        rk = start + tl.arange(0, BK)
        a = tl.load(
            x + rm.to(tl.int64)[:, None] * k + rk[None, :],
            mask=(rm < rows)[:, None] & (rk < k)[None, :], other=0,
        )  # fmt: skip
        b = tl.load(
            w + rn.to(tl.int64)[None, :] * k + rk[:, None],
            mask=(rn < columns)[None, :] & (rk < k)[:, None], other=0,
        )  # fmt: skip
        acc = tl.dot(a, b, acc, input_precision="ieee")
    return acc


@triton.jit
def tile_offsets(
    tile, rows, columns, pitch, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """Offsets of a tile of a [rows, columns] matrix with `pitch`, and which are in it."""
    tiles = tl.cdiv(columns, BN)
    rm = tile // tiles * BM + tl.arange(0, BM)
    rn = tile % tiles * BN + tl.arange(0, BN)
    mask = (rm < rows)[:, None] & (rn < columns)[None, :]
    return rm.to(tl.int64)[:, None] * pitch + rn[None, :], mask


@triton.jit(do_not_specialize=["rank", "epoch"])
def product_reduce_kernel(
    x, w, buffer, out, own_signals, sources, signals, rank, epoch, rows, part, n, pitch, k,
    SHOTS: tl.constexpr, SCATTER: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """out = the sum over ranks of x @ wᵀ, of x[rows, k] and w[n, k]; out has rows of `pitch`.

    With two shots rank r reduces rows r · part to (r + 1) · part, which are its result with
    SCATTER, and else read by all; with one shot every rank reduces all rows (part = rows).
    """
    PARTS: tl.constexpr = WORLD if SHOTS == 2 else 1
    BEHIND: tl.constexpr = 1 if SCATTER or SHOTS == 1 else 2
    program, step = tl.program_id(0), tl.num_programs(0)
    tiles_n = tl.cdiv(n, BN)
    tiles = tl.cdiv(part, BM) * tiles_n
    for tile in range(program, tiles + BEHIND * step, step):
        number = tile // step  # of this program
        if tile < tiles:
            offs, mask = tile_offsets(tile, part, n, n, BM, BN)
            for index in range(PARTS):
                owner = (rank + 1 + index) % PARTS  # the own part last: peers wait for the others
                row = owner * part + tile // tiles_n * BM
                last = tl.minimum(rows, (owner + 1) * part)
                acc = product(x, w, row, last, tile % tiles_n * BN, n, k, BM, BN, BK)
                into = buffer + owner.to(tl.int64) * part * n + offs
                tl.store(into, acc.to(buffer.dtype.element_ty), mask=mask)
                if SHOTS == 2:
                    pad = selected(signals, owner, WORLD)
                    notify_one(pad, program, rank, epoch + number, WORLD, WAVES, LANES)
                else:
                    notify(signals, program, rank, epoch + number, WORLD, WAVES, LANES)
        reduced = tile - step
        if (reduced >= 0) & (reduced < tiles) & (number > 0):
            wait_for(own_signals, program, epoch + number - 1, WORLD, WAVES)
            offs, mask = tile_offsets(reduced, part, n, n, BM, BN)
            own_rows = (rank * (SHOTS - 1)).to(tl.int64) * part * n
            acc = total(sources, own_rows + offs, mask, tl.float32, "sum", WORLD)
            if BEHIND == 2:
                tl.store(buffer + own_rows + offs, acc.to(buffer.dtype.element_ty), mask=mask)
                notify(signals, step + program, rank, epoch + number - 1, WORLD, WAVES, LANES)
            else:
                offs, mask = tile_offsets(reduced, part, n, pitch, BM, BN)
                tl.store(out + offs, acc.to(out.dtype.element_ty), mask=mask)
        if BEHIND == 2:
            gathered = tile - 2 * step
            if gathered >= 0:
                wait_for(own_signals, step + program, epoch + number - 2, WORLD, WAVES)
                offs, _ = tile_offsets(gathered, part, n, n, BM, BN)
                for peer in tl.static_range(WORLD):
                    row_count = tl.minimum(part, rows - peer * part)
                    into, mask = tile_offsets(gathered, row_count, n, pitch, BM, BN)
                    start = tl.full((), peer, tl.int64) * part
                    value = tl.load(sources[peer] + start * n + offs, mask=mask, other=0)
                    tl.store(out + start * pitch + into, value, mask=mask)


@triton.jit(do_not_specialize=["rank", "epoch"])
def gather_product_kernel(
    x, w, buffer, out, own_signals, sources, signals, rank, epoch, rows, x_rows, first, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """out[r · x_rows + first + i] = row i of rank r's x[rows, k] @ w[n, k]ᵀ, own rows first.

    Chunks of BM rows are staged and signalled one by one; a tile waits for its chunk.
    """
    program, step = tl.program_id(0), tl.num_programs(0)
    chunks, tiles_n = tl.cdiv(rows, BM), tl.cdiv(n, BN)
    for chunk in range(program, chunks, step):
        for start in range(0, k, BK):
            offs, mask = tile_offsets(chunk, rows, BK, k, BM, BK)
            mask = mask & (start + tl.arange(0, BK) < k)[None, :]
            tl.store(
                buffer + start + offs, tl.load(x + start + offs, mask=mask, other=0), mask=mask
            )
        notify(signals, program, rank, epoch + chunk // step, WORLD, WAVES, LANES)
    for tile in range(program, WORLD * chunks * tiles_n, step):
        source = (rank + tile // (chunks * tiles_n)) % WORLD
        at = tile % (chunks * tiles_n)
        chunk = at // tiles_n
        wait_for_one(own_signals, chunk % step, source, epoch + chunk // step, WORLD, WAVES)
        a = selected(sources, source, WORLD)
        acc = product(a, w, chunk * BM, rows, at % tiles_n * BN, n, k, BM, BN, BK)
        offs, mask = tile_offsets(at, rows, n, n, BM, BN)
        into = out + (source.to(tl.int64) * x_rows + first) * n + offs
        tl.store(into, acc.to(out.dtype.element_ty), mask=mask)


__all__ = ["gather_product_kernel", "product_reduce_kernel"]
