"""How configurations stand: what was found, and what their times are taken to be.

An estimate from code sees no cache; an executed sample does. What a sample makes of an estimate is
taken to hold for all configurations with the same tile (the kernel's own constants); the others are
taken at their estimates, which promise too much rather than too little, so that searches and
simulations go to tiles that may be fast until a sample says they are not.
"""

from __future__ import annotations

import math

from wavecast.kernels.configuration import Configuration
from wavecast.tune.records import Result

Tile = tuple[tuple[str, object], ...]


class Standing:
    """Results by configuration, one per device (`known`), and `scores`: the geometric mean over
    devices of the times they are taken to have, in seconds, `inf` for what cannot run."""

    def __init__(self, devices: int) -> None:
        self.known: dict[Configuration, tuple[Result, ...]] = {}
        self.scores: dict[Configuration, float] = {}
        self._devices = devices
        self._estimates: dict[Configuration, tuple[Result, ...]] = {}
        self._ratios: dict[tuple[int, Tile], float] = {}

    def learn(self, configuration: Configuration, results: tuple[Result, ...]) -> None:
        """Take in results; a sample's after the estimate of the same configuration."""
        self.known[configuration] = results
        before = self._estimates.setdefault(configuration, results)
        if before is results:
            self.scores[configuration] = self._score(configuration)
            return
        for place, (estimate, result) in enumerate(zip(before, results, strict=True)):
            if _sampled(result) and not _sampled(estimate) and estimate.seconds:
                ratio = (result.seconds or math.inf) / estimate.seconds
                self._ratios[place, configuration.tile] = ratio
        for known in self.known:
            self.scores[known] = self._score(known)

    def best(self) -> Configuration | None:
        """The first on the first device, None where nothing can run."""
        able = [c for c, results in self.known.items() if results[0].seconds is not None]
        return min(able, key=lambda c: self.known[c][0].rank, default=None)

    def promising(self, count: int) -> list[Configuration]:
        """The next `count` of each device to simulate: those that are taken to be faster than all
        that were, the best of every tile before others of the same."""
        found: dict[Configuration, None] = {}
        for place in range(self._devices):
            sampled = [
                r[place].seconds or math.inf for r in self.known.values() if _sampled(r[place])
            ]
            limit = min(sampled, default=math.inf)
            left = sorted(
                (seconds, number, configuration)
                for number, (configuration, results) in enumerate(self.known.items())
                if not _sampled(results[place]) and not results[place].reason
                if (seconds := self._believed(configuration, place)) < limit
            )
            first: dict[Tile, Configuration] = {}
            for _, _, configuration in left:
                first.setdefault(configuration.tile, configuration)
            order = dict.fromkeys([*first.values(), *(c for _, _, c in left)])
            found |= dict.fromkeys(list(order)[:count])
        return list(found)

    def _score(self, configuration: Configuration) -> float:
        seconds = [self._believed(configuration, place) for place in range(self._devices)]
        if math.inf in seconds:
            return math.inf
        return math.prod(seconds) ** (1 / len(seconds))

    def _believed(self, configuration: Configuration, place: int) -> float:
        result = self.known[configuration][place]
        if result.seconds is None:
            return math.inf
        if _sampled(result):
            return result.seconds
        return result.seconds * self._ratios.get((place, configuration.tile), 1.0)


def _sampled(result: Result) -> bool:
    return result.fidelity == "executed"


__all__ = ["Standing"]
