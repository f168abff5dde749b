"""Fields of a configuration, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wavecast.errors import UsageError

Values = Mapping[str, Any]
TEXT_CONFIGS: Final = ("thinker_config", "text_config")
"""Where a configuration of several kinds of input has that of its text; Qwen-Omni has both, one in
the other. The thinker is what engines serve for text."""
_LARGEST = 1 << 31
_DEEPEST = 1 << 14
"""Most layers of a model."""


class Fields:
    """The values of one configuration; a missing or absurd one is named. `defaults` are what the
    class of its type in transformers has for a field that is absent. `names_read` are the fields
    that were asked for."""

    def __init__(self, name: str, values: Values, defaults: Values | None = None) -> None:
        self.name, self.values, self.defaults = name, values, defaults or {}
        self.names_read: set[str] = set()

    def get(self, name: str) -> Any:
        """The value of a field, or that of its class where it is absent; None without either."""
        self.names_read.add(name)
        return self.values[name] if name in self.values else self.defaults.get(name)

    def settle(self, *names: str) -> None:
        """Fields that do not matter, because others that were read decide."""
        self.names_read.update(names)

    def integer(
        self, *names: str, default: int | None = None, least: int = 1, most: int = _LARGEST - 1
    ) -> int:
        """The value of the names of one field that the configuration has. Raises UsageError."""
        self.names_read.update(names)
        values = {
            name: self._whole(name, value, least, most)
            for name in names
            if (value := self.values.get(name)) is not None
        }
        if len(set(values.values())) > 1:
            both = " and ".join(f"{name} is {value}" for name, value in values.items())
            raise UsageError(f"{self.name}: {both}: one field with two values")
        if not values and default is None:
            raise UsageError(f"{self.name}: no field {' or '.join(names)}")
        return next(iter(values.values()), default)  # type: ignore[return-value]

    def optional(self, *names: str, least: int = 1) -> int | None:
        """The first of `names` that the configuration has, None for null; that of its class where
        all are absent. Raises UsageError."""
        self.names_read.update(names)
        present = [name for name in names if name in self.values] or names
        value = self.get(present[0])
        return None if value is None else self._whole(present[0], value, least, _LARGEST - 1)

    def switch(self, name: str) -> bool:
        """A field that is true or false; absent, that of its class. Raises UsageError."""
        value = self.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise UsageError(f"{self.name}: {name} is {value!r}, not true or false")
        return value

    @property
    def depth(self) -> int:
        """Layers. Raises UsageError."""
        return self.integer("num_hidden_layers", "n_layer", most=_DEEPEST)

    def list(self, name: str, length: int, *, longer: bool = False) -> tuple[str, ...] | None:
        """A list with an entry per layer; if it may be `longer`, its first entries. Raises
        UsageError for another length."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise UsageError(f"{self.name}: {name} is {value!r}, not a list")
        if longer:
            value = value[:length]
        if len(value) != length:
            raise UsageError(f"{self.name}: {name} has {len(value)} entries for {length} layers")
        return tuple(map(str, value))

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """A list of whole numbers. Raises UsageError."""
        value = self.get(name)
        if value is None:
            return None
        whole = isinstance(value, list) and all(type(entry) is int for entry in value)
        if not whole:
            raise UsageError(f"{self.name}: {name} is {value!r}, not a list of numbers")
        return tuple(value)

    def _whole(self, name: str, value: Any, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise UsageError(f"{self.name}: {name} is {value!r}, not a whole number")
        if not least <= value <= most:
            raise UsageError(f"{self.name}: {name} is {value}, not {least} to {most}")
        return value


__all__ = ["Fields", "Values"]
