"""What hardware counters of a profile say about kernels, next to the least bytes of operators.

`counters.toml` has the figures. Counters of several launches of a kernel are added up first; shares
that a profiler gives are means over the launches, weighted by their times.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Final

from wavecast.profiles.predicted import PredictedProfile
from wavecast.profiles.profile import Profile

READ, WRITTEN, L2_HIT = "memory read", "memory written", "L2 hit"
CONFLICTS, VECTOR = "LDS conflicts", "vector instructions of a wave"
OCCUPANCY, CLOCK = "occupancy", "clock"
_SUM: Final = "_sum"


class CounterUnit(Enum):
    """What a figure counts."""

    SHARE = "share"
    BYTES = "bytes"
    COUNT = "count"
    CLOCK = "GHz"


@dataclass(frozen=True, slots=True)
class CounterFigure:
    """A row of `counters.toml`."""

    name: str
    unit: CounterUnit
    over: Mapping[str, float] = field(default_factory=dict)
    under: Mapping[str, float] = field(default_factory=dict)
    metrics: Sequence[str] = ()


@dataclass(slots=True)
class CountedLaunches:
    """Counters of some launches, added up; `nanoseconds` and `launches` of those that have any."""

    launches: int = 0
    nanoseconds: int = 0
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    weighted: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, counters: Mapping[str, float], nanoseconds: int) -> None:
        """Count one more launch."""
        self.launches += 1
        self.nanoseconds += nanoseconds
        for name, value in counters.items():
            plain = name.removesuffix(_SUM)
            if plain != name or name + _SUM not in counters:
                self.sums[plain] += value
            self.weighted[plain] += value * nanoseconds

    def figures(self) -> dict[str, float]:
        """The figures that the counters give: shares from 0 to 1, bytes of all launches, clocks
        in GHz."""
        gaps: dict[str, float] = {}
        for figure in known_figures():
            metric = next((name for name in figure.metrics if name in self.weighted), "")
            if metric and self.nanoseconds:
                whole = 100 if figure.unit is CounterUnit.SHARE else 1
                gaps[figure.name] = self.weighted[metric] / self.nanoseconds / whole
            elif figure.over and all(name in self.sums for name in (*figure.over, *figure.under)):
                over, under = self._total(figure.over), self._total(figure.under)
                if not figure.under or under:
                    gaps[figure.name] = over / (under if figure.under else 1)
        return gaps

    def _total(self, terms: Mapping[str, float]) -> float:
        return sum(factor * self.sums[name] for name, factor in terms.items())


@dataclass(frozen=True, slots=True)
class CountedOperator:
    """Figures of the launches of an operator that have counters; `least` are the bytes that its
    predicted work moves at least, None without a prediction."""

    row: int
    launches: int
    figures: Mapping[str, float]
    least: float | None

    @property
    def moved(self) -> float | None:
        """Bytes that memory moved; None without its counters."""
        if READ in self.figures and WRITTEN in self.figures:
            return self.figures[READ] + self.figures[WRITTEN]
        return None


@cache
def known_figures() -> tuple[CounterFigure, ...]:
    """The rows of `counters.toml`."""
    text = Path(__file__).with_name("counters.toml").read_text(encoding="utf-8")
    return tuple(
        CounterFigure(**{**row, "unit": CounterUnit(row["unit"])})
        for row in tomllib.loads(text)["figure"]
    )


def by_kernel(profile: Profile) -> dict[int, CountedLaunches]:
    """Counters by the number of the kernel."""
    return _group_launches(profile, profile.launches.info)


def by_operator(profile: Profile, predicted: PredictedProfile) -> list[CountedOperator]:
    """Figures of every operator with counters, in the order of `predicted.operators`."""
    by_row = _group_launches(profile, predicted.rows)
    launches: defaultdict[int, int] = defaultdict(int)
    for row in predicted.rows:
        launches[row] += 1
    return [
        CountedOperator(
            row,
            counts.launches,
            counts.figures(),
            predicted.operators[row].bytes * counts.launches / launches[row]
            if predicted.operators[row].bytes
            else None,
        )
        for row, counts in sorted(by_row.items())
    ]


def _group_launches(profile: Profile, keys: Iterable[int]) -> dict[int, CountedLaunches]:
    groups: defaultdict[int, CountedLaunches] = defaultdict(CountedLaunches)
    if not profile.counters:
        return {}
    for number, key in enumerate(keys):
        counters = profile.counters.get(number)
        if counters:
            groups[key].add(counters, profile.launches.duration[number])
    return dict(groups)


__all__ = [
    "CLOCK",
    "CONFLICTS",
    "L2_HIT",
    "OCCUPANCY",
    "READ",
    "VECTOR",
    "WRITTEN",
    "CountedLaunches",
    "CountedOperator",
    "CounterFigure",
    "CounterUnit",
    "by_kernel",
    "by_operator",
    "known_figures",
]
