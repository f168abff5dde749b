"""How much a search may try."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wavecast.errors import UsageError

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Budget:
    """Configurations or seconds per autotuned call and target; None is without limit."""

    configurations: int | None = None
    seconds: float | None = None

    @staticmethod
    def parse(text: str) -> Budget:
        """`300` configurations, or `90s`, `10m`, `1h`. Raises UsageError."""
        match = re.fullmatch(r"(\d+)([smh]?)", text.strip())
        if match is None or int(match[1]) == 0:
            raise UsageError(
                f"{text!r} is no budget",
                hint="a number of configurations, or a time: 300, 90s, 10m",
            )
        if match[2]:
            return Budget(seconds=int(match[1]) * _SECONDS[match[2]])
        return Budget(configurations=int(match[1]))

    def part(self, count: int) -> Budget:
        """What one of `count` searches at once may try of it."""
        if self.configurations is None:
            return self
        return Budget(configurations=-(-self.configurations // count))


__all__ = ["Budget"]
