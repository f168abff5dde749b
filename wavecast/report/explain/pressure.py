"""Register-pressure curves thinned out for display."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wavecast.analyze.result import Pressure

Point = tuple[int, int, int, int]
"""Instruction index, live VGPRs, AGPRs, SGPRs just before it."""


def downsample(pressure: Pressure, most: int) -> list[Point]:
    """At most `most` points of the curve, peaks kept.

    The program is cut into `most` runs of equal length; each is shown by its instruction with the
    most live VGPRs and AGPRs together, the curve's own peak where it falls in the run.
    """
    total = len(pressure.vgpr)
    runs = min(most, total)
    points = []
    for run in range(runs):
        start, stop = run * total // runs, (run + 1) * total // runs
        if start <= pressure.peak_index < stop:
            index = pressure.peak_index
        else:
            index = max(range(start, stop), key=lambda i: pressure.vgpr[i] + pressure.agpr[i])
        points.append((index, pressure.vgpr[index], pressure.agpr[index], pressure.sgpr[index]))
    return points
