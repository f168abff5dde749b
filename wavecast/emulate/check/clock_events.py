"""What happens to clocks: releases, observations, acquires, write-backs and barriers.

A wave acquires the releases of what it has loaded atomically, once it has waited for the load, by
invalidating its caches. A barrier joins what the waves of a workgroup know. A wave that polls one
dword makes an event only where its releases have changed.

The only module that changes release sequences, their versions and what workgroups know. It decides
no order of two accesses. Callers have the lock (`launch_clocks.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
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
    Observed,
    Release,
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
from wavecast.emulate.check.release_memory import ReleaseMemory
from wavecast.emulate.lower import state
from wavecast.isa.targets import isa_target

_NUMBERS: Final = (1 << NUMBER_BITS) - 1
_EVERYTHING: Final = _NUMBERS
_VISIBLE: Final = WAVES * STREAMS


def _nothing(launch: int) -> bool:
    del launch
    return False


@dataclass(frozen=True, slots=True)
class ClockLaunch:
    """A launch among those of a node: its `number` (0: launches are not compared), that of its
    first workgroup, which instructions are of `system` scope, and which launches `ended` before."""

    number: int = 0
    gpu: int = 0
    first: int = 0
    system: frozenset[int] = frozenset()
    ended: Callable[[int], bool] = _nothing


class ClockEvents:
    """The releases of one `launch`, in a `memory` that others may share."""

    def __init__(self, target: str, waves: int, memory: ReleaseMemory, launch: ClockLaunch) -> None:
        self.waves, self.memory, self.launch = waves, memory, launch
        known = set(streams(target).values())
        self.store_stream = STORE if STORE in known else LOAD
        able = capabilities(isa_target(target))
        self.writes_back = bool(able.agent_write_back)
        self.writes_back_far = bool(able.system_write_back)

    def record(
        self, thread: ResidentClock, what: int, addresses: int, lanes: int, number: int
    ) -> None:
        """Record an event: `what` has its kind in the low byte and the instruction above it;
        `addresses` points to one address per lane, `lanes` is the mask of those that take part and
        `number` that of the access in its stream."""
        event, instruction = what & 0xFF, what >> 8
        self.catch_up(thread)
        if event == ACQUIRE:
            self._acquire(thread, system=self._is_system(instruction))
        elif event == WRITE_BACK:
            self._write_back(thread, system=self._is_system(instruction))
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
        slot = self.memory.slot(address)
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
            system = self._is_system(thread.group.observed[address])
            released = self._released(address, system) if before is None else before.released
            phase = int(thread.context[state.PHASE])
            pending[address] = Observation(phase, number, released, system)
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
                    group.seen = group.seen.joined(self._observed(address, observation))
                    group.before.add(address)
                    del pending[address]
        for entry in list(group.write_backs):
            if self._done(thread, entry.wave, entry.phase == phase) >= entry.number:
                group.written.add(entry)
                if entry.system:
                    group.written_far.add(entry)
                group.write_backs.remove(entry)
        group.written.sweep(phase)
        group.written_far.sweep(phase)

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

    def observable(self, thread: ResidentClock) -> Observed:
        """What the wave at hand has observed and waited for, and what others had before the last
        barrier."""
        group, wave = thread.group, int(thread.context[state.WAVE])
        found = group.seen
        done = int(thread.progress[DONE + wave * STREAMS + LOAD])
        for address, observation in group.pending.get(wave, {}).items():
            if observation.number <= done:
                found = found.joined(self._observed(address, observation))
        return found

    def _observed(self, address: int, observation: Observation) -> Observed:
        """What a load may have read: events come before their loads, so that another host thread
        may have released in between."""
        return observation.released.joined(self._released(address, observation.system))

    def _released(self, address: int, system: bool) -> Observed:
        """The releases of a dword that no plain store has ended, as a load of agent or `system`
        scope observes them."""
        slot = self.memory.slot(address)
        if slot is None or not slot[0][slot[1]]:
            return _UNOBSERVED
        sequence, gpu = self.memory.sequences[address], self.launch.gpu
        near = sequence.joined(gpu, system=False)
        if not self.launch.number or not system:
            return Observed(near, near)
        return Observed(near, sequence.joined(gpu, system=True))

    def _is_system(self, instruction: int) -> bool:
        return instruction in self.launch.system

    def _acquire(self, thread: ResidentClock, *, system: bool) -> None:
        group, wave = thread.group, int(thread.context[state.WAVE])
        known, observed = self.known(thread), self.observable(thread)
        clock = join(known, observed.near)
        if system:
            clock = join(clock, observed.far)
        if self._learned(group.number, known, clock):
            thread.words[CLEAN + wave] = 0
        group.fresh[wave] = int(thread.context[state.PHASE]), clock
        done = int(thread.progress[DONE + wave * STREAMS + LOAD])
        pending = group.pending.get(wave, {})
        behind = {at for at, observation in pending.items() if observation.number <= done}
        group.acquired |= group.before | behind
        if system:
            group.acquired_far |= group.before | behind
        outstanding = any(observation.number > done for observation in pending.values())
        others = any(found for author, found in group.pending.items() if author != wave)
        narrow = self.launch.number and not system
        settled = not outstanding and not others and not narrow
        thread.words[ACQUIRED + wave] = thread.words[OBSERVED] if settled else 0

    def _learned(self, group: int, known: Clock, clock: Clock) -> bool:
        """Whether a later clock of a wave knows more of other workgroups: what it has to pass on.
        A wave that polls by atomic operations acquires its own ones."""
        if clock is known:
            return False
        own = {group, -self.launch.number} if self.launch.number else {group}
        return any(rows is not known.get(key) for key, rows in clock.items() if key not in own)

    def _observe(
        self, thread: ResidentClock, dwords: set[int], instruction: int, number: int
    ) -> None:
        group, wave = thread.group, int(thread.context[state.WAVE])
        phase = int(thread.context[state.PHASE])
        pending = group.pending.setdefault(wave, {})
        system = self._is_system(instruction)
        for address in dwords:
            self.memory.sequence(address)
            pending[address] = Observation(phase, number, self._released(address, system), system)
            group.observed[address] = instruction
        thread.words[OBSERVED] += np.uint64(1)

    def _write_back(self, thread: ResidentClock, *, system: bool) -> None:
        wave, phase = int(thread.context[state.WAVE]), int(thread.context[state.PHASE])
        stream = self.store_stream
        covered = np.array(
            [self._visible(thread, other, stream + ORDERED) for other in range(self.waves)],
            np.uint32,
        )
        issued = int(thread.progress[ISSUED + wave * STREAMS + stream])
        covered[wave] = issued
        thread.group.write_backs.append(WriteBack(phase, wave, issued, covered, system))

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
        far = rows if not self.launch.number else self._far(thread, rows)
        if self.writes_back:
            written = group.written.covered(wave, self.waves)
            rows[:, WRITTEN] = np.minimum(written, rows[:, STORED])
        return Release(
            group.number, wave, instruction, number, self.known(thread), rows, issued, far,
            self.launch.gpu, self.launch.number, self._is_system(instruction),
        )  # fmt: skip

    def _far(self, thread: ResidentClock, rows: np.ndarray) -> np.ndarray:
        """What of `rows` other GPUs get: of other waves what these have waited for, as a barrier
        may not wait for stores on their way to other GPUs."""
        group, wave, store = thread.group, int(thread.context[state.WAVE]), self.store_stream
        far = rows.copy()
        for other in range(self.waves):
            if other != wave:
                stores = self._visible(thread, other, store)
                far[other] = self._visible(thread, other, LOAD), stores, stores
        if self.writes_back_far:
            written = group.written_far.covered(wave, self.waves)
            far[:, WRITTEN] = np.minimum(written, far[:, STORED])
        return far

    def _store(self, address: int, release: Release, *, update: bool) -> None:
        found = self.memory.slot(address)
        if found is None:
            return
        versions, index = found
        sequence = self.memory.sequence(address)
        if not update or not versions[index]:  # the first one, or behind a plain store
            sequence.clear()
        if release.launch and release.system:
            sequence.drop(self.launch.ended)
        sequence.add(release)
        self.memory.renew(versions, index)


_UNOBSERVED: Final = Observed()

__all__ = ["ClockEvents", "ClockLaunch"]
