"""Kernels that reduce along rows: what their workgroups do, in one form for norms and softmax.

A workgroup takes one row (or, of short rows, several), walks it once per pass and reduces across
its lanes in between. Rows of the workgroups that run at once are the working set of a second pass:
what the L2 does not hold of it comes from memory again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import Traffic, residency
from wavecast.perfmodel.streaming import Streaming, resident

FAMILY = "norm"


@dataclass(frozen=True, slots=True)
class RowSizes:
    """`rows` of `columns` elements of `width` bytes, `workgroups` of `threads` threads.

    `reads` and `writes` are tensors of that size; `passes` how often the first is read;
    `issue` clocks of a unit per workgroup, `chain` clocks once, both from the kernel's code.
    `shared` as in `memory.Traffic`.
    """

    rows: int
    columns: int
    width: float
    threads: int
    workgroups: int
    issue: float
    chain: float
    reads: float = 1.0
    writes: float = 1.0
    passes: float = 1.0
    extra: float = 0.0
    shared: bool = False


def launch(chip: Chip, kernel: RowSizes) -> Streaming:
    """The launch of a row kernel on a chip."""
    constants = coefficients.values(FAMILY, chip.device)
    share = chip.coefficient("memory", "cache_share")
    size = kernel.rows * kernel.columns * kernel.width
    at_once = min(kernel.workgroups, chip.units * resident(chip, kernel.threads))
    working = size / kernel.workgroups * at_once
    level = chip.l2_bytes + chip.mall_bytes
    lost = (kernel.passes - 1) * (1 - float(residency(working, level * share)))
    again = lost * size
    read, written = kernel.reads * size + kernel.extra, kernel.writes * size
    return Streaming(
        traffic=Traffic(
            read + again,
            written,
            footprint=read + written + again,
            streams=max(1.0, kernel.reads + kernel.writes + lost),
            shared=kernel.shared,
        ),
        workgroups=kernel.workgroups,
        issue=kernel.issue,
        overlap=constants["overlap"],
        chain=kernel.chain,
        threads=kernel.threads,
    )


def next_power_of_two(number: int) -> int:
    return 1 << max(0, math.ceil(np.log2(number)))


__all__ = ["RowSizes", "launch", "next_power_of_two"]
