"""The time of a launch profile: one compute unit simulated, then the grid.

Dies take workgroups round-robin and share them evenly among their units; the launch lasts as long
as the unit that gets the most:

    seconds = launch + clocks of ⌈⌈workgroups / dies⌉ / units of a die⌉ workgroups / clock

and never less than the whole traffic at the chip's bandwidths. Where that is too many workgroups to
simulate, the unit's steady pace (clocks from one workgroup's end to the next) gives the rest. The
clock is the one the power limit allows at the simulated activity (`power`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from wavecast.arch import Device
from wavecast.errors import UsageError
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.cu import code as c
from wavecast.perfmodel.cu.code import Code
from wavecast.perfmodel.cu.machine import ComputeUnit
from wavecast.perfmodel.cu.run import run
from wavecast.perfmodel.memory import mall_bandwidth
from wavecast.perfmodel.power import shape_energy, sustained_clock
from wavecast.perfmodel.profile import LaunchProfile, LevelTraffic
from wavecast.perfmodel.simulation.run import Run
from wavecast.perfmodel.simulation.timing import LEAST_ROUNDS, LaunchTiming, pace

STEPS: Final = 3_000_000
"""Instructions a simulation replays at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """A profile with the costs of its instructions on a chip (`code`), ready to be simulated."""

    chip: Chip
    code: Code
    profile: LaunchProfile

    @staticmethod
    def of(profile: LaunchProfile, device: Device) -> Simulation:
        """The simulation of a profile on a device of its target.

        On another device than the one it was made for, workgroups are placed again; the bytes per
        cache level stay those of the first. Raises UsageError for a device of another target,
        MissingFact where the device lacks a number.
        """
        if device.target != profile.target:
            raise UsageError(
                f"{profile.program.name} is code for {profile.target}, not for {device.id}",
                hint="compile it for that device",
            )
        placed = replace(profile, placement=profile.placement.on(device))
        code = Code.of(profile.program, device, profile.placement.wave_lanes)
        return Simulation(Chip.of(device), code, placed)

    def run(
        self,
        *,
        clock: float | None = None,
        events: int = 0,
        steps: int = STEPS,
        **changes: float,
    ) -> LaunchTiming:
        """Simulate the launch: its workgroups repeat those of the streams, times `work`.

        `clock` (Hz) overrides the clock, `changes` are fields of the `ComputeUnit` (what-if). At
        most `steps` instructions are replayed, but three rounds of workgroups. The result keeps the
        first `events` issues.
        """
        frequency = self.chip.clock if clock is None else clock
        result = _simulate(self, frequency, events, steps, changes)
        profile = self.profile
        if clock is None and profile.dtype:
            matrix = np.where(self.code.pipe == c.MATRIX, self.code.issue, 0.0)
            energy = shape_energy(profile.program, matrix * result.unit.counts, self.chip.device)
            for _ in range(2):
                busy = result.unit.busy["matrix"] / profile.placement.simds
                activity = min(1.0, busy / _span(result.unit)) * energy / profile.longest
                slower = float(sustained_clock(self.chip, profile.dtype, activity))
                if abs(slower / result.clock - 1) < 0.01:
                    break
                result = _simulate(self, slower, events, steps, changes)
        return result


def timing(
    profile: LaunchProfile,
    device: Device,
    *,
    events: int = 0,
    steps: int = STEPS,
    **changes: float,
) -> LaunchTiming:
    """Simulate a profile on a device. Arguments and errors as `Simulation.of` and `run`."""
    return Simulation.of(profile, device).run(events=events, steps=steps, **changes)


def _span(unit: Run) -> float:
    return max(unit.clocks, 1.0)


