"""The registry of fields a device may have: `fields.csv`, one row per field.

A field belongs to a group (its table in a device file) and has a unit its values
convert to. Latencies are in clocks or in time, whichever was published.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wavecast.arch.units import dimension
from wavecast.errors import UnknownName


@dataclass(frozen=True, slots=True)
class DeviceField:
    """What a field of a device means, the unit it is kept in, and the group it belongs to."""

    name: str
    group: str
    unit: str
    meaning: str

    def accepts(self, unit: str) -> bool:
        """Whether a value in `unit` is a value of this field."""
        if self.group == "latency" and unit in ("clk", "ns", "us"):
            return True
        return dimension(unit) == dimension(self.unit)


@cache
def fields() -> dict[str, DeviceField]:
    """Every field by name, in display order."""
    path = Path(__file__).with_name("fields.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return {row["name"]: DeviceField(**row) for row in csv.DictReader(file)}


def field(name: str) -> DeviceField:
    """The field called `name`. Raises UnknownName with the nearest known ones."""
    try:
        return fields()[name]
    except KeyError:
        raise UnknownName("device field", name, fields()) from None
