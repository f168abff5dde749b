"""What workgroups know of each other: happens-before by release and acquire in global memory.

A clock says for waves of other workgroups up to which number (`counters.py`) their accesses
happened before. Every dword that is stored to atomically keeps the releases of those who stored:
what they had waited for and, where the target needs it, written back (LLVM, "User Guide for AMDGPU
Backend", memory model), with what they had acquired themselves. A wave acquires the releases of
what it has loaded atomically, once it has waited for the load, by invalidating its caches. A
barrier joins what the waves of a workgroup know.

Native code calls `event` at atomic accesses and cache control, and `query` where what it keeps of a
clock does not settle an order (`order.py`). Records are compared with columns of a wave's row. A
wave that polls one dword makes an event only where its releases have changed.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from wavecast.arch import capabilities
from wavecast.emulate import hostmemory
from wavecast.emulate.check import log
from wavecast.emulate.check.atomicity import ATOMIC, Atomicity
from wavecast.emulate.check.counters import (
    DONE,
    ISSUED,
    LOAD,
    NUMBER_BITS,
    ORDERED,
    STORE,
    STREAMS,
    WAVES,
    streams,
)
from wavecast.emulate.check.lacks import Lack, Unordered
from wavecast.emulate.check.records import MemoryRecord
from wavecast.emulate.lower import state
from wavecast.isa.targets import isa_target

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
CLEAN: Final = (
    6 * WAVES
)  # by wave, barriers passed + 1 at its last release if nothing came after it
OBSERVED: Final = 7 * WAVES  # observations of the workgroup so far
SEEN: Final = OBSERVED + 1  # by wave and other wave, the last operation on LDS it has polled for
CLOCK_WORDS: Final = SEEN + WAVES * WAVES
ORDERS: Final = "o"
"""Trait of accesses in programs that can order workgroups."""
RELEASE, UPDATE, OBSERVE, ACQUIRE, WRITE_BACK = range(5)
"""What an event is: low byte; the instruction is above it. `UPDATE` releases without ending the
releases before it."""
_EVENT = ctypes.CFUNCTYPE(
    None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64
)
_QUERY = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64,
    ctypes.c_uint64,
)  # fmt: skip
_NUMBERS: Final = (1 << NUMBER_BITS) - 1
_EVERYTHING: Final = _NUMBERS
_VISIBLE: Final = WAVES * STREAMS

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
    acquired, `rows` what it releases of its own workgroup, `issued` what the workgroup's waves had
    issued before (uint32[waves, 2]: loads, stores)."""

    group: int
    wave: int
    instruction: int
    number: int
    clock: Clock
    rows: np.ndarray
    issued: np.ndarray


@dataclass(slots=True)
class _Location:
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


@dataclass(slots=True)
class _WriteBack:
    """A write-back under way: its number, and the stores of each wave it covers."""

    turn: int
    wave: int
    number: int
    covered: np.ndarray


@dataclass(slots=True)
class _Group:
    """What the waves of a workgroup under way know."""

    number: int
    shared: Clock = field(default_factory=dict)
    """Acquired before the last barrier."""
    fresh: dict[int, tuple[int, Clock]] = field(default_factory=dict)
    """By wave: barriers passed at its last acquire, and what it knows since."""
    seen: Clock = field(default_factory=dict)
    """Observed before the last barrier, acquired or not."""
    pending: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """By wave: addresses it has observed since, with barriers passed and number."""
    write_backs: list[_WriteBack] = field(default_factory=list)
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
class _Thread:
    """The memory of one resident workgroup."""

    context: np.ndarray
    progress: np.ndarray
    words: np.ndarray
    group: _Group


