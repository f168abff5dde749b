"""The registry of fields a device may have: `fields.csv`, one row per field.

A field belongs to a group (its table in a device file) and has a unit its values convert to.
Latencies are in clocks or in time, whichever was published. `least` and `most` bound the values
that the models are made for, in the unit of the field, some orders of magnitude around those of
GPUs; `whole` fields are counts.
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
    """What a field of a device means, its unit, the group it belongs to, and the bounds of its
    values: from `least` to `most` in that unit, integers where it is `whole`. Fields of text and
    flags have none."""

    name: str
    group: str
    unit: str
    least: float | None
    most: float | None
    whole: bool
    meaning: str

    def accepts(self, unit: str) -> bool:
        """Whether a value in `unit` is a value of this field."""
        if self.group == "latency" and unit in ("clk", "ns", "us"):
            return True
        return dimension(unit) == dimension(self.unit)

    def why_refused(self, value: float) -> str:
        """Why `value`, in the unit of the field, cannot be a value of it; "" for one that can."""
        if self.least is None or self.most is None:
            return f"must be {'true or false' if self.unit == 'flag' else self.unit}"
        if not self.least <= value <= self.most:  # NaN too
            return f"must be from {self.least:,g} to {self.most:,g} {self.unit}"
        if self.whole and value != int(value):
            return f"must be a whole number of {self.unit}"
        return ""


@cache
def fields() -> dict[str, DeviceField]:
    """Every field by name, in display order."""
    path = Path(__file__).with_name("fields.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return {row["name"]: _field(row) for row in csv.DictReader(file)}


def field(name: str) -> DeviceField:
    """The field called `name`. Raises UnknownName with the nearest known ones."""
    try:
        return fields()[name]
    except KeyError:
        raise UnknownName("device field", name, fields()) from None


def _field(row: dict[str, str]) -> DeviceField:
    least, most = (float(row[name]) if row[name] else None for name in ("least", "most"))
    return DeviceField(
        row["name"], row["group"], row["unit"], least, most, row["whole"] == "yes", row["meaning"]
    )
