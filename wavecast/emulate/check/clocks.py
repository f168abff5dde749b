"""Clocks: what a wave knows of the accesses of other workgroups, and how native code sees it.

A clock says for waves of other workgroups up to which number (`counters.py`) their accesses
happened before. Every dword that is stored to atomically keeps the releases of those who stored:
what they had waited for and, where the target needs it, written back (LLVM, "User Guide for AMDGPU
Backend", memory model), with what they had acquired themselves.

Where launches of several GPUs run at once, a clock also says behind the start of which launches it
is (`gpu_order.py`), and a release reaches another GPU only at system scope.

The layout of the words that native code and Python share, and the values kept per dword and per
workgroup. `clock_events.py` changes them, `clock_queries.py` reads them; this module does neither,
and emits no code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from wavecast.emulate.check.atomicity import Atomicity
from wavecast.emulate.check.counters import STORE, WAVES
from wavecast.emulate.check.records import MemoryRecord

COLUMNS: Final = 3
LOADED, STORED, WRITTEN = range(COLUMNS)
"""Columns of a row: loads and atomic operations that return done; stores and other atomic
operations done; stores visible to the agent."""
SLOTS: Final = 16
"""Workgroups and launches that a wave keeps answers of, by the number of their launch."""
ROWS_OF: Final = 0  # words of a workgroup: by wave, the group + 1 whose rows follow, by slot
ROWS: Final = SLOTS * WAVES  # by wave, pointers to rows of one group, one row per wave, by slot
ACQUIRED: Final = 2 * SLOTS * WAVES  # by wave, the value of OBSERVED at its last acquire
KEY: Final = ACQUIRED + WAVES  # by wave, a pointer to the version of the dword it accessed last
KEY_VERSION: Final = KEY + WAVES  # by wave, what that was then
KEY_READ: Final = KEY_VERSION + WAVES  # by wave, number of a later load of it without an event
CLEAN: Final = KEY_READ + WAVES  # by wave, phase + 1 at its last release if nothing came after it
OBSERVED: Final = CLEAN + WAVES  # observations of the workgroup so far
SEEN: Final = OBSERVED + 1  # by wave and other wave, the last operation on LDS it has polled for
BEHIND: Final = SEEN + WAVES * WAVES  # by wave, launches it has acquired the end of, by slot
CLOCK_WORDS: Final = BEHIND + SLOTS * WAVES
ORDERS: Final = "o"
"""Trait of accesses in programs that can order workgroups."""
ACROSS: Final = "x"
"""Trait of accesses in launches of several GPUs, before the number of the others."""
RELEASE, UPDATE, OBSERVE, ACQUIRE, WRITE_BACK = range(5)
"""What an event is: low byte; the instruction is above it. `UPDATE` releases without ending the
releases before it."""

Clock = dict[int, np.ndarray]
"""Group -> rows (uint32[waves, COLUMNS]), and -launch -> `STARTED` for what happened before the
start of a launch. Neither is changed once it is made."""
STARTED: Final = np.ones(1, np.uint32)


def column(record: MemoryRecord, *, stored: bool) -> int:
    """The column that must have reached a record's number."""
    if not stored:
        return LOADED
    if record.atomicity in (Atomicity.PLAIN, Atomicity.WORKGROUP, Atomicity.UNMARKED):
        return WRITTEN
    return STORED if record.stream == STORE else LOADED


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

    def rows_for(self, gpu: int) -> np.ndarray:
        """What it releases to a GPU."""
        return self.rows if gpu == self.gpu else self.far_rows

    def seen_by(self, gpu: int) -> Clock:
        """What a wave of a GPU knows that acquires this."""
        own = {self.group: self.rows_for(gpu)}
        return join(self.clock, {**own, -self.launch: STARTED} if self.launch else own)


@dataclass(slots=True)
class ReleaseSequence:
    """A dword that was stored to atomically: a release sequence."""

    releases: list[Release] = field(default_factory=list)
    views: dict[tuple[int, bool], tuple[int, Clock]] = field(default_factory=dict)
    """By GPU, and whether at system scope: how many releases are in the clock of those who observe
    them from there."""
    last: dict[int, Release] = field(default_factory=dict)
    """By group, for explanations."""

    def clear(self) -> None:
        """A store has ended it."""
        self.releases, self.views, self.last = [], {}, {}

    def drop(self, ended: Callable[[int], bool]) -> None:
        """Drop the releases of launches that have ended before the one that releases now: it
        releases what they have."""
        kept = [release for release in self.releases if not ended(release.launch)]
        if len(kept) < len(self.releases):
            self.releases, self.views = kept, {}
            self.last = {release.group: release for release in kept}

    def add(self, release: Release) -> None:
        """Append a release; it replaces one of the same wave that nobody has observed."""
        releases = self.releases
        seen = max((count for count, _ in self.views.values()), default=0)
        author = release.group, release.wave
        if len(releases) > seen and (releases[-1].group, releases[-1].wave) == author:
            releases.pop()
        releases.append(release)
        self.last[release.group] = release

    def joined(self, gpu: int, *, system: bool) -> Clock:
        """What a load of agent or `system` scope by a GPU observes."""
        count, clock = self.views.get((gpu, system), (0, {}))
        for release in self.releases[count:]:
            if release.gpu == gpu or (system and release.system):
                clock = join(clock, release.seen_by(gpu))
        if all(release.launch == 0 for release in self.releases[-1:]):
            self.releases, count = [], 0
        self.views[gpu, system] = len(self.releases), clock
        return clock


