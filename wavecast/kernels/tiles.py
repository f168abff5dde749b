"""Which tile of a result a workgroup computes, for kernels over tiles."""

from __future__ import annotations

from functools import cache

import numpy as np
import triton
import triton.language as tl

from wavecast.arch import Device


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


@cache
def reached(down: int, across: int, group: int, workgroups: int) -> tuple[int, int]:
    """Rows and columns of tiles that the first `workgroups` of one die take, by `tile_of`."""
    number = np.arange(min(workgroups, down * across))
    first = number // (group * across) * group
    height = np.minimum(down - first, group)
    within = number % (group * across)
    return len(np.unique(first + within % height)), len(np.unique(within // height))


def xcds(device: Device) -> int:
    """Dies of a GPU that have an L2 each (1 where nobody says)."""
    return int(device.get("xcds", 1) or 1)


__all__ = ["reached", "tile_of", "xcds"]
