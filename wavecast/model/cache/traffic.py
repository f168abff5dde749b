"""From what a sample missed to what the launch moves: how much of it reaches memory.

Misses of the L2 go to the memory-side cache. For each array, the distinct bytes a launch touches
are at most the array, and at most what the sample missed, scaled to the launch. They miss unless an
equal launch before has left them there, which they survive as `memory.residency` says;
what dies miss beyond them was fetched by another die, or earlier, and hits as far as the array
fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavecast.model import coefficients
from wavecast.model.chip import Chip
from wavecast.model.memory import residency

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """`memory` (f64[arrays]) is the share of an array's traffic beyond the L2 that reaches memory,
    `footprint` the distinct bytes of all arrays."""

    memory: Array
    footprint: float


def reach(chip: Chip, moved: Array, sizes: Sequence[float], beside: float | None = 0.0) -> Reach:
    """What reaches memory of `moved` (f64[arrays]) bytes beyond the L2, of arrays of `sizes` bytes,
    when `beside` bytes were touched since an equal launch; None: there was none.

    Without a memory-side cache everything does.
    """
    distinct = np.minimum(moved, np.asarray(sizes, float))
    footprint = float(distinct.sum())
    if not chip.mall_bytes:
        return Reach(np.ones(len(moved)), footprint)
    capacity = chip.mall_bytes * coefficients.coefficient("memory", "cache_share").of(chip.device)
    held = float(np.asarray(residency(footprint + (beside or 0.0), capacity)))
    first = np.where(moved > 0, distinct / np.maximum(moved, 1.0), 0.0)
    again = (1 - first) * (1 - np.asarray(residency(np.asarray(sizes, float), capacity)))
    return Reach(first * (1.0 if beside is None else 1 - held) + again, footprint)


__all__ = ["Reach", "reach"]
