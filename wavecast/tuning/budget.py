"""The budget of a search."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wavecast.errors import UsageError

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """The most configurations or seconds per autotuned call and target; None: unlimited."""

    configurations: int | None = None
    seconds: float | None = None

    @staticmethod
    def parse(text: str) -> SearchBudget:
        """`300` configurations, or `90s`, `10m`, `1h`. Raises UsageError."""
        match = re.fullmatch(r"(\d+)([smh]?)", text.strip())
        if match is None or int(match[1]) == 0:
            raise UsageError(
                f"invalid budget {text!r}",
                hint="a number of configurations, or a time: 300, 90s, 10m",
            )
        if match[2]:
            return SearchBudget(seconds=int(match[1]) * _SECONDS[match[2]])
        return SearchBudget(configurations=int(match[1]))

    def part(self, count: int) -> SearchBudget:
        """The budget of each of `count` searches that run at once."""
        if self.configurations is None:
            return self
        return SearchBudget(configurations=-(-self.configurations // count))

    def sequential(self, count: int) -> SearchBudget:
        """The budget of each of `count` searches that run one after the other and know the results
        of those before."""
        if self.seconds is None:
            return self
        return SearchBudget(seconds=self.seconds / count)


__all__ = ["SearchBudget"]
