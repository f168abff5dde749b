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

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from wavecast.emulate.check.clocks.atomicity import Atomicity
from wavecast.emulate.check.clocks.records import MemoryRecord
from wavecast.emulate.check.clocks.vector_clock import (
    NOT_OBSERVED,
    UNKNOWING,
    Clock,
    Observed,
    ReleaseSequence,
    join_clocks,
)
from wavecast.emulate.check.counters import NAMED_SEEN, STORE, STREAMS, WAVES

COLUMNS: Final = 3
LOADED, STORED, WRITTEN = range(COLUMNS)
"""Columns of a row: loads and atomic operations that return done; stores and other atomic
operations done; stores visible to the agent."""
SLOTS: Final = 16
"""Workgroups and launches that a wave keeps answers of, by the number of their launch."""
ROWS_OF: Final = 0  # words of a workgroup: by wave, the group + 1 whose rows follow, by slot
ROWS: Final = SLOTS * WAVES  # by wave, pointers to rows of one group, one row per wave, by slot
UNACQUIRED: Final = 2 * SLOTS * WAVES  # the waves that have observed what they have not acquired at
# agent scope (a bit each), and those that have not at system scope
KEYS: Final = 13
"""Instructions of which a wave keeps what their last event observed, by their number modulo that: a
prime, so that instructions at equal distances take different ones."""
KEY: Final = UNACQUIRED + 2  # by wave and key, the mask of the lanes of the event, 0 for none
KEY_READ: Final = KEY + KEYS * WAVES  # the number of a later load of its dwords without an event
KEY_READER: Final = KEY_READ + KEYS * WAVES  # its instruction; from PHASE_SHIFT on the phase
PHASE_SHIFT: Final = 32
CLEAN: Final = KEY_READER + KEYS * WAVES  # by wave, phase + 1 at its last release if that is recent
SEEN: Final = CLEAN + WAVES  # by wave and other wave, the last operation on LDS it has polled for
BEHIND: Final = SEEN + WAVES * WAVES  # by wave, launches it has acquired the end of, by slot
LANES: Final = 64
KEY_SLOTS: Final = BEHIND + SLOTS * WAVES  # by wave, key and lane, pointers to versions
KEY_VERSIONS: Final = KEY_SLOTS + LANES * KEYS * WAVES  # of the dwords, and what those were then
CLOCK_WORDS: Final = KEY_VERSIONS + LANES * KEYS * WAVES
_LEARNED: Final = 64
"""Observations that a wave is remembered to know."""
ORDERS: Final = "o"
"""Trait of accesses in programs that can order workgroups."""
ACROSS: Final = "x"
"""Trait of accesses in launches of several GPUs, before the number of the others."""
RELEASE, UPDATE, OBSERVE, ACQUIRE, WRITE_BACK, ARRIVE, PASS = range(7)
"""What an event is: low byte; the instruction is above it. `UPDATE` releases without ending the
releases before it; `ARRIVE` and `PASS` are of the barrier of a cluster."""


def column(record: MemoryRecord, *, stored: bool) -> int:
    """The column that must have reached a record's number."""
    if not stored:
        return LOADED
    if record.atomicity in (Atomicity.PLAIN, Atomicity.WORKGROUP, Atomicity.UNMARKED):
        return WRITTEN
    return STORED if record.stream == STORE else LOADED


@dataclass(frozen=True, slots=True)
class Observation:
    """An atomic load of some dwords: barriers passed before it, its number, whether it is of
    `system` scope, and what was released to them then: a plain store that follows does not take it
    back."""

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
        for wave, (when, stores) in list(self.fresh.items()):
            if when < phase:
                self.shared = stores if self.shared is None else np.maximum(self.shared, stores)
                del self.fresh[wave]

    def covered_stores(self, wave: int, waves: int) -> np.ndarray:
        """The stores of each wave that one of them knows to be written back (uint32[waves])."""
        total = np.zeros(waves, np.uint32)
        for stores in (self.shared, self.fresh.get(wave, (0, None))[1]):
            if stores is not None:
                total = np.maximum(total, stores)
        return total


@dataclass(frozen=True, slots=True)
class PolledDwords:
    """The dwords of the last event of a wave: by lane its number and where in `versions` its dword
    is."""

    dwords: tuple[int, ...]
    lanes: np.ndarray
    versions: np.ndarray
    indices: np.ndarray


@dataclass(slots=True)
class WorkgroupClock:
    """What the waves of a running workgroup have released, observed and acquired."""

    number: int
    shared: Clock = UNKNOWING
    """Acquired before the last barrier."""
    fresh: dict[int, tuple[int, Clock]] = field(default_factory=dict)
    """By wave: barriers passed at its last acquire, and what it knows since."""
    seen: Observed = NOT_OBSERVED
    """Observed before the last barrier, acquired or not."""
    pending: dict[int, dict[tuple[int, ...], Observation]] = field(default_factory=dict)
    """By wave: what it has observed since, by the addresses of the dwords."""
    swept: int = 0
    """Barriers passed when what waves know was last shared."""
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
    polled: dict[int, PolledDwords] = field(default_factory=dict)
    """What a wave may poll without events, by wave and key."""
    named: dict[int, ReleaseSequence] = field(default_factory=dict)
    """By named barrier (its index + 1): what those who signalled had released."""
    kept: dict[int, np.ndarray] = field(default_factory=dict)
    """Rows native code points to, by word."""

    _learned: dict[tuple[int, bool], dict[int, Observed]] = field(default_factory=dict)

    def learned(self, wave: int, *, system: bool) -> dict[int, Observed]:
        """Some of the observations that a wave's clock has, of which `system` acquires take more,
        by identifier."""
        observations = self._learned.setdefault((wave, system), {})
        if len(observations) > _LEARNED:
            observations.clear()
        return observations

    @property
    def total(self) -> Clock:
        """What any of its waves has acquired."""
        return join_clocks((self.shared, *(fresh for _, fresh in self.fresh.values())))


@dataclass(slots=True)
class ResidentClock:
    """The memory of one resident workgroup: context, `Progress.words` and clock words (all uint64)
    that native code reads and writes, and the clock of the workgroup that runs in it."""

    context: np.ndarray
    progress: np.ndarray
    words: np.ndarray
    group: WorkgroupClock

    @property
    def named_seen(self) -> np.ndarray:
        """What named barriers have ordered before each wave: uint64[waves, others, streams]; no
        waves in programs without them."""
        return self.progress[NAMED_SEEN : NAMED_SEEN + WAVES * WAVES * STREAMS].reshape(
            -1, WAVES, STREAMS
        )


__all__ = [
    "ACQUIRE",
    "ACROSS",
    "BEHIND",
    "CLEAN",
    "CLOCK_WORDS",
    "COLUMNS",
    "KEY",
    "KEYS",
    "KEY_READ",
    "KEY_READER",
    "KEY_SLOTS",
    "KEY_VERSIONS",
    "LANES",
    "LOADED",
    "OBSERVE",
    "ORDERS",
    "PHASE_SHIFT",
    "RELEASE",
    "ROWS",
    "ROWS_OF",
    "SEEN",
    "SLOTS",
    "STORED",
    "UNACQUIRED",
    "UPDATE",
    "WRITE_BACK",
    "WRITTEN",
    "Observation",
    "PolledDwords",
    "ResidentClock",
    "WorkgroupClock",
    "WriteBack",
    "WrittenBack",
    "column",
]
