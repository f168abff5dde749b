"""Search strategies: which configurations to try next, given the scores so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Final

from wavecast.compile.configuration import Configuration
from wavecast.errors import UnknownName
from wavecast.tuning.space import SearchSpace

BATCH: Final = 16
_ELITE: Final = 8
_SEEDS: Final = 3
"""Batches of random configurations that an evolution starts with."""
_ATTEMPTS: Final = 400
"""Proposals for one batch before the search ends because all of them are known."""

Scores = Mapping[Configuration, float]
"""Seconds by tried configuration, `inf` for one that cannot run. Grows between batches."""

Strategy = Callable[[SearchSpace, Scores, Random], Iterator[Sequence[Configuration]]]
"""Yields batches to try. The scores of a batch are known before the next one is requested."""


def exhaustive(
    space: SearchSpace, scores: Scores, random: Random
) -> Iterator[Sequence[Configuration]]:
    """The autotuner's own configurations, then the whole space in order."""
    del random
    yield [configuration for configuration in space.own if configuration not in scores]
    batch = []
    for configuration in space.combinations():
        if configuration not in scores:
            batch.append(configuration)
        if len(batch) == BATCH:
            yield batch
            batch = []
    yield batch


def random_search(
    space: SearchSpace, scores: Scores, random: Random
) -> Iterator[Sequence[Configuration]]:
    """The autotuner's own configurations, then random configurations of the space."""
    yield [configuration for configuration in space.own if configuration not in scores]
    yield from _batches(space, scores, lambda: _random(space, random))


def evolution(
    space: SearchSpace, scores: Scores, random: Random
) -> Iterator[Sequence[Configuration]]:
    """The autotuner's own configurations and some random ones, then mutations of the best so far:
    mostly one axis by one step, sometimes a crossover of two, rarely a random configuration."""
    yield [configuration for configuration in space.own if configuration not in scores]
    yield from islice(_batches(space, scores, lambda: _random(space, random)), _SEEDS)

    def proposal() -> Configuration:
        elite = sorted((c for c in scores if math.isfinite(scores[c])), key=lambda c: scores[c])
        draw = random.random()
        if not elite or draw < 0.1:
            return _random(space, random)
        # Better configurations are parents more often.
        best = elite[: min(_ELITE, len(elite))]
        parent = best[min(int(random.expovariate(0.5)), len(best) - 1)]
        if draw < 0.3:
            return _crossover(space, parent, random.choice(best), random)
        return _mutate(space, parent, random)

    yield from _batches(space, scores, proposal)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "exhaustive": exhaustive,
    "random": random_search,
    "evolution": evolution,
}


def strategy(name: str) -> Strategy:
    """A strategy by name. Raises UnknownName."""
    if name not in STRATEGIES:
        raise UnknownName("search", name, STRATEGIES)
    return STRATEGIES[name]


def _batches(
    space: SearchSpace, scores: Scores, proposal: Callable[[], Configuration]
) -> Iterator[Sequence[Configuration]]:
    """Batches of new proposals, until almost every proposal is known."""
    if not space.axes:
        return
    while True:
        batch: dict[Configuration, None] = {}
        attempts = 0
        while len(batch) < BATCH and attempts < _ATTEMPTS:
            attempts += 1
            configuration = proposal()
            if configuration not in scores:
                batch.setdefault(configuration)
        if not batch:
            return
        yield list(batch)


def _random(space: SearchSpace, random: Random) -> Configuration:
    return Configuration.of((name, random.choice(values)) for name, values in space.axes.items())


def _mutate(space: SearchSpace, parent: Configuration, random: Random) -> Configuration:
    """`parent` with one axis, sometimes two, one step up or down. Axes that `parent` lacks get
    their first value."""
    settings = parent.settings
    for name, values in space.axes.items():
        if settings.get(name) not in values:
            settings[name] = values[0]
    movable = [name for name, values in space.axes.items() if len(values) > 1]
    for _ in range(1 if random.random() < 0.6 else 2):
        if movable:
            name = random.choice(movable)
            values = space.axes[name]
            at = values.index(settings[name]) + random.choice((-1, 1))
            settings[name] = values[min(max(at, 0), len(values) - 1)]
    return Configuration.of((name, settings[name]) for name in space.axes)


def _crossover(
    space: SearchSpace, first: Configuration, second: Configuration, random: Random
) -> Configuration:
    """Each axis from one of two parents."""
    parents = first.settings, second.settings
    settings = {}
    for name, values in space.axes.items():
        value = random.choice(parents).get(name)
        settings[name] = value if value in values else values[0]
    return Configuration.of(settings)


__all__ = ["STRATEGIES", "Scores", "Strategy", "strategy"]
