"""Which waves of a launch are followed.

Work often varies along one axis of the grid (causal attention, ragged tails), so samples are evenly
spaced along every axis by itself; spacing them by the linear number of workgroups would repeat a
few coordinates of an axis.
"""

from __future__ import annotations

from wavecast.analyze.values.inputs import Inputs, WaveId

MORE = 9
"""Further waves where the first ones differ."""

_FEWEST = 3
_IRRATIONAL = (0.6180339887498949, 0.7548776662466927)
"""Steps of y and z from one sample to the next, as parts of the axis: no two fall in step."""


def first_samples(inputs: Inputs) -> list[WaveId]:
    """The first wave of the first workgroup, one in the middle, and the last wave of the last."""
    grid = inputs.grid
    if grid is None:
        return [WaveId(None, 0)]
    x, y, z = grid
    samples = (
        WaveId((0, 0, 0), 0),
        WaveId(((x - 1) // 2, (y - 1) // 2, (z - 1) // 2), inputs.waves // 2),
        WaveId((x - 1, y - 1, z - 1), inputs.waves - 1),
    )
    return list(dict.fromkeys(samples))


def more_samples(inputs: Inputs, affordable: int) -> list[WaveId]:
    """Waves of workgroups evenly spaced over the grid, at most `affordable`.

    None where only a few would fit: they would not be even.
    """
    if inputs.grid is None or affordable < _FEWEST:
        return []
    workgroups = spaced_workgroups(inputs.grid, min(MORE, affordable))
    return [WaveId(workgroup, part % inputs.waves) for part, workgroup in enumerate(workgroups)]


def spaced_workgroups(grid: tuple[int, int, int], count: int) -> list[tuple[int, int, int]]:
    """At most `count` workgroups evenly spaced along every axis of the grid; some may be equal."""
    count = min(count, grid[0] * grid[1] * grid[2])
    workgroups = []
    for part in range(count):
        middle = part + 0.5
        x = int(middle / count * grid[0])
        y = int(middle * _IRRATIONAL[0] % 1 * grid[1])
        z = int(middle * _IRRATIONAL[1] % 1 * grid[2])
        workgroups.append((x, y, z))
    return workgroups