def _simulate(
    simulation: Simulation, clock: float, events: int, steps: int, changes: Mapping[str, float]
) -> LaunchTiming:
    chip, code, profile = simulation.chip, simulation.code, simulation.profile
    placement, streams, traffic = profile.placement, profile.streams, profile.traffic
    active = placement.active_units
    machine = ComputeUnit.of(chip, simds=placement.simds, active=active, clock=clock)
    dirty = _dirty(chip, traffic)
    if dirty:
        assert traffic is not None
        machine = machine.with_(evicted=1 - dirty / traffic.written)
    machine = machine.with_(**changes) if changes else machine
    count = placement.most_per_unit
    per_workgroup = max(1, len(streams.steps) // streams.workgroups)
    least = LEAST_ROUNDS * placement.resident + 1
    simulated = min(count, max(least, steps // per_workgroup))
    template = np.arange(simulated, dtype=np.int32) % streams.workgroups
    starts = max(machine.dispatch, machine.dispatch_wave * placement.waves)
    interval = starts * max(1, active // placement.dies)
    begins = np.arange(simulated) * interval
    unit = run(
        code,
        streams,
        machine,
        template=template,
        begins=begins,
        resident=placement.resident,
        events=events,
    )
    clocks = unit.clocks + (count - simulated) * pace(unit.finish, placement.resident)
    bounds = _bounds(unit, machine, placement.simds, clock, count / simulated)
    busiest = min(1.0, max(bounds.values()) * clock / max(clocks, 1.0))
    # workgroups that share a busy unit average out; waiting lasts for the longest
    longest = 1 + (profile.longest - 1) * (1 - busiest * (1 - 1 / count))
    # the simulated workgroups may be longer than the usual ones, and they run to their end
    part = profile.work * longest
    if simulated < streams.workgroups:
        executed = streams.executed
        part *= executed.mean() / max(1.0, executed[:simulated].mean())
    clocks = max(clocks * part, float(unit.finish[: placement.resident].max()))
    bounds = {name: seconds * part for name, seconds in bounds.items()}
    busy = max(clocks / clock, *bounds.values())
    if traffic is not None:
        for name, amount, rate in (
            ("L2", traffic.l2, chip.l2_bandwidth),
            (
                "memory-side cache",
                traffic.mall + traffic.updated * _update_traffic(chip),
                mall_bandwidth(chip) if chip.mall_bandwidth else None,
            ),
            ("writes", traffic.written, _write_rate(chip)),
            ("atomics", traffic.atomics, clock / chip.coefficient("kernel", "atomic")),
            ("memory", traffic.hbm, chip.hbm),
        ):
            if rate:
                bounds[name] = amount / rate
                busy = max(busy, bounds[name])
        busy = max(clocks / clock + dirty / _write_rate(chip), busy)
    launch = chip.launch
    bounds["launch"] = launch
    bounds["latency"] = max(0.0, busy - max(bounds.values()))
    return LaunchTiming(placement, chip, unit, clocks, clock, launch, launch + busy, bounds)


def _dirty(chip: Chip, traffic: LevelTraffic | None) -> float:
    """Bytes that the L2s of several dies write back when a launch ends, since no die sees the L2 of
    another. What exceeds the L2 was evicted before."""
    if traffic is None or chip.dies == 1:
        return 0.0
    return min(traffic.updated, chip.l2_bytes * chip.coefficient("cache", "dirty_share"))


def _update_traffic(chip: Chip) -> float:
    return chip.coefficient("cache", "update_traffic") if chip.dies > 1 else 0.0


def _write_rate(chip: Chip) -> float:
    """Bytes per second that all dies write."""
    return chip.dies * chip.coefficient("cache", "die_writes")


def _bounds(
    unit: Run, machine: ComputeUnit, simds: int, clock: float, scale: float
) -> dict[str, float]:
    """Seconds of work per resource of the unit, for all its workgroups."""
    of_simds = {"vector", "matrix", "transcendental", "issue"}
    bounds = {}
    for name, clocks in unit.busy.items():
        share = clocks / simds if name in of_simds else clocks
        if name == "issue":
            share *= machine.period / (1 if machine.shared_slot else 5)
        bounds[name] = share * scale / clock
    return bounds


__all__ = ["Simulation", "timing"]
