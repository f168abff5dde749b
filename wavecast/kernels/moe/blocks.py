"""What kernels over blocks of rows share: which tile a workgroup takes, its rows, and its stores.

The order of the rows is that of `moe_align`. Only the GPU knows how many blocks there are: the grid
has as many as there can be, and workgroups beyond those there are end at once.
"""

import triton
import triton.language as tl

from wavecast.kernels.moe.activations import activate
from wavecast.kernels.tiles import store_tile, tile_of


@triton.jit
def tile_at(
    pid, tiles_m, tiles_n, owners_ptr, starts_ptr, BLOCK_M: tl.constexpr, GROUP: tl.constexpr,
    XCDS: tl.constexpr,
):  # fmt: skip
    """(block, column, expert) of the tile that program `pid` of `tiles_m * tiles_n` takes.

    Tiles are numbered expert by expert, so that what runs together shares weights; within one, as
    `tile_of` does, `GROUP` blocks column by column.
    """
    pid_m, pid_n = tile_of(pid, tiles_m, tiles_n, 1, XCDS)  # pyright: ignore[reportArgumentType]
    expert = tl.load(owners_ptr + pid_m)
    first_m = tl.load(starts_ptr + expert) // BLOCK_M
    expert_tiles_m = tl.load(starts_ptr + expert + 1) // BLOCK_M - first_m
    pid_in_expert = (pid_m - first_m) * tiles_n + pid_n
    pid_m, pid_n = tile_of(pid_in_expert, expert_tiles_m, tiles_n, GROUP, 1)  # pyright: ignore[reportArgumentType]
    return first_m + pid_m, pid_n, expert.to(tl.int64)


@triton.jit
def rows_of(order_ptr, pid_m, slots, BLOCK_M: tl.constexpr, WIDE: tl.constexpr):
    """The slots of a block, and those to read: for padding, that of its first row (no block begins
    with padding)."""
    slot = tl.load(order_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M))
    first = tl.load(order_ptr + pid_m * BLOCK_M)
    read = tl.where(slot < slots, slot, first)
    if WIDE:
        slot = slot.to(tl.int64)
        read = read.to(tl.int64)
    return slot, read


@triton.jit
def weight_rows(pid_n, N: tl.constexpr, BLOCK_N: tl.constexpr, GATES: tl.constexpr):
    """The rows of an expert's weights that a tile of `BLOCK_N` columns of results takes: themselves
    (GATES 0), or all gates and then all ups, of weights that have all gates first (1) or gates and
    ups interleaved (2). Columns beyond N read the last one."""
    if GATES == 0:
        offs = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        row = offs if N % BLOCK_N == 0 else tl.minimum(offs, N - 1)
    else:
        within = tl.arange(0, 2 * BLOCK_N)
        offs = pid_n * BLOCK_N + within % BLOCK_N
        offs = offs if N % BLOCK_N == 0 else tl.minimum(offs, N - 1)
        row = offs + within // BLOCK_N * N if GATES == 1 else 2 * offs + within // BLOCK_N
    return row


@triton.jit
def gated(
    acc, alpha, limit, KIND: tl.constexpr, GATES: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The activation of a tile whose rows of weights `weight_rows` gave. Gates and ups lie in
    registers of the same lane: instructions for matrices are repeated over columns."""
    if GATES != 0:
        pairs = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N)), (0, 2, 1))
        gate, up = tl.split(pairs)
        acc = activate(gate, up, alpha, limit, KIND)
    return acc


@triton.jit
def store_rows(
    y_ptr, acc, row, mask, pid_n, N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Store a tile to those of its rows of [rows, N] that are valid."""
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    store_tile(y_ptr, row[:, None] * N + offs_n, acc, mask[:, None] & (offs_n < N))
