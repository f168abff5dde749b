"""A number about a device, with its unit, where it is from, and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wavecast.arch.units import convert

Value = float | int | str | bool

STATUSES = {
    "spec": "published by the vendor",
    "compiler": "from the vendor's compiler or runtime",
    "measured": "measured on the hardware",
    "secondary": "printed by a third party",
    "derived": "computed from other facts",
    "guessed": "no source; a judgement",
    "conflict": "published values differ; the choice and the others are shown",
    "missing": "no value is known",
    "override": "set by a file the user gave",
}
"""Every status a fact may have, and what it means."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another published value of a fact, in the unit of the fact."""

    value: Value
    source: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One fact. `value` is None exactly when nobody has published one (status `missing`).

    `unit` is a unit of `wavecast.arch.units`, a counted noun (`CU`, `waves`), `text` or `flag`.
    `sources` are citation keys (`wavecast.arch.citations`) or the name of the user's file. `note`
    qualifies the value or says why it was chosen over `alternatives`.
    """

    value: Value | None
    unit: str
    status: str
    sources: tuple[str, ...]
    note: str = ""
    alternatives: tuple[Alternative, ...] = ()

    @property
    def source(self) -> str:
        """The citation keys as text."""
        return ", ".join(self.sources)

    @property
    def number(self) -> float:
        """The value as a float. Raises TypeError for text, flags, and missing values."""
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise TypeError(f"{self.value!r} is not a number")
        return float(self.value)

    def to(self, unit: str) -> Quantity:
        """The same fact in `unit`. Raises ValueError when the units do not convert."""
        return replace(
            self,
            value=convert(self.number, self.unit, unit),
            unit=unit,
            alternatives=tuple(
                replace(other, value=convert(float(other.value), self.unit, unit))
                for other in self.alternatives
            ),
        )
