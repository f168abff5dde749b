"""The kernels of products fused with collectives: communication overlaps the product tile by tile.

Programs are persistent, one per compute unit, and store what peers need to the buffers of these:
the links work while the next tile is multiplied. Programs that add up results over ranks have the
same tiles on every rank: program p makes tiles p, p + P, … and signals peers after each (the epoch
of a signal counts the tiles of the program), so an iteration multiplies one tile and reduces the
one before. Before a product of gathered rows some programs copy rows to the buffers of all peers,
chunk after chunk, while the others multiply: the rank's own rows first, then chunks as they arrive.
"""

# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

import triton
import triton.language as tl

from wavecast.kernels.distributed.signals import (
    notify,
    notify_one,
    wait_for,
    wait_for_pieces,
)
from wavecast.kernels.gemm.kernels import Form, Operands, sums_of_tile


@triton.jit
def selected(pointers, index, WORLD: tl.constexpr):
    """Pointer number `index` of a tuple."""
    pointer = pointers[0]
    for peer in tl.static_range(1, WORLD):
        pointer = tl.where(index == peer, pointers[peer], pointer)
    return pointer


@triton.jit
def product(
    x, w, tile_row, tile_column, rows, columns, k,
    EVEN_K: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A tile of x[rows, k] @ w[columns, k]ᵀ in float32; rows and columns are at least 1."""
    of = Operands(x, k, 1, w, 1, k, rows, columns, k, None, 0, None, 0)
    form: tl.constexpr = Form(False, False, False, False, EVEN_K, False)
    steps = tl.cdiv(k, BK)
    sums = sums_of_tile(
        of, form, tile_row, tile_column, 0, steps, "ieee", tl.float32, WIDE, BM, BN, BK
    )
    return sums[0]


@triton.jit
def tile_offsets(
    tile, rows, columns, pitch, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """Offsets of a tile of a [rows, columns] matrix with `pitch`, and which are in it."""
    return band_offsets(tile, 0, rows, columns, pitch, BM, BN, BM)


@triton.jit
def band_offsets(
    tile, start, rows, columns, pitch, BM: tl.constexpr, BN: tl.constexpr, ROWS: tl.constexpr
):
    """The same of ROWS rows of a tile, from row `start` of it on."""
    tiles = tl.cdiv(columns, BN)
    rm = tile // tiles * BM + start + tl.arange(0, ROWS)
    rn = tile % tiles * BN + tl.arange(0, BN)
    mask = (rm < rows)[:, None] & (rn < columns)[None, :]
    return rm.to(tl.int64)[:, None] * pitch + rn[None, :], mask


@triton.jit
def store_to_all(buffers, offs, value, mask, WORLD: tl.constexpr):
    """Store a tile at the same place of all buffers."""
    for peer in tl.static_range(WORLD):
        tl.store(buffers[peer] + offs, value, mask=mask)


@triton.jit(do_not_specialize=["rank", "epoch"])
def product_reduce_kernel(
    x, w, buffer, out, own_signals, buffers, signals, rank, epoch, rows, part, n, pitch, k,
    SHOTS: tl.constexpr, SCATTER: tl.constexpr, TEAM: tl.constexpr,
    EVEN_K: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """out = the sum over ranks of x @ wᵀ, of x[rows, k] and w[n, k]; out has rows of `pitch`.

    With two shots rank r reduces rows r · part to (r + 1) · part, which are its result with
    SCATTER, and else sent to all; with one shot every rank reduces all rows (part = rows). A buffer
    has a slot of part x n per rank for what is to be reduced, and behind these one for what is.

    TEAM programs divide the parts of a tile, and the last of them, which has the own one, reduces:
    one program for all parts, or one for each.
    """
    PARTS: tl.constexpr = WORLD if SHOTS == 2 else 1
    BEHIND: tl.constexpr = 1 if SCATTER or SHOTS == 1 else 2
    program, step = tl.program_id(0) // TEAM, tl.num_programs(0) // TEAM  # numbers of teams
    member = tl.program_id(0) % TEAM
    tiles_n = tl.cdiv(n, BN)
    tiles = tl.cdiv(part, BM) * tiles_n
    slot = tl.cast(part, tl.int64) * n
    ROWS: tl.constexpr = min(
        BM, 32
    )  # of a tile at once: what all ranks have of them fits registers
    for tile in range(program, tiles + BEHIND * step, step):
        number = tile // step  # of this program
        if tile < tiles:
            offs, mask = tile_offsets(tile, part, n, n, BM, BN)
            for index in range(member, PARTS, TEAM):
                owner = (rank + 1 + index) % PARTS  # the own part last: peers wait for the others
                first = tl.minimum(owner * part, rows - 1)  # the last parts may be empty
                acc = product(
                    x + first.to(tl.int64) * k, w, tile // tiles_n, tile % tiles_n,
                    tl.minimum(part, rows - first), n, k, EVEN_K, WIDE, BM, BN, BK,
                )  # fmt: skip
                value = acc.to(buffer.dtype.element_ty)
                if SHOTS == 2:
                    if index > member:  # what was stored before this product has arrived by now
                        pad = selected(signals, (rank + 1 + index - TEAM) % PARTS, WORLD)
                        notify_one(pad, program, rank, epoch + number, WORLD, WAVES, LANES)
                    tl.store(selected(buffers, owner, WORLD) + rank * slot + offs, value, mask=mask)
                else:
                    store_to_all(buffers, rank * slot + offs, value, mask, WORLD)
            if SHOTS == 2:
                pad = selected(signals, (rank + 1 + PARTS - TEAM + member) % PARTS, WORLD)
                notify_one(pad, program, rank, epoch + number, WORLD, WAVES, LANES)
            else:
                notify(signals, program, rank, epoch + number, WORLD, WAVES, LANES)
        reduced = tile - step
        reduces = member == TEAM - 1
        if (reduced >= 0) & (reduced < tiles) & (number > 0) & reduces:
            wait_for(own_signals, program, epoch + number - 1, WORLD, WAVES)
            for start in range(0, BM, ROWS):
                offs, mask = band_offsets(reduced, start, part, n, n, BM, BN, ROWS)
                acc = tl.load(buffer + offs, mask=mask, other=0).to(tl.float32)
                for peer in tl.static_range(1, WORLD):
                    value = tl.load(buffer + peer * slot + offs, mask=mask, other=0)
                    acc += value.to(tl.float32)
                if BEHIND == 2:
                    value = acc.to(buffer.dtype.element_ty)
                    store_to_all(buffers, (WORLD + rank) * slot + offs, value, mask, WORLD)
                else:
                    offs, mask = band_offsets(reduced, start, part, n, pitch, BM, BN, ROWS)
                    tl.store(out + offs, acc.to(out.dtype.element_ty), mask=mask)
            if BEHIND == 2:
                notify(signals, step + program, rank, epoch + number - 1, WORLD, WAVES, LANES)
        if BEHIND == 2:
            gathered = tile - 2 * step
            if (gathered >= 0) & reduces:
                wait_for(own_signals, step + program, epoch + number - 2, WORLD, WAVES)
                for start in range(0, BM, ROWS):
                    offs, _ = band_offsets(gathered, start, part, n, n, BM, BN, ROWS)
                    for peer in tl.static_range(WORLD):
                        count = tl.minimum(part, rows - peer * part)
                        into, mask = band_offsets(gathered, start, count, n, pitch, BM, BN, ROWS)
                        value = tl.load(buffer + (WORLD + peer) * slot + offs, mask=mask, other=0)
                        first = tl.full((), peer, tl.int64) * part * pitch
                        tl.store(out + first + into, value, mask=mask)


@triton.jit
def copy_to_peers(
    x, count, each, slot, buffers, signals, rank, epoch,
    COPIES: tl.constexpr, BLOCK: tl.constexpr,
    WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The pieces of `each` of the `count` elements of x that this program, one of COPIES, copies to
    element `slot` of the buffers of all peers."""
    program = tl.program_id(0)
    for piece in range(program, tl.cdiv(count, each), COPIES):
        for start in range(0, each, BLOCK):
            within = start + tl.arange(0, BLOCK)
            offs = piece.to(tl.int64) * each + within
            mask = (within < each) & (offs < count)
            value = tl.load(x + offs, mask=mask, other=0)
            for peer in tl.static_range(WORLD):
                tl.store(buffers[peer] + slot + offs, value, mask=mask & (rank != peer))
        notify(signals, program, rank, epoch + piece // COPIES, WORLD, WAVES, LANES)


@triton.jit(do_not_specialize=["rank", "epoch"])
def gather_product_kernel(
    x, w, buffer, out, own_signals, buffers, signals, rank, epoch, rows, x_rows, first, n, k, each,
    COPIES: tl.constexpr, PIECES: tl.constexpr, BLOCK: tl.constexpr,
    EVEN_K: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    WORLD: tl.constexpr, WAVES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """out[r · x_rows + first + i] = row i of rank r's x[rows, k] @ w[n, k]ᵀ, own rows first.

    Programs below COPIES copy x to the buffers of peers, in PIECES of `each` elements per chunk of
    BM rows; a tile waits for the pieces of its chunk.
    """
    program = tl.program_id(0)
    size = tl.cast(rows, tl.int64) * k
    if program < COPIES:
        copy_to_peers(
            x, size, each, rank.to(tl.int64) * size, buffers, signals, rank, epoch,
            COPIES, BLOCK, WORLD, WAVES, LANES,
        )  # fmt: skip
    else:
        worker, workers = program - COPIES, tl.num_programs(0) - COPIES
        tiles_n = tl.cdiv(n, BN)
        tiles = tl.cdiv(rows, BM) * tiles_n  # of a rank
        for tile in range(worker, tiles, workers):
            acc = product(
                x, w, tile // tiles_n, tile % tiles_n, rows, n, k, EVEN_K, WIDE, BM, BN, BK
            )
            offs, mask = tile_offsets(tile, rows, n, n, BM, BN)
            into = out + (rank.to(tl.int64) * x_rows + first) * n + offs
            tl.store(into, acc.to(out.dtype.element_ty), mask=mask)
        behind = worker + (tiles - worker + workers - 1) // workers * workers - tiles
        for tile in range(behind, (WORLD - 1) * tiles, workers):  # chunk after chunk of all peers
            column, at = tile % tiles_n, tile // tiles_n
            chunk = at // (WORLD - 1)
            source = (rank + 1 + at % (WORLD - 1)) % WORLD
            pieces = tl.minimum(PIECES, tl.cdiv(size - chunk.to(tl.int64) * BM * k, each))
            wait_for_pieces(
                own_signals, source, chunk * PIECES, pieces, epoch, PIECES, COPIES, WORLD, WAVES
            )
            a = buffer + source.to(tl.int64) * size
            acc = product(a, w, chunk, column, rows, n, k, EVEN_K, WIDE, BM, BN, BK)
            offs, mask = tile_offsets(chunk * tiles_n + column, rows, n, n, BM, BN)
            into = out + (source.to(tl.int64) * x_rows + first) * n + offs
            tl.store(into, acc.to(out.dtype.element_ty), mask=mask)


__all__ = ["gather_product_kernel", "product_reduce_kernel"]
