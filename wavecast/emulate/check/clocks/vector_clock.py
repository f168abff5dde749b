"""Vector clocks of waves: what releases a wave has acquired, and which accesses these order.

A clock names the last release that was acquired of each wave, and each release the clock of the
wave that made it: joining two clocks compares names of releases. What that says of the accesses of
a workgroup (its rows) is looked up along these releases when a record asks for it, once per clock
and workgroup. Releases that are many, or far behind each other, are joined.

Where launches of several GPUs run at once, a clock also says behind the start of which launches it
is (`gpu_order.py`), and a release reaches another GPU only at system scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

import numpy as np

from wavecast.emulate.check.clocks.joined_rows import NO_ROWS, JoinedRows, RowsBuilder

DEEPEST: Final = 32
"""Releases behind each other that a clock follows."""
WIDEST: Final = 16
"""Releases that a clock names."""
_ASKED: Final = 24
"""Workgroups that a clock is asked for before all are looked up at once."""
_ORDER: Final = count(1)


@dataclass(frozen=True, slots=True)
class Release:
    """A store or an atomic operation of agent scope, by one wave. `clock` is what the wave had
    acquired, `rows` what it releases for its workgroup, `issued` what the workgroup's waves had
    issued before (uint32[waves, 2]: loads, stores). Other GPUs than `gpu` get `far_rows`, and only
    if it is of `system` scope. `launch` is 0 where launches are not compared."""

    group: int
    wave: int
    instruction: int
    number: int
    clock: Clock
    rows: np.ndarray
    issued: np.ndarray
    far_rows: np.ndarray
    gpu: int = 0
    launch: int = 0
    system: bool = True
    order: int = field(default_factory=lambda: next(_ORDER))
    """The later of two releases of a wave has the higher number."""

    def rows_for(self, gpu: int) -> np.ndarray:
        """What it releases to a GPU."""
        return self.rows if gpu == self.gpu else self.far_rows


class Clock:
    """What a wave of `gpu` knows that has acquired `releases`: by workgroup and wave the last one.
    `base` is what it knows besides. It is `depth` releases ahead of what it is behind, and behind
    the start of `launches`. It is not changed once it is made."""

    __slots__ = (
        *("_below", "_known", "_own", "base", "depth", "gpu", "launches", "looked_up"),
        "releases",
    )

    def __init__(
        self,
        gpu: int,
        releases: dict[tuple[int, int], Release],
        base: JoinedRows = NO_ROWS,
        depth: int = 0,
        launches: frozenset[int] = frozenset(),
    ) -> None:
        self.gpu, self.releases, self.base = gpu, releases, base
        self.depth, self.launches = depth, launches
        self._below: tuple[Clock, ...] | None = None
        self._own: JoinedRows | None = None
        self._known: dict[int, np.ndarray | None] = {}
        self.looked_up: JoinedRows | None = None
        """`all_rows`, once they have been asked for."""

    def __bool__(self) -> bool:
        return bool(self.releases or self.base)

    def order(self, author: tuple[int, int]) -> int:
        """That of the last release of a workgroup's wave that it knows, 0 for none."""
        release = self.releases.get(author)
        return self.base.order(*author) if release is None else release.order

    def rows(self, group: int) -> np.ndarray | None:
        """What is known of the accesses of a workgroup, None for nothing."""
        if self.looked_up is not None:
            return self.looked_up.rows(group)
        if group in self._known:
            return self._known[group]
        if len(self._known) >= _ASKED:
            return self.all_rows().rows(group)
        if self._own is None:
            own = RowsBuilder()
            self.add_to(own)
            self._own = own.build()
        rows = _later(self.base.rows(group), self._own.rows(group))
        for clock in self.below():
            rows = _later(rows, clock.rows(group))
        self._known[group] = rows
        return rows

    def below(self) -> tuple[Clock, ...]:
        """The clocks of its releases."""
        if self._below is None:
            clocks = {
                id(release.clock): release.clock
                for release in self.releases.values()
                if release.clock
            }
            self._below = tuple(clocks.values())
        return self._below

    def add_to(self, total: RowsBuilder) -> None:
        """Join the rows of its releases into `total`, without what these are behind."""
        for release in self.releases.values():
            rows = release.rows_for(self.gpu)
            total.add(release.group, release.wave, rows, release.order)

    def all_rows(self) -> JoinedRows:
        """What is known of all workgroups."""
        if self.looked_up is None:
            self.looked_up = all_rows((self,))
            self._known.clear()
        return self.looked_up

    def plus(
        self,
        releases: dict[tuple[int, int], Release],
        base: JoinedRows | None = None,
        launches: frozenset[int] | None = None,
    ) -> Clock:
        """With further releases, another base, and the launches of that. Releases that are many, or
        far behind each other, are joined."""
        depth, launches = self.depth, self.launches if launches is None else launches
        more: set[int] = set()
        for release in releases.values():
            clock = release.clock
            depth = max(depth, clock.depth + 1)
            if release.launch and release.launch not in launches:
                more.add(release.launch)
            if not clock.launches <= launches:
                more |= clock.launches
        successor = Clock(
            self.gpu, {**self.releases, **releases}, self.base if base is None else base, depth,
            launches | more if more else launches,
        )  # fmt: skip
        if depth <= DEEPEST and len(successor.releases) <= WIDEST:
            return successor
        for clock in successor.below():
            if clock.depth >= DEEPEST:  # shared by the releases of many waves
                clock.all_rows()
        return Clock(self.gpu, {}, successor.all_rows(), 0, successor.launches)


