"""What sampled waves executed, as flat arrays the simulator replays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

TAGS, L2, MALL, HBM, PASSES, SERIAL, LATE_MALL, LATE_HBM = range(8)
REQUEST: Final = 8
"""Columns of a request: cache lines looked up; bytes from the L2, from the memory-side cache and
from memory (each includes the next); LDS passes; lanes of an atomic that wait for one another;
bytes that the L2, and bytes that the memory-side cache, has on the way for another request, and
that arrive as late as if they were fetched for this one."""


@dataclass(frozen=True, slots=True, eq=False)
class Wave:
    """One recorded wave: basic blocks (u32[n]) and its requests: instruction numbers (u32[m]) and
    what each asks of the caches (f32[m, REQUEST]). One that was cut is not `complete`."""

    blocks: Array
    instructions: Array
    requests: Array
    complete: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """Workgroups of `waves` waves each, as templates that stand for all workgroups of a launch.

    `steps` (i32) are the instructions the waves executed, one after the other, wave w of template g
    in `[start[g * waves + w], start[g * waves + w + 1])`; `weights` (f32) how many executions each
    stands for; `rows` (f32[., REQUEST]) the sums of requests per memory instruction executed, in
    order, from `rows_start[…]` on.
    """

    waves: int
    steps: Array
    weights: Array
    start: Array
    rows: Array
    rows_start: Array

    @property
    def workgroups(self) -> int:
        """How many templates there are."""
        return (len(self.start) - 1) // self.waves

    @property
    def executed(self) -> Array:
        """Instructions that each template stands for, f64[workgroups]."""
        totals = np.concatenate([[0.0], np.cumsum(self.weights, dtype=float)])
        return np.diff(totals[self.start[:: self.waves]])


def expand_blocks(blocks: Array, firsts: Array, lengths: Array) -> Array:
    """The instructions of a sequence of blocks, i64[n]."""
    counts = lengths[blocks]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    within = np.arange(total) - np.repeat(ends - counts, counts)
    return np.repeat(firsts[blocks], counts) + within


__all__ = ["REQUEST", "Streams", "Wave", "expand_blocks"]
