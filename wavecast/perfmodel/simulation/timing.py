"""The time of a simulated launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.simulation.run import Run

LEAST_ROUNDS: Final = 3
"""Rounds of resident workgroups that a pace is taken from."""


@dataclass(frozen=True, slots=True, eq=False)
class LaunchTiming:
    """A launch as simulated. `seconds` in all, `launch` of them before and after the work; `unit`
    is the run of the busiest unit, `clocks` its time with all its workgroups at `clock` Hz.
    `bounds` are the seconds each resource alone needs."""

    placement: LaunchPlacement
    chip: Chip
    unit: Run
    clocks: float
    clock: float
    launch: float
    seconds: float
    bounds: Mapping[str, float]

    @property
    def limiter(self) -> str:
        """The largest bound."""
        return max(self.bounds, key=lambda name: self.bounds[name])


def pace(finish: np.ndarray[Any, Any], resident: int) -> float:
    """Clocks from one workgroup's end to the next, in the steady state."""
    ends = np.sort(finish)
    if len(ends) <= resident:
        return float(ends[-1]) / len(ends)
    window = min(len(ends) - 1, max(resident, len(ends) // 2 // resident * resident))
    return float(ends[-1] - ends[-1 - window]) / window


__all__ = ["LEAST_ROUNDS", "LaunchTiming", "pace"]
