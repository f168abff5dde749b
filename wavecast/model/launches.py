"""Which simulation a launch profile takes: of a compute unit, or of an NVIDIA SM.

A profile of SASS carries a schedule; both simulations give a `LaunchTiming`.
"""

from __future__ import annotations

from wavecast.arch import Device
from wavecast.model.profile import LaunchProfile
from wavecast.model.simulation import LaunchTiming, Simulation
from wavecast.model.sm.simulation import SmSimulation
from wavecast.model.sm.whatif import SmChanges
from wavecast.model.whatif import Changes

LaunchChanges = Changes | SmChanges
"""Simulations of a launch on a compute unit or an SM, each with one thing different."""


def changes_of(profile: LaunchProfile, device: Device) -> LaunchChanges:
    """The what-ifs of a profile on a device of its target; `simulation` is the launch as it is.

    Raises UsageError for a device of another target, MissingFact where the device lacks a number.
    """
    if profile.schedule is not None:
        return SmChanges(SmSimulation.of(profile, device))
    return Changes(Simulation.of(profile, device))


def launch_timing(profile: LaunchProfile, device: Device, *, events: int = 0) -> LaunchTiming:
    """Simulate a profile, keeping the first `events` issues. Raises as `changes_of`."""
    return changes_of(profile, device).simulation.run(events=events)


__all__ = ["LaunchChanges", "changes_of", "launch_timing"]
