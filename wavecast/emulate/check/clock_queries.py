"""Whether an access is ordered behind a record of another workgroup, and why not.

Records are compared with columns of a wave's row. Lets `clock_events.py` catch up, then only reads
what it has recorded; writes the rows that native code keeps of the last workgroup, and `unordered`.
Callers have the launch's lock (`launch_clocks.py`).
"""

from __future__ import annotations

from wavecast.emulate.check.atomicity import ATOMIC, Atomicity
from wavecast.emulate.check.clock_events import ClockEvents
from wavecast.emulate.check.clocks import (
    LOADED,
    ROWS,
    ROWS_OF,
    STORED,
    Clock,
    Release,
    ResidentClock,
    WorkgroupClock,
    column,
)
from wavecast.emulate.check.counters import STORE
from wavecast.emulate.check.lacks import Lack, Unordered
from wavecast.emulate.check.records import MemoryRecord
from wavecast.emulate.lower import state


class ClockQueries:
    """Queries of one launch. `unordered` says what was missing at the first conflict of each pair
    of instructions: (of the access, of the record). Programs that cannot order workgroups ask
    nothing."""

    def __init__(self, events: ClockEvents) -> None:
        self.events = events
        self.unordered: dict[tuple[int, int], Unordered] = {}

    def races(self, thread: ResidentClock, record: MemoryRecord, access: int, address: int) -> int:
        """1 where the access at hand, packed in `access` by `order.py`, is not ordered behind a
        record, else 0."""
        stored, loads = bool(access & 1), bool(access >> 1 & 1)
        mine, instruction = Atomicity(access >> 2 & 7), access >> 8
        self.events.catch_up(thread)
        known = self.events.known(thread)
        if record.group is None:
            return int(not known)
        wave = int(thread.context[state.WAVE])
        if _reaches(known, record, stored):
            rows = known[record.group]
            thread.group.kept[wave] = rows
            thread.words[ROWS_OF + wave] = record.group + 1
            thread.words[ROWS + wave] = rows.ctypes.data
            return 0
        # atomic accesses of one dword are in one order without an acquire
        coherent = mine in ATOMIC if loads else record.atomicity in ATOMIC
        if coherent and _reaches(self.events.observable(thread), record, stored):
            return 0
        if self._synchronised(thread.group, record, address & ~3, coherent=coherent):
            return 0
        key = instruction, record.instruction
        if key not in self.unordered:
            self.unordered[key] = self._explain(thread, record, stored)
        return 1

    def _synchronised(
        self, group: WorkgroupClock, record: MemoryRecord, address: int, *, coherent: bool
    ) -> bool:
        """Whether a record is of the store that released, or one before, at the same address."""
        known = group.observed if coherent else group.acquired
        if record.atomicity not in ATOMIC or record.group is None or address not in known:
            return False
        release = self.events.sequences[address].last.get(record.group)
        return (
            release is not None and release.wave == record.wave and release.number >= record.number
        )

    def _explain(self, thread: ResidentClock, record: MemoryRecord, stored: bool) -> Unordered:
        """Why a record of another workgroup is not ordered: by the releases of that workgroup that
        this one has observed."""
        assert record.group is not None
        best = Unordered(Lack.NOTHING_SHARED)
        for address, observer in thread.group.observed.items():
            release = self.events.sequences[address].last.get(record.group)
            if release is not None:
                found = Unordered(_lack(release, record, stored), release.instruction, observer)
                best = max(best, found, key=lambda item: item.lack)
        return best


def _reaches(clock: Clock, record: MemoryRecord, stored: bool) -> bool:
    rows = clock.get(record.group) if record.group is not None else None
    return rows is not None and rows[record.wave, column(record, stored=stored)] >= record.number


def _lack(release: Release, record: MemoryRecord, stored: bool) -> Lack:
    """Why a release that was observed does not order a record of its workgroup."""
    row, issued = release.rows[record.wave], release.issued[record.wave]
    number = record.number
    if number > issued[int(record.stream == STORE)]:  # of two waves either may be the first
        return Lack.LATER if record.wave == release.wave else Lack.BARRIER
    if row[column(record, stored=stored)] >= number:
        return Lack.ACQUIRE
    done = row[STORED if stored else LOADED] >= number
    if record.wave != release.wave and not done:
        return Lack.BARRIER
    return Lack.WRITE_BACK if stored and done else Lack.WAIT


__all__ = ["ClockQueries"]
