"""Clocks: what a wave knows of the accesses of other workgroups, and how native code sees it.

A clock says for waves of other workgroups up to which number (`counters.py`) their accesses
happened before. Every dword that is stored to atomically keeps the releases of those who stored:
what they had waited for and, where the target needs it, written back (LLVM, "User Guide for AMDGPU
Backend", memory model), with what they had acquired themselves.

The layout of the words that native code and Python share, and the values kept per dword and per
workgroup. `clock_events.py` changes them, `clock_queries.py` reads them; this module does neither,
and emits no code.
"""

from __future__ import annotations

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
ROWS_OF: Final = 0  # words of a workgroup: by wave, the group + 1 whose rows follow
ROWS: Final = WAVES  # by wave, a pointer to rows of one group, one row per wave
ACQUIRED: Final = 2 * WAVES  # by wave, the value of OBSERVED at its last acquire
KEY: Final = 3 * WAVES  # by wave, a pointer to the version of the dword it accessed last
KEY_VERSION: Final = 4 * WAVES  # by wave, what that was then
KEY_READ: Final = 5 * WAVES  # by wave, the number of a later load of it that made no event
CLEAN: Final = 6 * WAVES  # by wave, phase + 1 at its last release if nothing came after it
OBSERVED: Final = 7 * WAVES  # observations of the workgroup so far
SEEN: Final = OBSERVED + 1  # by wave and other wave, the last operation on LDS it has polled for
CLOCK_WORDS: Final = SEEN + WAVES * WAVES
ORDERS: Final = "o"
"""Trait of accesses in programs that can order workgroups."""
RELEASE, UPDATE, OBSERVE, ACQUIRE, WRITE_BACK = range(5)
"""What an event is: low byte; the instruction is above it. `UPDATE` releases without ending the
releases before it."""

Clock = dict[int, np.ndarray]
"""Group -> rows (uint32[waves, COLUMNS]). Neither is changed once it is made."""


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
    issued before (uint32[waves, 2]: loads, stores)."""

    group: int
    wave: int
    instruction: int
    number: int
    clock: Clock
    rows: np.ndarray
    issued: np.ndarray


@dataclass(slots=True)
class ReleaseSequence:
    """A dword that was stored to atomically: a release sequence."""

    clock: Clock = field(default_factory=dict)
    waiting: list[Release] = field(default_factory=list)
    """Releases that are not in `clock` yet."""
    last: dict[int, Release] = field(default_factory=dict)
    """By group, for explanations."""

    def joined(self) -> Clock:
        for release in self.waiting:
            self.clock = join(self.clock, release.clock)
            self.clock = join(self.clock, {release.group: release.rows})
        self.waiting = []
        return self.clock


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
class Observation:
    """An atomic load: barriers passed before it, its number, and what was released to the dword
    then: a plain store that follows does not take it back."""

    phase: int
    number: int
    released: Clock


@dataclass(slots=True)
class WriteBack:
    """A write-back under way: its number, and the stores of each wave it covers."""

    phase: int
    wave: int
    number: int
    covered: np.ndarray


@dataclass(slots=True)
class WorkgroupClock:
    """What the waves of a running workgroup have released, observed and acquired."""

    number: int
    shared: Clock = field(default_factory=dict)
    """Acquired before the last barrier."""
    fresh: dict[int, tuple[int, Clock]] = field(default_factory=dict)
    """By wave: barriers passed at its last acquire, and what it knows since."""
    seen: Clock = field(default_factory=dict)
    """Observed before the last barrier, acquired or not."""
    pending: dict[int, dict[int, Observation]] = field(default_factory=dict)
    """By wave: addresses it has observed since."""
    write_backs: list[WriteBack] = field(default_factory=list)
    written: dict[int, tuple[int, np.ndarray]] = field(default_factory=dict)
    """By wave: barriers passed at its last write-back that is done, and the stores it covers."""
    shared_written: np.ndarray | None = None
    observed: dict[int, int] = field(default_factory=dict)
    """Address -> instruction that observed it last."""
    before: set[int] = field(default_factory=set)
    """Addresses observed before the last barrier."""
    acquired: set[int] = field(default_factory=set)
    """Addresses behind whose observation a wave has acquired."""
    key: dict[int, int] = field(default_factory=dict)
    """Address of `KEY`, by wave."""
    kept: dict[int, np.ndarray] = field(default_factory=dict)
    """Rows native code points to, by wave."""


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
    "STORED",
    "UPDATE",
    "WRITE_BACK",
    "WRITTEN",
    "Clock",
    "Observation",
    "Release",
    "ReleaseSequence",
    "ResidentClock",
    "WorkgroupClock",
    "WriteBack",
    "column",
    "join",
]