UNKNOWING: Final = Clock(-1, {})
"""The clock of a wave that has acquired nothing, of any GPU."""


def _later(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    if first is None or first is second:
        return second
    return first if second is None else np.maximum(first, second)


def all_rows(clocks: Iterable[Clock]) -> JoinedRows:
    """What any of some clocks knows."""
    total = RowsBuilder()
    ids: set[int] = set()
    waiting = list(clocks)
    while waiting:
        clock = waiting.pop()
        if id(clock) in ids:
            continue
        ids.add(id(clock))
        if clock.looked_up is not None:
            total.join(clock.looked_up)
            continue
        if id(clock.base) not in ids:
            ids.add(id(clock.base))
            total.join(clock.base)
        clock.add_to(total)
        waiting += clock.below()
    return total.build()


def join_clocks(clocks: Iterable[Clock]) -> Clock:
    """What any of some clocks of one GPU knows; the first that knows something where the others
    know no more."""
    first = UNKNOWING
    base, launches = first.base, first.launches
    releases: dict[tuple[int, int], Release] = {}
    ids: set[int] = set()
    for clock in clocks:
        if not clock or id(clock) in ids:
            continue
        ids.add(id(clock))
        if not first:
            first, base, launches = clock, clock.base, clock.launches
            continue
        if clock.base is not base and clock.base:
            base, launches = base.join(clock.base), launches | clock.launches
        for author, release in clock.releases.items():
            current = releases.get(author)
            if release.order > (first.order(author) if current is None else current.order):
                releases[author] = release
    if not releases and base is first.base:
        return first
    return first.plus(releases, base, launches)


def after(clock: Clock, release: Release, gpu: int) -> Clock:
    """What a wave of `gpu` knows that knew `clock` and acquires a release."""
    author = release.group, release.wave
    if clock.order(author) >= release.order:
        return clock
    return (clock or Clock(gpu, {})).plus({author: release})


@dataclass(frozen=True, slots=True)
class Observed:
    """What releases say that were observed: those that an acquire of agent scope takes, of the same
    GPU, and those of system scope."""

    near: Clock = UNKNOWING
    far: Clock = UNKNOWING


NOT_OBSERVED: Final = Observed()


def joined_observed(observed: Iterable[Observed]) -> Observed:
    """What any of some observations has observed."""
    distinct = list(
        {
            id(observation): observation
            for observation in observed
            if observation is not NOT_OBSERVED
        }.values()
    )
    if len(distinct) < 2:
        return distinct[0] if distinct else NOT_OBSERVED
    near = join_clocks(observation.near for observation in distinct)
    if all(observation.far is observation.near for observation in distinct):
        return Observed(near, near)
    return Observed(near, join_clocks(observation.far for observation in distinct))


@dataclass(slots=True)
class ReleaseSequence:
    """A dword that was stored to atomically: a release sequence."""

    releases: list[Release] = field(default_factory=list)
    views: dict[tuple[int, bool], tuple[int, Observed]] = field(default_factory=dict)
    """By GPU, and whether at system scope: how many releases are in what those observe who load
    from there."""
    last: dict[int, Release] = field(default_factory=dict)
    """By group, for explanations."""
    ends: int = 0
    """How often a store has ended it."""

    def clear(self) -> None:
        """A store has ended it."""
        self.ends += 1
        self.releases, self.views, self.last = [], {}, {}

    def drop(self, has_ended: Callable[[int], bool]) -> None:
        """Drop the releases of launches that have ended before the one that releases now: it
        releases what they have."""
        launches = {release.launch for release in self.releases}
        if not any(map(has_ended, launches)):
            return
        self.releases = [release for release in self.releases if not has_ended(release.launch)]
        self.views = {}
        self.last = {release.group: release for release in self.releases}

    def add(self, release: Release) -> None:
        """Append a release; it replaces one of the same wave that nobody has observed."""
        releases = self.releases
        prefix = max((count for count, _ in self.views.values()), default=0)
        author = release.group, release.wave
        if len(releases) > prefix and (releases[-1].group, releases[-1].wave) == author:
            releases.pop()
        releases.append(release)
        self.last[release.group] = release

    def observe(self, gpu: int, *, system: bool) -> Observed:
        """What a load of agent or `system` scope by a GPU observes."""
        count, view = self.views.get((gpu, system), (0, NOT_OBSERVED))
        if count == len(self.releases):
            return view
        near, far = view.near, view.far
        for release in self.releases[count:]:
            if release.gpu == gpu:
                near = after(near, release, gpu)
            if release.gpu == gpu or release.system:
                far = after(far, release, gpu)
        if not system:
            far = near
        view = Observed(near, far)
        if self.releases[-1].launch == 0:
            self.releases = []
        self.views[gpu, system] = len(self.releases), view
        return view


def observed_of(sequences: Sequence[ReleaseSequence], gpu: int, *, system: bool) -> Observed:
    """What a load of agent or `system` scope by a GPU observes of several dwords."""
    observations: list[Observed] = []
    near: dict[tuple[int, int], Release] = {}
    far: dict[tuple[int, int], Release] = {}
    for sequence in sequences:
        if sequence.views or len(sequence.releases) != 1 or len(sequences) == 1:
            observations.append(sequence.observe(gpu, system=system))
            continue
        (release,) = sequence.releases  # most signals are one release: it needs no view
        author = release.group, release.wave
        for into, applies in ((near, release.gpu == gpu), (far, system and release.system)):
            current = into.get(author) if applies else release
            if current is None or release.order > current.order:
                into[author] = release
    if near or far:
        alone = Clock(gpu, {})
        near_clock = alone.plus(near)
        observations.append(
            Observed(near_clock, alone.plus({**near, **far}) if far else near_clock)
        )
    return joined_observed(observations)


__all__ = [
    "DEEPEST",
    "NOT_OBSERVED",
    "UNKNOWING",
    "Clock",
    "Observed",
    "Release",
    "ReleaseSequence",
    "after",
    "all_rows",
    "join_clocks",
    "joined_observed",
    "observed_of",
]
