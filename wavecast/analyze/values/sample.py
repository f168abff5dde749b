"""Which waves of a launch are followed."""

from __future__ import annotations

from wavecast.analyze.values.inputs import Inputs, WaveId

MORE = 9
"""Further waves where the first ones differ."""

_FEWEST = 3


def first_samples(inputs: Inputs) -> list[WaveId]:
    """The first wave of the first workgroup, a middle one, and the last wave of the last."""
    if inputs.grid is None:
        return [WaveId(None, 0)]
    total = _total(inputs.grid)
    last = max(total - 1, 0)
    waves = inputs.waves
    picked = ((0, 0), (last // 2, waves // 2), (last, waves - 1))
    return [WaveId(_place(inputs.grid, n), w) for n, w in dict.fromkeys(picked)]


def more_samples(inputs: Inputs, affordable: int) -> list[WaveId]:
    """Waves of workgroups spread evenly over the grid, at most so many: the middles of equal parts.

    None where only a few would fit: they would not be even.
    """
    if inputs.grid is None or affordable < _FEWEST:
        return []
    total = _total(inputs.grid)
    count = min(MORE, total, affordable)
    numbers = [(2 * part + 1) * total // (2 * count) for part in range(count)]
    return [
        WaveId(_place(inputs.grid, number), part % inputs.waves)
        for part, number in enumerate(numbers)
    ]


def _total(grid: tuple[int, int, int]) -> int:
    return grid[0] * grid[1] * grid[2]


def _place(grid: tuple[int, int, int], number: int) -> tuple[int, int, int]:
    x, rest = number % grid[0], number // grid[0]
    return x, rest % grid[1], rest // grid[1]
