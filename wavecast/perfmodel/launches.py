"""Which simulation a launch profile takes: of a compute unit, or of an NVIDIA SM.

Both simulations give a `LaunchTiming`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from wavecast.arch import Device
from wavecast.errors import UnknownName
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.cu.simulation import Simulation
from wavecast.perfmodel.cu.whatif import Changes
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.perfmodel.sm.profile import SassProfile
from wavecast.perfmodel.sm.simulation import SmSimulation
from wavecast.perfmodel.sm.whatif import SmChanges

LaunchChanges = Changes | SmChanges
"""Simulations of a launch on a compute unit or an SM, each with one thing different."""


def changes_of(profile: LaunchProfile, device: Device) -> LaunchChanges:
    """The what-ifs of a profile on a device of its target; `simulation` is the launch as it is.

    Raises UsageError for a device of another target, MissingFact where the device lacks a number.
    """
    if isinstance(profile, SassProfile):
        return SmChanges(SmSimulation.of(profile, device))
    return Changes(Simulation.of(profile, device))


def launch_timing(profile: LaunchProfile, device: Device, *, events: int = 0) -> LaunchTiming:
    """Simulate a profile, keeping the first `events` issues. Raises as `changes_of`."""
    return changes_of(profile, device).simulation.run(events=events)


RATES: Final[Mapping[str, tuple[str, ...]]] = {
    "clock": ("clock",),
    "memory": ("hbm", "hbm_peak"),
    "memory-side cache": ("mall_bandwidth",),
    "L2": ("l2_bandwidth",),
    "LDS": ("lds_rate",),
    "latency": ("latency",),
    "launch": ("launch",),
}
"""What `scaled_timing` multiplies: bandwidths, the clock, latencies of the memory hierarchy and the
time of an empty launch, with the capacities of the chip each consists of."""


def scaled_timing(
    profile: LaunchProfile, device: Device, factors: Mapping[str, float]
) -> LaunchTiming:
    """Simulate a profile on a chip with other rates: `factors` by name of `RATES`. A rate that the
    chip does not have stays unknown.

    Raises UnknownName for another name, and as `changes_of`.
    """
    simulation = changes_of(profile, device).simulation
    return replace(simulation, chip=_scale_rates(simulation.chip, factors)).run()


def _scale_rates(chip: Chip, factors: Mapping[str, float]) -> Chip:
    changed: dict[str, object] = {}
    for name, factor in factors.items():
        if name not in RATES:
            raise UnknownName("rate", name, RATES)
        for field in RATES[name]:
            now = getattr(chip, field)
            if isinstance(now, Mapping):
                changed[field] = {level: factor * time for level, time in now.items()}
            elif now is not None:
                changed[field] = factor * now
    return replace(chip, **changed)


__all__ = ["RATES", "LaunchChanges", "changes_of", "launch_timing", "scaled_timing"]
