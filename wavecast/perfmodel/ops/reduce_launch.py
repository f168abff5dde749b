"""How PyTorch divides a reduction among threads (`setReduceConfig` in aten/…/cuda/Reduce.cuh, 2.9).

Threads of x go along the elements that lie side by side: those of a row, or, where another
dimension is reduced, results. Threads of y take other results, or parts of the same ones if that
leaves each at least 16 elements. Workgroups share a result only where there are few results of
very many elements; on AMD seldom (a row of a matrix is never shared).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from wavecast.perfmodel.chip import Chip

LOADS: Final = 4
"""Loads that a thread has on the way at once, if they are not vectors along a row; and elements
of such a vector."""
MOST_THREADS: Final = 512
FEWEST_VALUES: Final = 16
MOST_VALUES: Final = 256
VECTOR_ROW: Final = 128
"""Elements of a row from which on loads are vectors."""


@dataclass(frozen=True, slots=True)
class ReduceLaunch:
    """`workgroups` of `threads`; a thread takes `values` elements of each of its `results`, with
    `loads` elements on the way at once. `parts` workgroups share a result."""

    threads: int
    workgroups: int
    values: int
    results: int
    loads: int
    parts: int


def divide(chip: Chip, rows: int, columns: int, inner: int) -> ReduceLaunch:
    """The launch of a reduction of `rows` x `columns` with `inner` results between the elements of
    a row (1: they lie side by side)."""
    along = inner == 1 or rows == 1
    dimensions = 1 if rows == 1 else 2 if inner in (1, rows) else 3
    vector = along and columns >= VECTOR_ROW
    results = 1 if along else math.gcd(inner, LOADS)
    width, height = _block(
        chip.lanes,
        MOST_THREADS // results,
        columns // LOADS if vector else columns if along else rows // results,
        rows if along else columns,
    )
    sharing = width if along else 1
    values = math.ceil(columns / sharing)
    shared = values >= min(FEWEST_VALUES * height, MOST_VALUES)
    if chip.device.vendor == "amd" and dimensions == 2 and along:
        shared = shared and not (values < 4 * MOST_VALUES and _processors(chip) < 100)
    if shared:
        sharing *= height
    values = math.ceil(columns / sharing)
    groups = math.ceil(rows / results / (width * height // sharing))
    parts = 1
    if shared and values >= MOST_VALUES:
        parts = _parts(chip, groups, values, width * height, dimensions, along=along)
    return ReduceLaunch(
        width * height,
        groups * parts,
        math.ceil(columns / (sharing * parts)),
        results,
        LOADS if vector else LOADS * results,
        parts,
    )


def _block(lanes: int, most: int, fast: int, slow: int) -> tuple[int, int]:
    """Threads along x and y, powers of two."""
    fast, slow = (_power_below(min(size, most)) for size in (fast, slow))
    height = min(slow, most // min(fast, lanes))
    return min(fast, most // height), height


def _parts(
    chip: Chip, groups: int, values: int, threads: int, dimensions: int, *, along: bool
) -> int:
    """Workgroups that share a result."""
    amd = chip.device.vendor == "amd"
    processors = _processors(chip)
    at_once = {1: 512, 2: 256, 3: 512}[dimensions] if amd and groups > 1 else _most_threads(chip)
    target = processors * (at_once // threads)
    if groups > target:
        return 1
    parts = max(
        min(math.ceil(target / groups), math.ceil(values / FEWEST_VALUES)),
        math.ceil(values / MOST_VALUES),
    )
    if not amd:
        return parts
    if dimensions == 3 and not along:
        parts = 4
        while math.ceil(values / parts) >= 8 * MOST_VALUES:
            parts *= 2
        return parts
    if parts > processors:
        return processors * (1 if processors >= 128 else 4 if parts > 512 else 2)
    if parts > math.ceil(processors / 2):
        return math.ceil(processors / 2)
    return parts if parts >= 16 else 1


def _processors(chip: Chip) -> int:
    """What the runtime calls a multiprocessor: of RDNA two compute units."""
    return chip.units // 2 if chip.device.vendor == "amd" and chip.lanes == 32 else chip.units


def _most_threads(chip: Chip) -> int:
    """Threads that a multiprocessor has at once."""
    if chip.device.vendor == "nvidia":
        return chip.device.facts.integer("max_threads_per_sm")
    waves = chip.simds * chip.device.facts.integer("max_waves_per_simd")
    return chip.units // _processors(chip) * waves * chip.lanes


def _power_below(size: int) -> int:
    """The largest power of two that is at most `size`."""
    return 1 << (max(1, size).bit_length() - 1)


__all__ = ["ReduceLaunch", "divide"]