def join(first: Clock, second: Clock) -> Clock:
    """The later of two clocks, wave by wave."""
    if first is second or not second:
        return first
    if not first:
        return second
    total, changed = dict(first), False
    for group, rows in second.items():
        before = total.get(group)
        if before is rows:
            continue
        after = rows if before is None else np.maximum(before, rows)
        if before is None or not np.array_equal(after, before):
            total[group], changed = after, True
    return total if changed else first


@dataclass(frozen=True, slots=True)
class Observed:
    """What releases say that were observed: those that an acquire of agent scope takes, of the same
    GPU, and those of system scope."""

    near: Clock = field(default_factory=dict)
    far: Clock = field(default_factory=dict)

    def joined(self, other: Observed) -> Observed:
        """The later of both."""
        near = join(self.near, other.near)
        return Observed(near, near if self.far is self.near else join(self.far, other.far))


@dataclass(frozen=True, slots=True)
class Observation:
    """An atomic load: barriers passed before it, its number, whether it is of `system` scope, and
    what was released to the dword then: a plain store that follows does not take it back."""

    phase: int
    number: int
    released: Observed
    system: bool = True


@dataclass(slots=True)
class WriteBack:
    """A write-back under way: its number, the stores of each wave it covers, and whether it makes
    them visible to other GPUs."""

    phase: int
    wave: int
    number: int
    covered: np.ndarray
    system: bool = False


@dataclass(slots=True)
class WrittenBack:
    """Stores that are written back: by wave that did it, barriers passed then and what it covers,
    and what all waves know of since the last barrier."""

    fresh: dict[int, tuple[int, np.ndarray]] = field(default_factory=dict)
    shared: np.ndarray | None = None

    def add(self, entry: WriteBack) -> None:
        """A write-back is done."""
        when, before = self.fresh.get(entry.wave, (entry.phase, entry.covered))
        self.fresh[entry.wave] = max(when, entry.phase), np.maximum(before, entry.covered)

    def sweep(self, phase: int) -> None:
        """A barrier has been passed."""
        for wave, (when, covered) in list(self.fresh.items()):
            if when < phase:
                self.shared = covered if self.shared is None else np.maximum(self.shared, covered)
                del self.fresh[wave]

    def covered(self, wave: int, waves: int) -> np.ndarray:
        """The stores of each wave that one of them knows to be written back (uint32[waves])."""
        total = np.zeros(waves, np.uint32)
        for found in (self.shared, self.fresh.get(wave, (0, None))[1]):
            if found is not None:
                total = np.maximum(total, found)
        return total


@dataclass(slots=True)
class WorkgroupClock:
    """What the waves of a running workgroup have released, observed and acquired."""

    number: int
    shared: Clock = field(default_factory=dict)
    """Acquired before the last barrier."""
    fresh: dict[int, tuple[int, Clock]] = field(default_factory=dict)
    """By wave: barriers passed at its last acquire, and what it knows since."""
    seen: Observed = field(default_factory=Observed)
    """Observed before the last barrier, acquired or not."""
    pending: dict[int, dict[int, Observation]] = field(default_factory=dict)
    """By wave: addresses it has observed since."""
    write_backs: list[WriteBack] = field(default_factory=list)
    written: WrittenBack = field(default_factory=WrittenBack)
    written_far: WrittenBack = field(default_factory=WrittenBack)
    """Those that reach other GPUs."""
    observed: dict[int, int] = field(default_factory=dict)
    """Address -> instruction that observed it last."""
    before: set[int] = field(default_factory=set)
    """Addresses observed before the last barrier."""
    acquired: set[int] = field(default_factory=set)
    """Addresses behind whose observation a wave has acquired."""
    acquired_far: set[int] = field(default_factory=set)
    """Those at system scope."""
    key: dict[int, int] = field(default_factory=dict)
    """Address of `KEY`, by wave."""
    kept: dict[int, np.ndarray] = field(default_factory=dict)
    """Rows native code points to, by word."""

    @property
    def total(self) -> Clock:
        """What any of its waves has acquired."""
        clock = self.shared
        for _, fresh in self.fresh.values():
            clock = join(clock, fresh)
        return clock


@dataclass(slots=True)
class ResidentClock:
    """The memory of one resident workgroup: context, `Progress.words` and clock words (all uint64)
    that native code reads and writes, and the clock of the workgroup that runs in it."""

    context: np.ndarray
    progress: np.ndarray
    words: np.ndarray
    group: WorkgroupClock


__all__ = [
    "ACQUIRE",
    "ACQUIRED",
    "ACROSS",
    "BEHIND",
    "CLEAN",
    "CLOCK_WORDS",
    "COLUMNS",
    "KEY",
    "KEY_READ",
    "KEY_VERSION",
    "LOADED",
    "OBSERVE",
    "OBSERVED",
    "ORDERS",
    "RELEASE",
    "ROWS",
    "ROWS_OF",
    "SEEN",
    "SLOTS",
    "STARTED",
    "STORED",
    "UPDATE",
    "WRITE_BACK",
    "WRITTEN",
    "Clock",
    "Observation",
    "Observed",
    "Release",
    "ReleaseSequence",
    "ResidentClock",
    "WorkgroupClock",
    "WriteBack",
    "WrittenBack",
    "column",
    "join",
]
