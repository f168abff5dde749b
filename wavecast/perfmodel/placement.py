"""Where the workgroups of a launch run: dies, compute units, and which of them run first.

Dies (XCDs) take workgroups round-robin: workgroup w runs on die w mod dies (AMD, "CDNA 3 white
paper", and `tl.program_id` remapping guides for MI300X). Within a die workgroups go to the units
round-robin, one at a time, until registers, LDS or wave slots are full; that they go one at a time
is an assumption (docs/hardware.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from wavecast.analyze.result import Occupancy
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.errors import Unpredictable


@dataclass(frozen=True, slots=True)
class LaunchPlacement:
    """The workgroups of a launch on a device.

    The launch has `workgroups` workgroups of `waves` waves with `wave_lanes` lanes each. A
    workgroup runs on one `unit`: `CU`, or `WGP` for RDNA kernels in WGP mode. The device has
    `units` such units of `simds` SIMDs on `dies` dies; `resident` workgroups fit one unit.
    """

    workgroups: int
    waves: int
    wave_lanes: int
    unit: str
    resident: int
    units: int
    dies: int
    simds: int

    @staticmethod
    def of(
        launch: Launch, occupancy: Occupancy, device: Device, wave_lanes: int
    ) -> LaunchPlacement:
        """The placement of a launch whose kernel has an occupancy on a device.

        Raises Unpredictable without a grid and for a workgroup that does not fit the device.
        """
        if not all(launch.grid):
            raise Unpredictable("the grid of the launch is not known (give --grid)")
        limits = device.limits(wave_lanes, cu_mode=occupancy.unit == "CU")
        waves = occupancy.waves_per_workgroup
        if not occupancy.fits or waves > -(-limits.max_workgroup_threads // wave_lanes):
            raise Unpredictable(f"a workgroup of {waves} waves does not fit {device.id}")
        return LaunchPlacement(
            workgroups=math.prod(launch.grid),
            waves=waves,
            wave_lanes=wave_lanes,
            unit=limits.unit,
            resident=max(1, occupancy.workgroups),
            units=limits.units or device.compute_units,
            dies=device.dies,
            simds=limits.simds,
        )

    def on(self, device: Device) -> LaunchPlacement:
        """The same workgroups on another device of the target, as many resident per unit."""
        limits = device.limits(self.wave_lanes, cu_mode=self.unit == "CU")
        units = limits.units or device.compute_units
        return replace(self, units=units, dies=device.dies, simds=limits.simds)

    @property
    def work_items(self) -> int:
        """Lanes of all waves of the launch."""
        return self.workgroups * self.waves * self.wave_lanes

    @property
    def units_per_die(self) -> int:
        """Units of one die."""
        return max(1, self.units // self.dies)

    @property
    def active_units(self) -> int:
        """Units that get a workgroup."""
        return min(self.units, self.workgroups)

    @property
    def most_per_unit(self) -> int:
        """Workgroups of the unit that gets the most."""
        return -(-len(self.of_die(0)) // self.units_per_die)

    def of_die(self, die: int) -> range:
        """Numbers of the workgroups of a die, in order."""
        return range(die, self.workgroups, self.dies)

    def unit_of(self, number: int) -> int:
        """The unit, within its die, that takes a workgroup of the first round."""
        return number // self.dies % self.units_per_die

    def first_round(self) -> range:
        """Numbers of the workgroups that start at once on all dies."""
        return range(min(self.workgroups, self.dies * self.units_per_die * self.resident))

    def first_round_of_die(self) -> range:
        """Numbers of the workgroups that start at once on the first die."""
        return self.of_die(0)[: self.units_per_die * self.resident]

    def first_round_of_unit(self) -> tuple[int, ...]:
        """Numbers of the workgroups that start at once on the first unit of the first die."""
        return tuple(number for number in self.first_round_of_die() if self.unit_of(number) == 0)


__all__ = ["LaunchPlacement"]
