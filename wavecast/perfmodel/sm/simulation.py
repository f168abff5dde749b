"""The time of a launch on an NVIDIA device: one SM simulated, then the grid.

SMs take workgroups one after the other; the launch lasts as long as the SM that gets the most, and
never less than its whole traffic at the chip's bandwidths (`model.simulation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from wavecast.arch import Device
from wavecast.errors import UsageError
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.power import sustained_clock
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.perfmodel.simulation.run import Run
from wavecast.perfmodel.simulation.timing import LEAST_ROUNDS, LaunchTiming, pace
from wavecast.perfmodel.sm.code import SmCode
from wavecast.perfmodel.sm.machine import FAMILY, Multiprocessor
from wavecast.perfmodel.sm.profile import SassProfile
from wavecast.perfmodel.sm.run import run

STEPS: Final = 600_000
"""Instructions a simulation replays at most."""


@dataclass(frozen=True, slots=True, eq=False)
class SmSimulation:
    """A profile of SASS on a chip, ready to be simulated."""

    chip: Chip
    code: SmCode
    profile: SassProfile

    @staticmethod
    def of(profile: LaunchProfile, device: Device) -> SmSimulation:
        """The simulation of a profile on a device of its target.

        Raises UsageError for a device of another target or a profile of other code, MissingFact
        where the device lacks a number.
        """
        if device.target != profile.target or not isinstance(profile, SassProfile):
            raise UsageError(
                f"{profile.program.name} is code for {profile.target}, not for {device.id}",
                hint="compile it for that device",
            )
        placed = replace(profile, placement=profile.placement.on(device))
        return SmSimulation(Chip.of(device), profile.code, placed)

    def run(self, *, clock: float | None = None, events: int = 0, **changes: float) -> LaunchTiming:
        """Simulate the launch, as `model.simulation.Simulation.run` does; `changes` are fields of
        the `Multiprocessor`."""
        frequency = self.chip.clock if clock is None else clock
        result = self._simulate(frequency, events, changes)
        profile = self.profile
        if clock is None and profile.dtype:
            for _ in range(2):
                busy = result.unit.busy["matrix"] / profile.placement.simds
                activity = min(1.0, busy / max(result.unit.clocks, 1.0))
                slower = float(np.asarray(sustained_clock(self.chip, profile.dtype, activity)))
                if abs(slower / result.clock - 1) < 0.01:
                    break
                result = self._simulate(slower, events, changes)
        return result

    def _simulate(self, clock: float, events: int, changes: Mapping[str, float]) -> LaunchTiming:
        chip, profile = self.chip, self.profile
        placement, streams, traffic = profile.placement, profile.streams, profile.traffic
        machine = Multiprocessor.of(
            chip, simds=placement.simds, active=placement.active_units, clock=clock
        ).with_(**changes)
        count = placement.most_per_unit
        per_workgroup = max(1, len(streams.steps) // streams.workgroups)
        least = LEAST_ROUNDS * placement.resident + 1
        simulated = min(count, max(least, STEPS // per_workgroup))
        resident = min(placement.resident, simulated)
        interval = chip.coefficient(FAMILY, "dispatch") * placement.active_units
        unit = run(
            self.code,
            streams,
            machine,
            arrivals=profile.arrivals,
            template=np.arange(simulated, dtype=np.int32) % streams.workgroups,
            begins=np.arange(simulated) * interval,
            resident=resident,
            events=events,
        )
        clocks = unit.clocks + (count - simulated) * pace(unit.finish, resident)
        clocks = max(clocks * profile.work, float(unit.finish[:resident].max()))
        bounds = _bounds(unit, placement.simds, clock, count / simulated * profile.work)
        busy = max(clocks / clock, *bounds.values())
        if traffic is not None:
            rates = (
                ("L2", traffic.l2, chip.l2_bandwidth),
                ("memory", traffic.hbm, chip.hbm),
                ("atomics", traffic.atomics, clock / chip.coefficient(FAMILY, "atomic")),
            )
            for name, amount, rate in rates:
                if rate:
                    bounds[name] = amount / rate
                    busy = max(busy, bounds[name])
        bounds["launch"] = chip.launch
        bounds["latency"] = max(0.0, busy - max(bounds.values()))
        return LaunchTiming(
            placement, chip, unit, clocks, clock, chip.launch, chip.launch + busy, bounds
        )


def _bounds(unit: Run, simds: int, clock: float, scale: float) -> dict[str, float]:
    """Seconds of work per resource of the SM, for all its workgroups."""
    of_simds = {"vector", "matrix", "transcendental", "issue"}
    return {
        name: clocks / (simds if name in of_simds else 1) * scale / clock
        for name, clocks in unit.busy.items()
        if name != "memory-side cache"
    }


__all__ = ["SmSimulation"]
