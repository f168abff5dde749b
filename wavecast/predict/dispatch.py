"""Where workgroups go: dies, compute units, and which run first.

Dies take workgroups in turn: workgroup w goes to die w mod dies (AMD, "CDNA 3 white paper", and
`tl.program_id` remapping guides for MI300X). On a die, workgroups fill compute units in turn as
long as registers, LDS and wave slots last; that the turn is one workgroup per unit is an assumption
(docs/hardware.md).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The first round of a launch. `resident` workgroups fit a compute unit."""

    workgroups: int
    dies: int
    units: int
    """Compute units of one die."""
    resident: int

    def of_die(self, die: int = 0) -> range:
        """Numbers of the workgroups a die gets, in order."""
        return range(die, self.workgroups, self.dies)

    def first_round(self) -> range:
        """Numbers of the workgroups that run at once at the start on the first die."""
        return self.of_die()[: self.units * self.resident]

    def beside(self) -> range:
        """Numbers of the workgroups that run at once at the start, on all dies."""
        return range(min(self.workgroups, self.dies * self.units * self.resident))

    def unit_of(self, number: int) -> int:
        """The compute unit, within its die, that takes a workgroup of the first round."""
        return number // self.dies % self.units

    def busiest(self) -> tuple[int, ...]:
        """Workgroups of the first round on the unit that gets the most: the first unit."""
        return tuple(number for number in self.first_round() if self.unit_of(number) == 0)

    @property
    def rounds(self) -> float:
        """How often the first compute unit is filled before the launch ends: 1 or more."""
        on_die = len(self.of_die())
        return max(1.0, -(-on_die // self.units) / self.resident)


__all__ = ["Dispatch"]