class Clocks:
    """The clocks of one launch. `tracked` are the ranges that are observed: first and end address,
    and a word per dword (uint32) that is not 0 where it has releases. `unordered` says what was
    missing at the first conflict of each pair of instructions; `error` is the first exception."""

    def __init__(
        self, target: str, waves: int, tracked: Sequence[tuple[int, int, np.ndarray]]
    ) -> None:
        self.waves = waves
        known = set(streams(target).values())
        self.store_stream = STORE if STORE in known else LOAD
        self.writes_back = bool(capabilities(isa_target(target)).agent_write_back)
        self.tracked = tracked
        self.unordered: dict[tuple[int, int], Unordered] = {}
        self.error: BaseException | None = None
        self._locations: dict[int, _Location] = {}
        self._version = 0
        self._threads: dict[int, _Thread] = {}
        self._lock = threading.Lock()
        self._event_callback = _EVENT(self._event)
        self._query_callback = _QUERY(self._query)

    def attach(self, context: np.ndarray, progress: np.ndarray) -> None:
        """Fill the words of a host thread's context; `progress` is its `Progress.words`."""
        words = hostmemory.zeros(CLOCK_WORDS, np.uint64)
        context[log.CLOCKS] = words.ctypes.data
        for word, callback in (
            (log.ORDER_EVENT, self._event_callback),
            (log.ORDER_QUERY, self._query_callback),
        ):
            context[word] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        with self._lock:
            self._threads[context.ctypes.data] = _Thread(context, progress, words, _Group(-1))

    def _event(self, context: int, what: int, addresses: int, lanes: int, number: int) -> None:
        try:
            with self._lock:
                self._take(self._thread(context), what, addresses, lanes, number)
        except BaseException as error:  # nobody to raise it to
            self.error = self.error or error

    def _query(self, context: int, who: int, number: int, access: int, address: int) -> int:
        try:
            with self._lock:
                record = MemoryRecord.of(who, number)
                return self._judge(self._thread(context), record, access, address)
        except BaseException as error:
            self.error = self.error or error
            return 0

    def _thread(self, context: int) -> _Thread:
        thread = self._threads[context]
        number = int(thread.context[state.WORKGROUP])
        if thread.group.number != number:
            thread.group = _Group(number)
        return thread

    # Events

    def _take(self, thread: _Thread, what: int, addresses: int, lanes: int, number: int) -> None:
        event, instruction = what & 0xFF, what >> 8
        self._poll(thread)
        self._sweep(thread)
        if event == ACQUIRE:
            self._acquire(thread)
        elif event == WRITE_BACK:
            self._write_back(thread)
        else:
            table = (ctypes.c_uint64 * 64).from_address(addresses)
            dwords = {table[lane] & ~3 for lane in range(64) if lanes >> lane & 1}
            if event in (RELEASE, UPDATE):
                release = self._release(thread, instruction, number)
                for address in dwords:
                    self._store(address, release, update=event == UPDATE)
                if event == UPDATE:
                    wave, turn = thread.context[state.WAVE], thread.context[state.TURN]
                    thread.words[CLEAN + int(wave)] = turn + np.uint64(1)
                thread.words[KEY + int(thread.context[state.WAVE])] = 0
            if event == OBSERVE:
                self._observe(thread, dwords, instruction, number)
                self._keep(thread, dwords)

    def _keep(self, thread: _Thread, dwords: set[int]) -> None:
        """Let the wave at hand poll a dword."""
        wave = int(thread.context[state.WAVE])
        thread.words[KEY + wave] = thread.words[KEY_READ + wave] = 0
        if len(dwords) != 1:
            return
        (address,) = dwords
        slot = self._slot(address)
        if slot is not None:
            versions, index = slot
            thread.words[KEY + wave] = versions.ctypes.data + 4 * index
            thread.words[KEY_VERSION + wave] = int(versions[index])
            thread.group.key[wave] = address

    def _poll(self, thread: _Thread) -> None:
        """Take account of loads of the key that made no event."""
        wave = int(thread.context[state.WAVE])
        number = int(thread.words[KEY_READ + wave])
        if number and int(thread.words[KEY + wave]):
            address = thread.group.key[wave]
            pending = thread.group.pending.setdefault(wave, {})
            pending[address] = int(thread.context[state.TURN]), number
            self._keep(thread, {address})

    def _sweep(self, thread: _Thread) -> None:
        """A barrier has been passed: what the waves knew before it, all know."""
        group, turn = thread.group, int(thread.context[state.TURN])
        for wave, (when, clock) in list(group.fresh.items()):
            if when < turn:
                group.shared = join(group.shared, clock)
                del group.fresh[wave]
        for pending in group.pending.values():
            for address, (when, _) in list(pending.items()):
                if when < turn:
                    group.seen = join(group.seen, self._released(address))
                    group.before.add(address)
                    del pending[address]
        for entry in list(group.write_backs):
            if self._done(thread, entry.wave, entry.turn == turn) >= entry.number:
                when, before = group.written.get(entry.wave, (entry.turn, entry.covered))
                group.written[entry.wave] = max(when, entry.turn), np.maximum(before, entry.covered)
                group.write_backs.remove(entry)
        for wave, (when, covered) in list(group.written.items()):
            if when < turn:
                before = group.shared_written
                group.shared_written = covered if before is None else np.maximum(before, covered)
                del group.written[wave]

    def _done(self, thread: _Thread, wave: int, now: bool) -> int:
        """Number of the last write-back of a wave that is done: now, or at the last barrier."""
        if now:
            return int(thread.progress[DONE + wave * STREAMS + self.store_stream])
        return self._visible(thread, wave, self.store_stream)

    def _visible(self, thread: _Thread, wave: int, stream: int) -> int:
        """The number of a wave's stream that was reached at the last barrier."""
        turn = int(thread.context[state.TURN])
        word = int(thread.progress[(turn & 1) * _VISIBLE + wave * STREAMS + stream])
        ended = word >> 32
        return _EVERYTHING if ended and ended != turn + 1 else word & _NUMBERS

    def _known(self, thread: _Thread) -> Clock:
        """What the wave at hand has acquired."""
        group, wave = thread.group, int(thread.context[state.WAVE])
        fresh = group.fresh.get(wave)
        return group.shared if fresh is None else join(group.shared, fresh[1])

    def _observable(self, thread: _Thread) -> Clock:
        """What the wave at hand has observed and waited for, and what others had before the last
        barrier."""
        group, wave = thread.group, int(thread.context[state.WAVE])
        found = group.seen
        done = int(thread.progress[DONE + wave * STREAMS + LOAD])
        for address, (_, number) in group.pending.get(wave, {}).items():
            if number <= done:
                found = join(found, self._released(address))
        return found

    def _released(self, address: int) -> Clock:
        """The releases of a dword that no plain store has ended."""
        slot = self._slot(address)
        if slot is None or not slot[0][slot[1]]:
            return {}
        return self._locations[address].joined()

    def _acquire(self, thread: _Thread) -> None:
        group, wave = thread.group, int(thread.context[state.WAVE])
        known = self._known(thread)
        clock = join(known, self._observable(thread))
        if clock is not known:
            thread.words[CLEAN + wave] = 0
        group.fresh[wave] = int(thread.context[state.TURN]), clock
        done = int(thread.progress[DONE + wave * STREAMS + LOAD])
        pending = group.pending.get(wave, {})
        group.acquired |= group.before
        group.acquired |= {address for address, (_, number) in pending.items() if number <= done}
        outstanding = any(number > done for _, number in pending.values())
        others = any(found for author, found in group.pending.items() if author != wave)
        settled = not outstanding and not others
        thread.words[ACQUIRED + wave] = thread.words[OBSERVED] if settled else 0

    def _observe(self, thread: _Thread, dwords: set[int], instruction: int, number: int) -> None:
        group, wave = thread.group, int(thread.context[state.WAVE])
        turn = int(thread.context[state.TURN])
        pending = group.pending.setdefault(wave, {})
        for address in dwords:
            self._locations.setdefault(address, _Location())
            pending[address] = turn, number
            group.observed[address] = instruction
        thread.words[OBSERVED] += np.uint64(1)

    def _write_back(self, thread: _Thread) -> None:
        wave, turn = int(thread.context[state.WAVE]), int(thread.context[state.TURN])
        stream = self.store_stream
        covered = np.array(
            [self._visible(thread, other, stream + ORDERED) for other in range(self.waves)],
            np.uint32,
        )
        issued = int(thread.progress[ISSUED + wave * STREAMS + stream])
        covered[wave] = issued
        thread.group.write_backs.append(_WriteBack(turn, wave, issued, covered))

    def _release(self, thread: _Thread, instruction: int, number: int) -> Release:
        """What the wave at hand releases: its own accesses that are done, and those of others that
        a barrier has ordered before."""
        group, wave = thread.group, int(thread.context[state.WAVE])
        rows = np.zeros((self.waves, COLUMNS), np.uint32)
        issued = np.zeros((self.waves, 2), np.uint32)
        store = self.store_stream
        for other in range(self.waves):
            at = other * STREAMS
            issued[other] = (
                thread.progress[ISSUED + at + LOAD],
                thread.progress[ISSUED + at + store],
            )
            if other == wave:
                loads = int(thread.progress[DONE + at + LOAD])
                stores = int(thread.progress[DONE + at + store])
            else:
                loads = self._visible(thread, other, LOAD + ORDERED)
                stores = self._visible(thread, other, store + ORDERED)
            rows[other] = loads, stores, stores
        if self.writes_back:
            covered = np.zeros(self.waves, np.uint32)
            for found in (group.shared_written, group.written.get(wave, (0, None))[1]):
                if found is not None:
                    covered = np.maximum(covered, found)
            rows[:, WRITTEN] = np.minimum(covered, rows[:, STORED])
        known = self._known(thread)
        return Release(group.number, wave, instruction, number, known, rows, issued)

    def _store(self, address: int, release: Release, *, update: bool) -> None:
        found = self._slot(address)
        if found is None:
            return
        versions, index = found
        location = self._locations.setdefault(address, _Location())
        if not update or not versions[index]:  # the first one, or behind a plain store
            location.clock, location.waiting, location.last = {}, [], {}
        waiting = location.waiting
        if waiting and (waiting[-1].group, waiting[-1].wave) == (release.group, release.wave):
            waiting.pop()
        waiting.append(release)
        location.last[release.group] = release
        self._version = self._version % 0xFFFFFFFF + 1
        versions[index] = self._version

    def _slot(self, address: int) -> tuple[np.ndarray, int] | None:
        """Where native code sees that a dword has releases."""
        for first, end, versions in self.tracked:
            if first <= address < end:
                return versions, (address - first) // 4
        return None

    # Queries

    def _judge(self, thread: _Thread, record: MemoryRecord, access: int, address: int) -> int:
        stored, loads = bool(access & 1), bool(access >> 1 & 1)
        mine, instruction = Atomicity(access >> 2 & 7), access >> 8
        self._poll(thread)
        self._sweep(thread)
        known = self._known(thread)
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
        if coherent and _reaches(self._observable(thread), record, stored):
            return 0
        if self._synchronised(thread.group, record, address & ~3, coherent=coherent):
            return 0
        key = instruction, record.instruction
        if key not in self.unordered:
            self.unordered[key] = self._explain(thread, record, stored)
        return 1

    def _synchronised(
        self, group: _Group, record: MemoryRecord, address: int, *, coherent: bool
    ) -> bool:
        """Whether a record is of the store that released, or one before, at the same address."""
        known = group.observed if coherent else group.acquired
        if record.atomicity not in ATOMIC or record.group is None or address not in known:
            return False
        release = self._locations[address].last.get(record.group)
        return (
            release is not None and release.wave == record.wave and release.number >= record.number
        )

    def _explain(self, thread: _Thread, record: MemoryRecord, stored: bool) -> Unordered:
        """Why a record of another workgroup is not ordered: by the releases of that workgroup that
        this one has observed."""
        assert record.group is not None
        best = Unordered(Lack.NOTHING_SHARED)
        for address, observer in thread.group.observed.items():
            release = self._locations[address].last.get(record.group)
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
    if number > issued[int(record.stream == STORE)]:
        return Lack.LATER
    if row[column(record, stored=stored)] >= number:
        return Lack.ACQUIRE
    done = row[STORED if stored else LOADED] >= number
    if record.wave != release.wave and not done:
        return Lack.BARRIER
    return Lack.WRITE_BACK if stored and done else Lack.WAIT


__all__ = [
    "ACQUIRE",
    "ACQUIRED",
    "CLEAN",
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
    "Clocks",
    "column",
]
