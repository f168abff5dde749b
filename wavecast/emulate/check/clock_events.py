"""What happens to clocks: releases, observations, acquires, write-backs and barriers.

A wave acquires the releases of what it has loaded atomically, once it has waited for the load, by
invalidating its caches. A barrier joins what the waves of a workgroup know. A wave that polls one
dword makes an event only where its releases have changed.

The only module that changes release sequences, the versions in `tracked` and what workgroups know.
It decides no order of two accesses. Callers have the launch's lock (`launch_clocks.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final

import numpy as np

from wavecast.arch import capabilities
from wavecast.emulate.check.clocks import (
    ACQUIRE,
    ACQUIRED,
    CLEAN,
    COLUMNS,
    KEY,
    KEY_READ,
    KEY_VERSION,
    OBSERVE,
    OBSERVED,
    RELEASE,
    STORED,
    UPDATE,
    WRITE_BACK,
    WRITTEN,
    Clock,
    Observation,
    Release,
    ReleaseSequence,
    ResidentClock,
    WriteBack,
    join,
)
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
from wavecast.emulate.lower import state
from wavecast.isa.targets import isa_target

_NUMBERS: Final = (1 << NUMBER_BITS) - 1
_EVERYTHING: Final = _NUMBERS
_VISIBLE: Final = WAVES * STREAMS


class ClockEvents:
    """The releases of one launch. `tracked` are the ranges that are observed: first and end
    address, and a word per dword (uint32) that is not 0 where it has releases. `sequences` are the
    release sequences by address of the dword."""

    def __init__(
        self, target: str, waves: int, tracked: Sequence[tuple[int, int, np.ndarray]]
    ) -> None:
        self.waves = waves
        known = set(streams(target).values())
        self.store_stream = STORE if STORE in known else LOAD
        self.writes_back = bool(capabilities(isa_target(target)).agent_write_back)
        self.tracked = tracked
        self.sequences: dict[int, ReleaseSequence] = {}
        self._version = 0

    def record(
        self, thread: ResidentClock, what: int, addresses: int, lanes: int, number: int
    ) -> None:
        """Record an event: `what` has its kind in the low byte and the instruction above it;
        `addresses` points to one address per lane, `lanes` is the mask of those that take part and
        `number` that of the access in its stream."""
        event, instruction = what & 0xFF, what >> 8
        self.catch_up(thread)
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
                    wave, phase = thread.context[state.WAVE], thread.context[state.PHASE]
                    thread.words[CLEAN + int(wave)] = phase + np.uint64(1)
                thread.words[KEY + int(thread.context[state.WAVE])] = 0
            if event == OBSERVE:
                self._observe(thread, dwords, instruction, number)
                self._keep(thread, dwords)

    def _keep(self, thread: ResidentClock, dwords: set[int]) -> None:
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

    def catch_up(self, thread: ResidentClock) -> None:
        """Take account of polls and barriers since the last event or query."""
        self._poll(thread)
        self._sweep(thread)

    def _poll(self, thread: ResidentClock) -> None:
        """Take account of loads of the key that made no event."""
        wave = int(thread.context[state.WAVE])
        number = int(thread.words[KEY_READ + wave])
        if number and int(thread.words[KEY + wave]):
            address = thread.group.key[wave]
            pending = thread.group.pending.setdefault(wave, {})
            before = pending.get(address)
            released = self._released(address) if before is None else before.released
            phase = int(thread.context[state.PHASE])
            pending[address] = Observation(phase, number, released)
            self._keep(thread, {address})

    def _sweep(self, thread: ResidentClock) -> None:
        """A barrier has been passed: what the waves knew before it, all know."""
        group, phase = thread.group, int(thread.context[state.PHASE])
        for wave, (when, clock) in list(group.fresh.items()):
            if when < phase:
                group.shared = join(group.shared, clock)
                del group.fresh[wave]
        for pending in group.pending.values():
            for address, observation in list(pending.items()):
                if observation.phase < phase:
                    group.seen = join(group.seen, self._observed(address, observation))
                    group.before.add(address)
                    del pending[address]
        for entry in list(group.write_backs):
            if self._done(thread, entry.wave, entry.phase == phase) >= entry.number:
                when, before = group.written.get(entry.wave, (entry.phase, entry.covered))
                group.written[entry.wave] = (
                    max(when, entry.phase),
                    np.maximum(before, entry.covered),
                )
                group.write_backs.remove(entry)
        for wave, (when, covered) in list(group.written.items()):
            if when < phase:
                before = group.shared_written
                group.shared_written = covered if before is None else np.maximum(before, covered)
                del group.written[wave]

    def _done(self, thread: ResidentClock, wave: int, now: bool) -> int:
        """Number of the last write-back of a wave that is done: now, or at the last barrier."""
        if now:
            return int(thread.progress[DONE + wave * STREAMS + self.store_stream])
        return self._visible(thread, wave, self.store_stream)

    def _visible(self, thread: ResidentClock, wave: int, stream: int) -> int:
        """The number of a wave's stream that was reached at the last barrier."""
        phase = int(thread.context[state.PHASE])
        word = int(thread.progress[(phase & 1) * _VISIBLE + wave * STREAMS + stream])
        ended = word >> 32
        return _EVERYTHING if ended and ended != phase + 1 else word & _NUMBERS

    def known(self, thread: ResidentClock) -> Clock:
        """What the wave at hand has acquired."""
        group, wave = thread.group, int(thread.context[state.WAVE])
        fresh = group.fresh.get(wave)
        return group.shared if fresh is None else join(group.shared, fresh[1])

    def observable(self, thread: ResidentClock) -> Clock:
        """What the wave at hand has observed and waited for, and what others had before the last
        barrier."""
        group, wave = thread.group, int(thread.context[state.WAVE])
        found = group.seen
        done = int(thread.progress[DONE + wave * STREAMS + LOAD])
        for address, observation in group.pending.get(wave, {}).items():
            if observation.number <= done:
                found = join(found, self._observed(address, observation))
        return found

    def _observed(self, address: int, observation: Observation) -> Clock:
        """What a load may have read: events come before their loads, so that another host thread
        may have released in between."""
        return join(observation.released, self._released(address))

    def _released(self, address: int) -> Clock:
        """The releases of a dword that no plain store has ended."""
        slot = self._slot(address)
        if slot is None or not slot[0][slot[1]]:
            return {}
        return self.sequences[address].joined()

    def _acquire(self, thread: ResidentClock) -> None:
        group, wave = thread.group, int(thread.context[state.WAVE])
        known = self.known(thread)
        clock = join(known, self.observable(thread))
        if clock is not known:
            thread.words[CLEAN + wave] = 0
        group.fresh[wave] = int(thread.context[state.PHASE]), clock
        done = int(thread.progress[DONE + wave * STREAMS + LOAD])
        pending = group.pending.get(wave, {})
        group.acquired |= group.before
        group.acquired |= {at for at, observation in pending.items() if observation.number <= done}
        outstanding = any(observation.number > done for observation in pending.values())
        others = any(found for author, found in group.pending.items() if author != wave)
        settled = not outstanding and not others
        thread.words[ACQUIRED + wave] = thread.words[OBSERVED] if settled else 0

    def _observe(
        self, thread: ResidentClock, dwords: set[int], instruction: int, number: int
    ) -> None:
        group, wave = thread.group, int(thread.context[state.WAVE])
        phase = int(thread.context[state.PHASE])
        pending = group.pending.setdefault(wave, {})
        for address in dwords:
            self.sequences.setdefault(address, ReleaseSequence())
            pending[address] = Observation(phase, number, self._released(address))
            group.observed[address] = instruction
        thread.words[OBSERVED] += np.uint64(1)

    def _write_back(self, thread: ResidentClock) -> None:
        wave, phase = int(thread.context[state.WAVE]), int(thread.context[state.PHASE])
        stream = self.store_stream
        covered = np.array(
            [self._visible(thread, other, stream + ORDERED) for other in range(self.waves)],
            np.uint32,
        )
        issued = int(thread.progress[ISSUED + wave * STREAMS + stream])
        covered[wave] = issued
        thread.group.write_backs.append(WriteBack(phase, wave, issued, covered))

    def _release(self, thread: ResidentClock, instruction: int, number: int) -> Release:
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
        known = self.known(thread)
        return Release(group.number, wave, instruction, number, known, rows, issued)

    def _store(self, address: int, release: Release, *, update: bool) -> None:
        found = self._slot(address)
        if found is None:
            return
        versions, index = found
        location = self.sequences.setdefault(address, ReleaseSequence())
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


__all__ = ["ClockEvents"]
