"""Ways to go through a space: which configurations to try next, given the scores so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Final

from wavecast.errors import UnknownName
from wavecast.kernels.configuration import Configuration
from wavecast.tune.space import Space

BATCH: Final = 16
_ELITE: Final = 8
_SEEDS: Final = 3
"""Batches of random configurations an evolution begins with."""
_ATTEMPTS: Final = 400
"""Proposals in a row that were all known before a search gives up."""

Scores = Mapping[Configuration, float]
"""Seconds of what was tried, `inf` for what cannot run; grows between batches."""

Search = Callable[[Space, Scores, Random], Iterator[Sequence[Configuration]]]
"""Yields batches to try. The scores of a batch are known when the next one is asked for."""


def exhaustive(space: Space, scores: Scores, random: Random) -> Iterator[Sequence[Configuration]]:
    """All of a space in order, the autotuner's own configurations first."""
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


def sampled(space: Space, scores: Scores, random: Random) -> Iterator[Sequence[Configuration]]:
    """The autotuner's own configurations, then random ones of the space."""
    yield [configuration for configuration in space.own if configuration not in scores]
    yield from _batches(space, scores, lambda: _anywhere(space, random))


def evolution(space: Space, scores: Scores, random: Random) -> Iterator[Sequence[Configuration]]:
    """The autotuner's own configurations and a few of everywhere, then changes of the best ones so
    far: mostly one axis by one step, sometimes what two of them have between them, seldom anything.
    """
    yield [configuration for configuration in space.own if configuration not in scores]
    yield from islice(_batches(space, scores, lambda: _anywhere(space, random)), _SEEDS)

    def proposal() -> Configuration:
        elite = sorted((c for c in scores if math.isfinite(scores[c])), key=lambda c: scores[c])
        kind = random.random()
        if not elite or kind < 0.1:
            return _anywhere(space, random)
        # The better ones are taken more often.
        best = elite[: min(_ELITE, len(elite))]
        parent = best[min(int(random.expovariate(0.5)), len(best) - 1)]
        if kind < 0.3:
            return _mixed(space, parent, random.choice(best), random)
        return _stepped(space, parent, random)

    yield from _batches(space, scores, proposal)


SEARCHES: Final[Mapping[str, Search]] = {
    "exhaustive": exhaustive,
    "random": sampled,
    "evolution": evolution,
}


def search(name: str) -> Search:
    """A search by name. Raises UnknownName."""
    if name not in SEARCHES:
        raise UnknownName("search", name, SEARCHES)
    return SEARCHES[name]


def _batches(
    space: Space, scores: Scores, proposal: Callable[[], Configuration]
) -> Iterator[Sequence[Configuration]]:
    """Batches of proposals that are new, until hardly any are."""
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


def _anywhere(space: Space, random: Random) -> Configuration:
    return Configuration.of((name, random.choice(values)) for name, values in space.axes.items())


def _stepped(space: Space, parent: Configuration, random: Random) -> Configuration:
    """One axis one step up or down, sometimes two axes; what `parent` leaves open is filled in."""
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


def _mixed(space: Space, one: Configuration, other: Configuration, random: Random) -> Configuration:
    """Each axis from one of two."""
    parents = one.settings, other.settings
    chosen = {}
    for name, values in space.axes.items():
        value = random.choice(parents).get(name)
        chosen[name] = value if value in values else values[0]
    return Configuration.of(chosen)


__all__ = ["SEARCHES", "Scores", "Search", "search"]
