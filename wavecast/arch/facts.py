"""The facts of one device, looked up by field name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from wavecast.arch.fields import field, fields
from wavecast.arch.quantity import Quantity, Value
from wavecast.errors import MissingFact


@dataclass(frozen=True, slots=True)
class Facts:
    """Fields of the device called `device`. `mapping` holds those its files name."""

    device: str
    mapping: Mapping[str, Quantity]

    def quantity(self, name: str) -> Quantity:
        """The field `name`; its value is None where the device file says it is missing.

        Raises UnknownName when no device has such a field, MissingFact when this one lacks it.
        """
        quantity = self.mapping.get(name)
        if quantity is None:
            field(name)
            raise MissingFact(
                f"{self.device} has no field {name}", hint="give one with --arch-file"
            )
        return quantity

    def find(self, name: str) -> Quantity | None:
        """The field `name` if it has a value, else None. Raises UnknownName as `quantity`."""
        quantity = self.mapping.get(name)
        if quantity is None:
            field(name)
            return None
        return None if quantity.value is None else quantity

    def value(self, name: str) -> Value:
        """The value of `name` in its unit. Raises MissingFact when there is none."""
        quantity = self.quantity(name)
        if quantity.value is None:
            hint = f"give one with --arch-file; {quantity.note}" if quantity.note else ""
            raise MissingFact(f"no value of {name} is known for {self.device}", hint=hint)
        return quantity.value

    def integer(self, name: str, unit: str = "") -> int:
        """The value of `name` as a whole number, in `unit` if given. Raises as `value`."""
        self.value(name)
        quantity = self.quantity(name)
        return int((quantity.to(unit) if unit else quantity).number)

    def number(self, name: str) -> float:
        """The value of `name` in the unit of its file. Raises as `value`."""
        self.value(name)
        return self.quantity(name).number

    def names(self) -> Iterator[str]:
        """The fields this device has, in display order."""
        return (name for name in fields() if name in self.mapping)

    def overridden(self, *names: str) -> bool:
        """Whether a file of the user set one of the fields."""
        return any(
            name in self.mapping and self.mapping[name].status == "override" for name in names
        )
