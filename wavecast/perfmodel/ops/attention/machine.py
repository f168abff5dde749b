"""What attention needs to know of a chip: rates per clock, the clock, bandwidth, coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.demand import Amount
from wavecast.perfmodel.power import sustained_clock

FAMILY = "attention"


@dataclass(frozen=True, slots=True)
class AttentionRates:
    """A chip, what a CU finishes per clock (`lanes` of arithmetic in single precision, `selects` of
    comparisons, selections, moves and integers, `exponentials`), and the coefficients `k`."""

    chip: Chip
    lanes: float
    selects: float
    exponentials: float
    k: Mapping[str, float]

    @staticmethod
    def of(device: Device, trial: Mapping[str, float] | None = None) -> AttentionRates:
        """The rates of a device; `trial` replaces coefficients. Raises MissingFact."""
        chip = Chip.of(device)
        constants = coefficients.values(FAMILY, device)
        if device.vendor == "nvidia":
            lanes, selects = chip.vector_flops / 2, constants["selects"]
            exponentials = constants["exponentials"]
        else:
            per_wave = chip.simds * chip.lanes
            lanes = selects = per_wave / device.cost("valu").issue_cycles
            exponentials = per_wave / device.cost("trans").issue_cycles
        k = {**constants, **trial} if trial else constants
        return AttentionRates(chip, lanes, selects, exponentials, k)

    def clock(self, dtype: str, matrix: float, vector: float, busy: Amount = 1.0) -> Amount:
        """Clock in Hz under matrix and vector work that take these shares of the time of `busy`
        (0 to 1) of the CUs."""
        activity = (matrix + self.k["vector_power"] * vector) * busy
        return sustained_clock(self.chip, dtype, activity)

    def vector_clocks(self, operations: float, exponentials: float = 1.0) -> float:
        """Clocks of a CU per score: `exponentials`, and `operations` of single lanes."""
        return operations / self.lanes + exponentials / self.exponentials

    def coefficient(self, prefix: str, name: str, otherwise: str, suffix: str = "") -> float:
        """`prefix_name_suffix`, or `prefix_otherwise_suffix` where nobody measured `name`.

        Raises MissingFact where the table has neither for the device.
        """
        keys = ["_".join(filter(None, (prefix, part, suffix))) for part in (name, otherwise)]
        for key in keys:
            if key in self.k:
                return self.k[key]
        raise MissingFact(f"{FAMILY}.{keys[-1]} is not known for {self.chip.device.id}")


@dataclass(frozen=True, slots=True)
class TimeBreakdown:
    """The time of one implementation: seconds in all, per resource (`parts`, which may overlap), as
    a sum of `shares`, and what it assumes."""

    seconds: float
    parts: Mapping[str, float]
    shares: Mapping[str, float]
    assumed: Mapping[str, object]


__all__ = ["FAMILY", "AttentionRates", "TimeBreakdown"]
