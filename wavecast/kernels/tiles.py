"""Which tile of a result a workgroup computes and how it stores it, for kernels over tiles."""

from typing import Any

import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels.spec import Problem, Settings
from wavecast.perfmodel.ranking import TiledProduct


@triton.jit
def tile_of(number, down, across, GROUP: tl.constexpr, XCDS: tl.constexpr):
    """(row, column) of the tile that workgroup `number` of `down * across` takes.

    Workgroups go to the XCDs of an MI300 in turns; renumbered, each XCD takes neighbours, which
    share its L2. Within that order, `GROUP` rows of tiles are walked column by column.
    """
    if XCDS > 1:
        count = down * across
        share = count // XCDS
        more = count % XCDS
        xcd = number % XCDS
        number = xcd * share + tl.minimum(xcd, more) + number // XCDS
    per_group = GROUP * across
    group = number // per_group
    first = group * GROUP
    height = tl.minimum(down - first, GROUP)
    within = number % per_group
    return first + within % height, within // height


@triton.jit
def by_eights(tile):
    """A tile in three dimensions, columns by eights.

    As such, results leave the layout of matrix instructions, whose stores (and loads of what they
    are added to) cover lines in part, for one in which adjacent lanes have adjacent elements.
    """
    return tl.reshape(tile, (tile.shape[0], tile.shape[1] // 8, 8))


@triton.jit
def rows_by_eights(rows):
    """The numbers of a tile's rows, to go with `by_eights`."""
    return tl.reshape(rows, (rows.shape[0], 1, 1))


@triton.jit
def columns_by_eights(columns):
    """The numbers of a tile's columns, to go with `by_eights`."""
    return tl.reshape(columns, (1, columns.shape[0] // 8, 8))


@triton.jit
def store_tile(out_ptr, offs, value, mask):
    """Round a tile and store it, where `mask`, at the offsets `offs` [rows, columns], whose
    columns are adjacent. Of pointers in three dimensions the compiler would not know that."""
    rounded = by_eights(value.to(out_ptr.dtype.element_ty))
    tl.store(out_ptr + by_eights(offs), rounded, mask=by_eights(mask))


def copies_to_lds(device: Device) -> bool:
    """Whether loads go to the LDS without registers on the way, so that several steps can be."""
    return device.capabilities.direct_to_lds


def buffers(settings: Settings, device: Device) -> int:
    """Steps of operands in the LDS at once: where they come through registers, the newest waits
    there."""
    stages = settings["num_stages"]
    return stages if copies_to_lds(device) else max(1, stages - 1)


def blocks(size: int, least: int, most: int, count: int = 3) -> tuple[int, ...]:
    """`count` powers of two, at least `least`: the one that `size` fits in, `most` at most, and
    those below."""
    largest = min(most, max(least, triton.next_power_of_2(size)))
    return tuple(largest >> n for n in reversed(range(count)) if largest >> n >= least)


def sides(settings: Settings) -> dict[str, int]:
    """The settings `BLOCK_M`, `BLOCK_N` and `BLOCK_K`, as demands name them."""
    labels = {f"tile_{side}": f"BLOCK_{side.upper()}" for side in "mnk"}
    return {name: settings[block] for name, block in labels.items() if block in settings}


def product(problem: Problem, settings: Settings, dtype: str, **fields: Any) -> TiledProduct:
    """The demand of a product of `m`, `n` and `k` in tiles; `fields` are others, or instead of
    those of the problem and the settings."""
    sizes = {name: problem[name] for name in "mnk" if name in problem}
    return TiledProduct(**{**sizes, **sides(settings), "dtype": dtype, **fields})
