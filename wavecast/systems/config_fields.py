"""Fields of a configuration, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wavecast.errors import UsageError

Values = Mapping[str, Any]
_LARGEST = 1 << 31
_DEEPEST = 1 << 14
"""Most layers of a model."""


class Fields:
    """The values of one configuration; a missing or absurd one is named."""

    def __init__(self, name: str, values: Values) -> None:
        self.name, self.values = name, values

    def integer(
        self, *names: str, default: int | None = None, least: int = 1, most: int = _LARGEST - 1
    ) -> int:
        """The first of `names` that is there. Raises UsageError."""
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise UsageError(f"{self.name}: {name} is {value!r}, not a whole number")
            if not least <= value <= most:
                raise UsageError(f"{self.name}: {name} is {value}, not {least} to {most}")
            return value
        if default is None:
            raise UsageError(f"{self.name}: no field {' or '.join(names)}")
        return default

    @property
    def depth(self) -> int:
        """Layers. Raises UsageError."""
        return self.integer("num_hidden_layers", "n_layer", most=_DEEPEST)

    def list(self, name: str, length: int) -> tuple[str, ...] | None:
        """A list with an entry per layer. Raises UsageError for another length."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise UsageError(f"{self.name}: {name} is {value!r}, not a list")
        if len(value) != length:
            raise UsageError(f"{self.name}: {name} has {len(value)} entries for {length} layers")
        return tuple(map(str, value))


__all__ = ["Fields", "Values"]
