"""The time of a launch from an executed sample: one compute unit simulated, then the grid.

Dies take workgroups in turn and share them evenly among their compute units; the launch lasts as
long as the unit that gets the most:

    seconds = launch + clocks of ⌈⌈workgroups / dies⌉ / units of a die⌉ workgroups / clock

and never less than the whole traffic at the chip's bandwidths. Where that is too many workgroups to
simulate, the unit's steady pace (clocks from one workgroup's end to the next) stands for the rest.
The clock is the one the power limit allows at the activity found (`power`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wavecast.model.chip import Chip
from wavecast.model.cu.code import Code
from wavecast.model.cu.machine import Machine
from wavecast.model.cu.run import Run, run
from wavecast.model.cu.streams import Streams
from wavecast.model.memory import mall_bandwidth
from wavecast.model.power import sustained_clock

STEPS: Final = 3_000_000
"""Instructions a simulation replays at most."""
LEAST_ROUNDS: Final = 3
"""Rounds of resident workgroups that a pace is taken from."""


@dataclass(frozen=True, slots=True)
class Grid:
    """How a launch lies on a chip. `resident` workgroups of `waves` waves fit one unit of `simds`
    SIMDs; `units` such units (CUs, WGPs on RDNA) on `dies` dies."""

    workgroups: int
    waves: int
    resident: int
    units: int
    dies: int
    simds: int

    @property
    def busiest(self) -> int:
        """Workgroups of the unit that gets the most."""
        on_die = -(-self.workgroups // self.dies)
        return -(-on_die // max(1, self.units // self.dies))

    @property
    def active(self) -> int:
        """Units that get a workgroup."""
        return min(self.units, self.workgroups)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes the whole launch moves between levels: from the L2, the memory-side cache, memory.
    `written` are those of `mall` that dies write."""

    l2: float
    mall: float
    hbm: float
    written: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Launched:
    """A launch as the simulator takes it, whatever the source: `code`, `streams`, where they lie
    on the chip, what moves, and what the source leaves out (`notes`). `dtype` is that of the matrix
    products, for the power limit, "" without. `work` is how much a usual workgroup executes over
    what those of the streams do, which may be longer or shorter ones."""

    chip: Chip
    code: Code
    streams: Streams
    grid: Grid
    traffic: Traffic | None
    dtype: str
    notes: tuple[str, ...]
    work: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """A launch as simulated. `seconds` in all, `launch` of them before and after the work; `unit`
    is the run of the busiest unit, `clocks` its time with all its workgroups. `bounds` are the
    seconds each resource alone needs."""

    grid: Grid
    chip: Chip
    unit: Run
    clocks: float
    clock: float
    launch: float
    seconds: float
    bounds: Mapping[str, float]

    @property
    def limiter(self) -> str:
        """The bound that is largest."""
        return max(self.bounds, key=lambda name: self.bounds[name])


def timing(
    launched: Launched, *, clock: float | None = None, events: int = 0, **changes: float
) -> Timing:
    """Simulate a launch whose workgroups are like those of its streams, in turn, times `work`.

    `clock` (Hz) overrides the clock, `changes` fields of the `Machine` (what-if).
    """
    frequency = launched.chip.clock if clock is None else clock
    result = _simulated(launched, frequency, events, changes)
    if clock is None and launched.dtype:
        for _ in range(2):
            activity = result.unit.busy["matrix"] / launched.grid.simds / _span(result.unit)
            slower = sustained_clock(launched.chip, launched.dtype, min(1.0, activity))
            if abs(float(slower) / result.clock - 1) < 0.01:
                break
            result = _simulated(launched, float(slower), events, changes)
    return result


def _span(unit: Run) -> float:
    return max(unit.clocks, 1.0)


def _simulated(
    launched: Launched, clock: float, events: int, changes: Mapping[str, float]
) -> Timing:
    chip, code, streams = launched.chip, launched.code, launched.streams
    grid, traffic = launched.grid, launched.traffic
    machine = Machine.of(chip, simds=grid.simds, active=grid.active, clock=clock)
    machine = machine.with_(**changes) if changes else machine
    count = grid.busiest
    per_workgroup = max(1, len(streams.steps) // streams.workgroups)
    least = LEAST_ROUNDS * grid.resident + 1
    simulated = min(count, max(least, STEPS // per_workgroup))
    template = np.arange(simulated, dtype=np.int32) % streams.workgroups
    starts = max(machine.dispatch, machine.dispatch_wave * grid.waves)
    interval = starts * max(1, grid.active // grid.dies)
    begins = np.arange(simulated) * interval
    unit = run(
        code,
        streams,
        machine,
        template=template,
        begins=begins,
        resident=grid.resident,
        events=events,
    )
    clocks = unit.clocks + (count - simulated) * _pace(unit.finish, grid.resident)
    # the first ones are not the usual ones, but they run to their end
    clocks = max(clocks * launched.work, float(unit.finish[: grid.resident].max()))
    scale = count / simulated * launched.work
    bounds = _bounds(unit, grid, clock, scale)
    busy = max(clocks / clock, *bounds.values())
    if traffic is not None:
        for name, amount, rate in (
            ("L2", traffic.l2, chip.l2_bandwidth),
            (
                "memory-side cache",
                traffic.mall,
                mall_bandwidth(chip) if chip.mall_bandwidth else None,
            ),
            ("writes", traffic.written, chip.dies * chip.coefficient("cache", "die_writes")),
            ("memory", traffic.hbm, chip.hbm),
        ):
            if rate:
                bounds[name] = amount / rate
                busy = max(busy, bounds[name])
    launch = chip.launch
    bounds["launch"] = launch
    bounds["latency"] = max(0.0, busy - max(bounds.values()))
    return Timing(grid, chip, unit, clocks, clock, launch, launch + busy, bounds)


def _pace(finish: np.ndarray[Any, Any], resident: int) -> float:
    """Clocks from one workgroup's end to the next, in the steady state."""
    ends = np.sort(finish)
    if len(ends) <= resident:
        return float(ends[-1]) / len(ends)
    window = min(len(ends) - 1, max(resident, len(ends) // 2 // resident * resident))
    return float(ends[-1] - ends[-1 - window]) / window


def _bounds(unit: Run, grid: Grid, clock: float, scale: float) -> dict[str, float]:
    """Seconds of work per resource of the unit, for all its workgroups."""
    of_simds = {"vector", "matrix", "transcendental", "issue"}
    found = {}
    for name, clocks in unit.busy.items():
        share = clocks / grid.simds if name in of_simds else clocks
        if name == "issue":
            share *= unit.machine.period / (1 if unit.machine.shared_slot else 5)
        found[name] = share * scale / clock
    return found


__all__ = ["Grid", "Launched", "Timing", "Traffic", "timing"]
