"""The state of a search: results by configuration, and the time each configuration is expected to
have.

An estimate from code models no cache; an executed sample does. The ratio of a sample to the
estimate of the same configuration corrects the estimates of all configurations with the same tile
(the kernel's own constants). Estimates of other tiles stay uncorrected. They are too low rather
than too high, so the search tries and simulates every tile that may be fast.
"""

from __future__ import annotations

import math

from wavecast.compile.configuration import Configuration
from wavecast.tuning.records import Result

Tile = tuple[tuple[str, object], ...]


class SearchState:
    """Results by configuration, one per device (`results`), and the `scores` of a search: the
    geometric mean over devices of the expected time in seconds, `inf` for a configuration that
    cannot run."""

    def __init__(self, devices: int) -> None:
        self.results: dict[Configuration, tuple[Result, ...]] = {}
        self.scores: dict[Configuration, float] = {}
        self._devices = devices
        self._estimates: dict[Configuration, tuple[Result, ...]] = {}
        self._corrections: dict[tuple[int, Tile], float] = {}

    def add(self, configuration: Configuration, results: tuple[Result, ...]) -> None:
        """Add the results of a configuration. Those of a sample follow the estimate."""
        self.results[configuration] = results
        estimates = self._estimates.setdefault(configuration, results)
        if estimates is results:
            self.scores[configuration] = self._score(configuration)
            return
        for device, (estimate, result) in enumerate(zip(estimates, results, strict=True)):
            if _is_sampled(result) and not _is_sampled(estimate) and estimate.seconds:
                ratio = (result.seconds or math.inf) / estimate.seconds
                self._corrections[device, configuration.tile] = ratio
        for entry in self.results:
            self.scores[entry] = self._score(entry)

    def best(self) -> Configuration | None:
        """The best configuration on the first device, None where nothing can run."""
        able = [c for c, results in self.results.items() if results[0].seconds is not None]
        return min(able, key=lambda c: self.results[c][0].rank, default=None)

    def candidates(self, count: int) -> list[Configuration]:
        """The next `count` configurations per device to simulate: those expected to be faster than
        every sample, the best of each tile first."""
        selection: dict[Configuration, None] = {}
        for device in range(self._devices):
            sampled = [
                r[device].seconds or math.inf
                for r in self.results.values()
                if _is_sampled(r[device])
            ]
            limit = min(sampled, default=math.inf)
            remaining = sorted(
                (seconds, number, configuration)
                for number, (configuration, results) in enumerate(self.results.items())
                if not _is_sampled(results[device]) and not results[device].reason
                if (seconds := self._expected_seconds(configuration, device)) < limit
            )
            best_of_tile: dict[Tile, Configuration] = {}
            for _, _, configuration in remaining:
                best_of_tile.setdefault(configuration.tile, configuration)
            order = dict.fromkeys([*best_of_tile.values(), *(c for _, _, c in remaining)])
            selection |= dict.fromkeys(list(order)[:count])
        return list(selection)

    def _score(self, configuration: Configuration) -> float:
        seconds = [self._expected_seconds(configuration, device) for device in range(self._devices)]
        if math.inf in seconds:
            return math.inf
        return math.prod(seconds) ** (1 / len(seconds))

    def _expected_seconds(self, configuration: Configuration, device: int) -> float:
        """Expected seconds on one device: the sample's, else the corrected estimate."""
        result = self.results[configuration][device]
        if result.seconds is None:
            return math.inf
        if _is_sampled(result):
            return result.seconds
        return result.seconds * self._corrections.get((device, configuration.tile), 1.0)


def _is_sampled(result: Result) -> bool:
    return result.fidelity == "executed"


__all__ = ["SearchState"]
