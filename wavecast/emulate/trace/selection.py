"""Which workgroups of a grid are counted and which are recorded."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wavecast.analyze.values.sample import spaced_workgroups
from wavecast.errors import UsageError

Grid = tuple[int, int, int]
Workgroup = int | tuple[int, ...]
"""A workgroup by its number, x fastest, or by its coordinates (x), (x, y) or (x, y, z)."""


def numbers(grid: Grid, workgroups: Iterable[Workgroup]) -> np.ndarray:
    """The sorted numbers (int64) of workgroups. Raises UsageError for one outside the grid."""
    return np.array(sorted({_number(grid, workgroup) for workgroup in workgroups}), np.int64)


def sample_workgroups(grid: Grid, count: int, among: np.ndarray | None) -> np.ndarray:
    """The numbers of `count` workgroups distributed over the grid, or over those of `among`."""
    if among is not None:
        picks = [among[(2 * n + 1) * len(among) // (2 * count)] for n in range(count)]
        return np.unique(np.array(picks, np.int64))
    return numbers(grid, spaced_workgroups(grid, count))


def _number(grid: Grid, workgroup: Workgroup) -> int:
    if isinstance(workgroup, tuple):
        if not 1 <= len(workgroup) <= 3:
            raise UsageError(f"a workgroup has one to three coordinates, not {workgroup}")
        x, y, z = (*workgroup, 0, 0)[:3]
        valid = 0 <= x < grid[0] and 0 <= y < grid[1] and 0 <= z < grid[2]
        number = x + grid[0] * (y + grid[1] * z)
    else:
        number = workgroup
        valid = 0 <= number < grid[0] * grid[1] * grid[2]
    if not valid:
        raise UsageError(f"workgroup {workgroup} is not in the grid {grid}")
    return number


__all__ = ["Workgroup", "numbers", "sample_workgroups"]
