"""Whether an access is ordered behind a record of another workgroup, and why not.

Records are compared with columns of a wave's row. Lets `clock_events.py` catch up, then only reads
what it has recorded; writes the rows that native code keeps of the last workgroup, and `unordered`.
Callers have the launch's lock (`launch_clocks.py`).
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from wavecast.emulate.check.clocks.atomicity import ATOMIC, Atomicity
from wavecast.emulate.check.clocks.clocks import (
    BEHIND,
    COLUMNS,
    LOADED,
    ROWS,
    ROWS_OF,
    SLOTS,
    STORED,
    ResidentClock,
    WorkgroupClock,
    column,
)
from wavecast.emulate.check.clocks.events import ClockEvents
from wavecast.emulate.check.clocks.missing_order import Lack, Unordered
from wavecast.emulate.check.clocks.records import MANY, MemoryRecord
from wavecast.emulate.check.clocks.vector_clock import Clock, Release
from wavecast.emulate.check.counters import STORE, WAVES
from wavecast.emulate.lower import state

_EVERYTHING: Final = np.full((WAVES, COLUMNS), 0xFFFFFFFF, np.uint32)
"""Rows that all numbers have reached."""


class LaunchHistory(Protocol):
    """What launches that run at once know of others (`gpu_order.py`)."""

    def has_ended(self, launch: int, clock: Clock, other: int) -> bool:
        """Whether a launch ended before a wave of `launch` with a clock continues."""
        ...

    def gpu_of(self, launch: int) -> int:
        """The GPU of a launch."""
        ...

    def rows(self, launch: int, clock: Clock, record: MemoryRecord) -> np.ndarray | None:
        """The rows of the workgroup of a record that such a wave knows from what its launch, or
        those in its clock, knew when they started."""
        ...


class ClockQueries:
    """Queries of one launch. `unordered` says what was missing at the first conflict of each pair
    of instructions: (of the access, of the record), and the launch of the record. Programs that
    cannot order workgroups ask nothing. `history` knows other launches, where there are any."""

    def __init__(self, events: ClockEvents, history: LaunchHistory | None = None) -> None:
        self.events, self.history = events, history
        self.unordered: dict[tuple[int, int, int], Unordered] = {}

    def races(self, thread: ResidentClock, record: MemoryRecord, access: int, address: int) -> int:
        """1 where the access at hand, packed in `access` by `order.py`, is not ordered behind a
        record, else 0."""
        stored, loads = bool(access & 1), bool(access >> 1 & 1)
        mine, instruction = Atomicity(access >> 2 & 7), access >> 8
        self.events.catch_up(thread)
        clock = self.events.acquired_clock(thread)
        foreign = self.history is not None and record.launch != self.events.launch.number
        narrow = bool(access >> 5 & 1)
        if narrow and self._is_of_this_gpu(record):
            return 0
        if foreign and self._launch_has_ended(thread, clock, record):
            return 0
        if record.group is None and not foreign:
            return int(not clock)
        if record.group is not None:
            rows = clock.rows(record.group)
            if rows is not None and reaches(rows, record, stored):
                self._keep(thread, record, rows, shared=clock is thread.group.shared)
                return 0
        if foreign and self._behind(thread, clock, record, stored):
            return 0
        # atomic accesses of one dword are in one order without an acquire
        coherent = (mine in ATOMIC if loads else record.atomicity in ATOMIC) and not narrow
        if coherent and record.group is not None:
            rows = self.events.observable(thread).far.rows(record.group)
            if rows is not None and reaches(rows, record, stored):
                return 0
        if self._is_synchronised(thread.group, record, address & ~3, coherent=coherent):
            return 0
        key = instruction, record.instruction, record.launch
        if key not in self.unordered:
            self.unordered[key] = (
                Unordered(Lack.ATOMIC_SCOPE, -1 if record.system else record.instruction)
                if narrow
                else self._explain(thread, record, stored)
            )
        return 1

    def _is_of_this_gpu(self, record: MemoryRecord) -> bool:
        history, launch = self.history, self.events.launch
        return history is None or history.gpu_of(record.launch) == launch.gpu

    def _launch_has_ended(self, thread: ResidentClock, clock: Clock, record: MemoryRecord) -> bool:
        """Whether the launch of a record ended before the wave at hand continues."""
        history, launch = self.history, self.events.launch.number
        assert history is not None
        if not history.has_ended(launch, clock, record.launch):
            return False
        for wave in self._waves(thread, shared=clock is thread.group.shared):
            thread.words[BEHIND + wave * SLOTS + record.launch % SLOTS] = record.launch
        return True

    def _behind(
        self, thread: ResidentClock, clock: Clock, record: MemoryRecord, stored: bool
    ) -> bool:
        """Whether another launch that the wave at hand is behind knew the record's workgroup."""
        history, launch = self.history, self.events.launch.number
        assert history is not None
        rows = history.rows(launch, clock, record)
        if rows is None:
            return False
        if record.group is None:
            rows = _EVERYTHING
        elif not reaches(rows, record, stored):
            return False
        self._keep(thread, record, rows, shared=clock is thread.group.shared)
        return True

    def _keep(
        self, thread: ResidentClock, record: MemoryRecord, rows: np.ndarray, *, shared: bool
    ) -> None:
        """Let native code see the rows of a record's workgroup, for all waves that know no more
        than what is `shared`."""
        group = MANY if record.group is None else record.group + 1
        for wave in self._waves(thread, shared=shared):
            at = wave * SLOTS + record.launch % SLOTS
            thread.group.kept[at] = rows
            thread.words[ROWS_OF + at] = group
            thread.words[ROWS + at] = rows.ctypes.data

    def _waves(self, thread: ResidentClock, *, shared: bool) -> list[int]:
        """The wave at hand, or all that know no more than what is `shared`."""
        if not shared:
            return [int(thread.context[state.WAVE])]
        fresh = thread.group.fresh
        return [wave for wave in range(self.events.waves) if wave not in fresh]

    def _is_synchronised(
        self, group: WorkgroupClock, record: MemoryRecord, address: int, *, coherent: bool
    ) -> bool:
        """Whether a record is of the store that released, or one before, at the same address."""
        if record.atomicity not in ATOMIC or record.group is None:
            return False
        release = self.events.memory.sequence(address).last.get(record.group)
        if release is None or release.wave != record.wave or release.number < record.number:
            return False
        if coherent:
            return address in group.observed
        if release.gpu == self.events.launch.gpu:
            return address in group.acquired
        return release.system and address in group.acquired_far

    def _explain(self, thread: ResidentClock, record: MemoryRecord, stored: bool) -> Unordered:
        """Why a record of another workgroup is not ordered: by the releases of that workgroup that
        this one has observed."""
        best = Unordered(Lack.NOTHING_SHARED)
        if record.group is None:
            return best
        launch = self.events.launch
        for address, observer in thread.group.observed.items():
            release = self.events.memory.sequence(address).last.get(record.group)
            if release is None:
                continue
            lack = _lack(release, record, stored, launch.gpu)
            if release.gpu != launch.gpu and lack > Lack.BARRIER:
                if not release.system:
                    lack = Lack.RELEASE_SCOPE
                elif observer not in launch.system:
                    lack = Lack.OBSERVER_SCOPE
                elif lack is Lack.ACQUIRE and address in thread.group.acquired:
                    lack = Lack.ACQUIRE_SCOPE
            candidate = Unordered(lack, release.instruction, observer)
            best = max(best, candidate, key=lambda item: item.lack)
        return best


def reaches(rows: np.ndarray, record: MemoryRecord, stored: bool) -> bool:
    return rows[record.wave, column(record, stored=stored)] >= record.number


def _lack(release: Release, record: MemoryRecord, stored: bool, gpu: int) -> Lack:
    """Why a release that a GPU has observed does not order a record of its workgroup."""
    row, issued = release.rows_for(gpu)[record.wave], release.issued[record.wave]
    number = record.number
    if number > issued[int(record.stream == STORE)]:  # of two waves either may be the first
        return Lack.LATER if record.wave == release.wave else Lack.BARRIER
    if row[column(record, stored=stored)] >= number:
        return Lack.ACQUIRE
    is_complete = row[STORED if stored else LOADED] >= number
    if record.wave != release.wave and not is_complete and gpu != release.gpu:
        return Lack.OTHER_WAVE if release.rows[record.wave, STORED] >= number else Lack.BARRIER
    if record.wave != release.wave and not is_complete:
        return Lack.BARRIER
    return Lack.WRITE_BACK if stored and is_complete else Lack.WAIT


__all__ = ["ClockQueries", "LaunchHistory", "reaches"]
