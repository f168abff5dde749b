"""Long loops as some of their iterations: the steady state stands for the rest.

A run of equal iterations keeps its first ones (caches and pipes fill) and its last ones, which then
carry the weight of those left out. Runs are found as repetitions in the sequence of basic blocks,
inner loops first, so that loops within loops fold too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

FIRST: Final = 4
LAST: Final = 12
LONGEST: Final = 96
"""Blocks an iteration may have to be recognised."""
WORTH: Final = 1500
"""Instructions that must fall away for a run to be cut."""


@dataclass(frozen=True, slots=True)
class Folded:
    """Which blocks of a sequence are kept (bool[n]) and how many each represents (f64[n])."""

    kept: Array
    weights: Array


def fold(blocks: Array, lengths: Array) -> Folded:
    """Fold the blocks (u32[n]) a wave executed; `lengths` (i64) are instructions per block."""
    weights = np.ones(len(blocks))
    index = np.arange(len(blocks))
    sequence = np.asarray(blocks, np.int64)
    for _ in range(3):
        cut = _cut(sequence, lengths)
        if cut is None:
            break
        keep_mask, factor = cut
        weights[index] *= factor
        sequence, index = sequence[keep_mask], index[keep_mask]
    kept_all = np.zeros(len(blocks), bool)
    kept_all[index] = True
    return Folded(kept_all, weights)


def _cut(sequence: Array, lengths: Array) -> tuple[Array, Array] | None:
    """Which positions to keep and the factor of each; None where nothing repeats enough."""
    number = len(sequence)
    keep_mask = np.ones(number, bool)
    factor = np.ones(number)
    is_covered = np.zeros(number, bool)
    has_repeats = False
    for period in range(1, min(LONGEST, number // (FIRST + LAST)) + 1):
        equal = sequence[period:] == sequence[:-period]
        for start, stop in _runs(equal):
            repeats = (stop - start) // period + 1
            if repeats <= FIRST + LAST or is_covered[start : stop + period].any():
                continue
            cost = int(lengths[sequence[start : start + period]].sum())
            dropped = repeats - FIRST - LAST
            if dropped * cost < WORTH:
                continue
            low = start + FIRST * period
            high = low + dropped * period
            keep_mask[low:high] = False
            factor[high : high + LAST * period] = 1 + dropped / LAST
            is_covered[start : start + repeats * period] = True
            has_repeats = True
    return (keep_mask, factor) if has_repeats else None


def _runs(flags: Array) -> list[tuple[int, int]]:
    """The runs of True, `[start, stop)`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


__all__ = ["Folded", "fold"]
