"""What kernels over blocks of rows share: which tile a workgroup takes, its rows, and its stores.

The order of the rows is that of `moe_align`. How many blocks there are stands on the GPU: the grid
has as many as there can be, and workgroups beyond those there are end at once.
"""

from __future__ import annotations

import triton
import triton.language as tl

from wavecast.kernels.moe.activations import activate
from wavecast.kernels.tiles import store_tile, tile_of


@triton.jit
def tile_at(
    number, down, across, owners_ptr, starts_ptr, BLOCK_M: tl.constexpr, GROUP: tl.constexpr,
    XCDS: tl.constexpr,
):  # fmt: skip
    """(block, column, expert) of the tile that workgroup `number` of `down * across` takes.

    Tiles are numbered expert by expert, so that what runs together shares weights; within one, as
    `tile_of` does, `GROUP` blocks column by column.
    """
    line, column = tile_of(number, down, across, 1, XCDS)  # pyright: ignore[reportArgumentType]
    expert = tl.load(owners_ptr + line)
    first = tl.load(starts_ptr + expert) // BLOCK_M
    count = tl.load(starts_ptr + expert + 1) // BLOCK_M - first
    within = (line - first) * across + column
    line, column = tile_of(within, count, across, GROUP, 1)  # pyright: ignore[reportArgumentType]
    return first + line, column, expert.to(tl.int64)


@triton.jit
def rows_of(order_ptr, line, slots, BLOCK_M: tl.constexpr, WIDE: tl.constexpr):
    """The slots of a block, and those to read: for padding, that of its first row (no block begins
    with padding)."""
    slot = tl.load(order_ptr + line * BLOCK_M + tl.arange(0, BLOCK_M))
    first = tl.load(order_ptr + line * BLOCK_M)
    read = tl.where(slot < slots, slot, first)
    if WIDE:
        slot = slot.to(tl.int64)
        read = read.to(tl.int64)
    return slot, read


@triton.jit
def weight_rows(column, N: tl.constexpr, BLOCK_N: tl.constexpr, GATES: tl.constexpr):
    """The rows of an expert's weights that a tile of `BLOCK_N` columns of results takes: themselves
    (GATES 0), or all gates and then all ups, of weights that hold first all gates (1) or both in
    turns (2). Columns that are none read the last one."""
    if GATES == 0:
        at = column * BLOCK_N + tl.arange(0, BLOCK_N)
        row = at if N % BLOCK_N == 0 else tl.minimum(at, N - 1)
    else:
        place = tl.arange(0, 2 * BLOCK_N)
        at = column * BLOCK_N + place % BLOCK_N
        at = at if N % BLOCK_N == 0 else tl.minimum(at, N - 1)
        row = at + place // BLOCK_N * N if GATES == 1 else 2 * at + place // BLOCK_N
    return row


@triton.jit
def gated(
    y, alpha, limit, KIND: tl.constexpr, GATES: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The activation of a tile whose rows of weights `weight_rows` gave. Gates and ups lie in
    registers of the same lane: instructions for matrices are repeated over columns."""
    if GATES != 0:
        halves = tl.permute(tl.reshape(y, (BLOCK_M, 2, BLOCK_N)), (0, 2, 1))
        gate, up = tl.split(halves)
        y = activate(gate, up, alpha, limit, KIND)
    return y


@triton.jit
def store_rows(
    y_ptr, y, row, valid, column, N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Store a tile to those of its rows of [rows, N] that are valid."""
    at = (column * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    store_tile(y_ptr, row[:, None] * N + at, y, valid[:, None] & (at < N))
