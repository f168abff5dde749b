"""Ranks of a distributed run: when they reach their collectives, and which one the others wait for.

Collectives are matched by name and order on each rank. The clocks of machines differ, so times of
ranks are compared from the end of a collective, which all leave together: a rank that spends less
time in it came later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from wavecast.profiles.kernel_names import recognise, short
from wavecast.profiles.profile import Profile

COLLECTIVE: Final = "collective"


@dataclass(frozen=True, slots=True)
class MatchedCollective:
    """One collective on every rank, in nanoseconds by rank. `last` came last; `skew` is how much
    longer than it the first one was in the collective."""

    name: str
    number: int
    durations: Mapping[int, int]

    @property
    def last(self) -> int:
        """The rank that came last: it waits least."""
        return min(self.durations, key=lambda rank: self.durations[rank])

    @property
    def skew(self) -> int:
        """Nanoseconds between the first rank that came and the last."""
        return max(self.durations.values()) - min(self.durations.values())


@dataclass(frozen=True, slots=True)
class RankSkew:
    """What ranks wait for one another. `waited` has the nanoseconds of every rank in collectives
    beyond the rank that came last, `last_in` how often each came last."""

    collectives: tuple[MatchedCollective, ...]
    unmatched: int
    waited: Mapping[int, int]
    last_in: Mapping[int, int]

    @property
    def slowest(self) -> int:
        """The rank that waits least: the others wait for it."""
        return min(self.waited, key=lambda rank: self.waited[rank])

    @property
    def median_skew(self) -> float:
        """Nanoseconds between the first and the last rank of half of the collectives."""
        return median(collective.skew for collective in self.collectives)


def skew(profiles: Sequence[Profile]) -> RankSkew | None:
    """What ranks wait for in their collectives; None for fewer than two ranks, ranks of one number,
    or without collectives that all have."""
    ranks = [profile.rank for profile in profiles]
    if len(profiles) < 2 or len(set(ranks)) < len(ranks):
        return None
    by_rank = {profile.rank: _collectives(profile) for profile in profiles}
    names = set[str]().union(*by_rank.values())
    collectives: list[MatchedCollective] = []
    unmatched = 0
    for name in sorted(names):
        lists = {rank: durations.get(name, []) for rank, durations in by_rank.items()}
        counts = [len(durations) for durations in lists.values()]
        if min(counts) != max(counts):
            unmatched += sum(counts)
            continue
        for number in range(counts[0]):
            times = {rank: durations[number] for rank, durations in lists.items()}
            collectives.append(MatchedCollective(name, number, times))
    if not collectives:
        return None
    return RankSkew(
        collectives=tuple(sorted(collectives, key=lambda collective: -collective.skew)),
        unmatched=unmatched,
        waited={
            rank: sum(
                collective.durations[rank] - min(collective.durations.values())
                for collective in collectives
            )
            for rank in by_rank
        },
        last_in={
            rank: sum(collective.last == rank for collective in collectives) for rank in by_rank
        },
    )


def _collectives(profile: Profile) -> dict[str, list[int]]:
    """Durations of the collectives by name, in the order they started."""
    launches = profile.launches
    names = [short(kernel.name) for kernel in profile.kernels.values]
    is_collective = [
        recognise(kernel.name).category == COLLECTIVE for kernel in profile.kernels.values
    ]
    mine = [number for number, info in enumerate(launches.info) if is_collective[info]]
    durations: defaultdict[str, list[int]] = defaultdict(list)
    for number in sorted(mine, key=lambda index: launches.start[index]):
        durations[names[launches.info[number]]].append(launches.duration[number])
    return dict(durations)


__all__ = ["MatchedCollective", "RankSkew", "skew"]
