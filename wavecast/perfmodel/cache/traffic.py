"""From what a sample missed to what the launch moves: how much of it reaches memory.

Misses of the L2 go to the memory-side cache. For each array, the distinct bytes a launch touches
are at most the array, and at most what the sample missed, scaled to the launch. They miss unless an
earlier launch left them there (`mall_resident`). Other misses are for bytes that another die, or
the same die, fetched before: they hit if the array fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import residency

Array = np.ndarray[Any, Any]


def mall_resident(chip: Chip, working_set: float) -> float:
    """The share of some bytes that is still in the memory-side cache after `working_set` bytes,
    these included, were touched."""
    if not chip.mall_bytes:
        return 0.0
    return float(np.asarray(residency(working_set, _usable(chip))))


def footprint(traffic: Array, sizes: Sequence[float]) -> float:
    """The distinct bytes of arrays of `sizes` bytes of which `traffic` (f64[arrays]) pass the
    L2."""
    return float(np.minimum(traffic, np.asarray(sizes, float)).sum())


def reach(
    chip: Chip, traffic: Array, sizes: Sequence[float], resident: float | Array = 0.0
) -> Array:
    """The share (f64[arrays]) of what moves beyond the L2 that reaches memory, for `traffic`
    (f64[arrays]) bytes of arrays of `sizes` bytes, when a share `resident` of each is in the
    memory-side cache before the launch.

    Without a memory-side cache all of it does.
    """
    if not chip.mall_bytes:
        return np.ones(len(traffic))
    distinct = np.minimum(traffic, np.asarray(sizes, float))
    first = np.where(traffic > 0, distinct / np.maximum(traffic, 1.0), 0.0)
    again = 1 - np.asarray(residency(np.asarray(sizes, float), _usable(chip)))
    return first * (1 - resident) + (1 - first) * again


def _usable(chip: Chip) -> float:
    return chip.mall_bytes * coefficients.coefficient("memory", "cache_share").of(chip.device)


__all__ = ["footprint", "mall_resident", "reach"]
