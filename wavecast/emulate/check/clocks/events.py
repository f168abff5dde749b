"""What happens to clocks: releases, observations, acquires, write-backs and barriers.

A wave acquires the releases of what it has loaded atomically, once it has waited for the load, by
invalidating its caches. A barrier joins what the waves of a workgroup know. A wave that polls one
dword makes an event only where its releases have changed.

The only module that changes release sequences, their versions and what workgroups know. It decides
no order of two accesses. Callers have the lock (`launch_clocks.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.arch import capabilities
from wavecast.emulate.check.clocks.clocks import (
    ACQUIRE,
    ARRIVE,
    CLEAN,
    KEY,
    KEY_READ,
    KEY_READER,
    KEY_SLOTS,
    KEY_VERSIONS,
    KEYS,
    LANES,
    LOADED,
    OBSERVE,
    PASS,
    PHASE_SHIFT,
    RELEASE,
    STORED,
    UNACQUIRED,
    UPDATE,
    WRITE_BACK,
    WRITTEN,
    Observation,
    PolledDwords,
    ResidentClock,
    WriteBack,
)
from wavecast.emulate.check.clocks.release_memory import ReleaseMemory
from wavecast.emulate.check.clocks.vector_clock import (
    Clock,
    Observed,
    Release,
    ReleaseSequence,
    join_clocks,
    joined_observed,
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
_LANE_ADDRESSES: Final = ctypes.c_uint64 * 64
_FEW: Final = 8
"""Lanes whose addresses are read one by one."""


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
        self._clusters: dict[int, ReleaseSequence] = {}
        """By the address of the barrier of a cluster."""
        target_streams = set(streams(target).values())
        self.store_stream = STORE if STORE in target_streams else LOAD
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
        elif event in (ARRIVE, PASS):
            self._meet(thread, event, instruction, number)
        else:
            numbers, lane_addresses = _addresses(addresses, lanes)
            dwords = tuple(dict.fromkeys(lane_addresses.tolist()))
            if event in (RELEASE, UPDATE):
                release = self._release(thread, instruction, number)
                for address in dwords:
                    self._store(address, release, update=event == UPDATE)
                if event == UPDATE:
                    wave, phase = thread.context[state.WAVE], thread.context[state.PHASE]
                    thread.words[CLEAN + int(wave)] = phase + np.uint64(1)
                self._drop_keys(thread)
            if event == OBSERVE:
                self._observe(thread, dwords, instruction, number)
                self._keep(thread, instruction, dwords, numbers, lane_addresses, lanes)

    def _meet(self, thread: ResidentClock, event: int, instruction: int, named: int) -> None:
        """The barrier of a cluster, or a `named` one of the workgroup (its index + 1): who passes
        it knows what those who arrived have released."""
        if named:
            sequence = thread.group.named.setdefault(named, ReleaseSequence())
        elif barrier := int(thread.context[state.CLUSTER]):
            sequence = self._clusters.setdefault(barrier, ReleaseSequence())
        else:
            return
        if event == ARRIVE:
            release = self._release(thread, instruction, 0)
            release.rows[:, WRITTEN] = release.rows[:, STORED]  # one L2: nothing is written back
            sequence.add(release)
            return
        wave, phase = int(thread.context[state.WAVE]), int(thread.context[state.PHASE])
        observed = sequence.observe(self.launch.gpu, system=False)
        thread.words[CLEAN + wave] = 0
        clock = join_clocks((self.acquired_clock(thread), observed.near))
        thread.group.fresh[wave] = phase, clock

    def _keep(
        self,
        thread: ResidentClock,
        instruction: int,
        dwords: tuple[int, ...],
        numbers: np.ndarray,
        addresses: np.ndarray,
        lanes: int,
    ) -> None:
        """Let an instruction of the wave at hand poll dwords of one range: those at the addresses
        of some lanes."""
        key = int(thread.context[state.WAVE]) * KEYS + instruction % KEYS
        thread.words[KEY + key] = thread.words[KEY_READ + key] = 0
        lowest, highest = self.memory.slot(min(dwords)), self.memory.slot(max(dwords))
        if lowest is None or highest is None or lowest[0] is not highest[0]:
            return
        versions, first = lowest
        indices = ((addresses - np.uint64(min(dwords))) >> np.uint64(2)).astype(np.int64) + first
        thread.group.polled[key] = PolledDwords(dwords, numbers, versions, indices)
        thread.words[KEY_SLOTS + key * LANES + numbers] = versions.ctypes.data + 4 * indices
        thread.words[KEY_VERSIONS + key * LANES + numbers] = versions[indices]
        thread.words[KEY + key] = lanes

    def _drop_keys(self, thread: ResidentClock) -> None:
        """Let every load of the wave at hand make an event."""
        first = KEY + int(thread.context[state.WAVE]) * KEYS
        thread.words[first : first + KEYS] = 0

    def catch_up(self, thread: ResidentClock) -> None:
        """Take account of polls and barriers since the last event or query."""
        self._poll(thread)
        self._sweep(thread)

    def _poll(self, thread: ResidentClock) -> None:
        """Take account of loads of keys that made no event, by any wave of the workgroup."""
        most = self.waves * KEYS
        read = thread.words[KEY_READ : KEY_READ + most]
        if read.any():
            kept = thread.words[KEY : KEY + most]
            for key in np.flatnonzero((read != 0) & (kept != 0)).tolist():
                self._poll_key(thread, key)

    def _poll_key(self, thread: ResidentClock, key: int) -> None:
        group, polled = thread.group, thread.group.polled[key]
        dwords, number = polled.dwords, int(thread.words[KEY_READ + key])
        pending = group.pending.setdefault(key // KEYS, {})
        before = pending.get(dwords)
        reader = int(thread.words[KEY_READER + key])
        phase, instruction = reader >> PHASE_SHIFT, reader & (1 << PHASE_SHIFT) - 1
        group.observed.update(dict.fromkeys(dwords, instruction))
        system = self._is_system(instruction)
        released = self._visible_releases(dwords, system) if before is None else before.released
        pending[dwords] = Observation(phase, number, released, system)
        thread.words[KEY_READ + key] = 0
        at, now = KEY_VERSIONS + key * LANES + polled.lanes, polled.versions[polled.indices]
        if (thread.words[at] != now).any():
            thread.words[at] = now
            _set_unacquired(thread, key // KEYS)

    def _sweep(self, thread: ResidentClock) -> None:
        """A barrier has been passed: what the waves knew before it, all know."""
        group, phase = thread.group, int(thread.context[state.PHASE])
        if phase > group.swept:
            group.swept = phase
            fresh = {wave: stamp for wave, stamp in group.fresh.items() if stamp[0] >= phase}
            if len(fresh) < len(group.fresh):
                old = (clock for when, clock in group.fresh.values() if when < phase)
                group.shared, group.fresh = join_clocks((group.shared, *old)), fresh
            observations = [group.seen]
            for wave, pending in group.pending.items():
                earlier = [at for at, observation in pending.items() if observation.phase < phase]
                for dwords in earlier:
                    observations += self._observable_releases(dwords, pending.pop(dwords))
                    group.before.update(dwords)
                if earlier:
                    self._let_all_acquire(thread, wave)
            group.seen = joined_observed(observations)
        if not group.write_backs:
            return
        for entry in list(group.write_backs):
            if self._last_write_back(thread, entry.wave, entry.phase == phase) >= entry.number:
                group.written.add(entry)
                if entry.system:
                    group.written_far.add(entry)
                group.write_backs.remove(entry)
        group.written.sweep(phase)
        group.written_far.sweep(phase)

    def _let_all_acquire(self, thread: ResidentClock, wave: int) -> None:
        """What a wave had observed before the barrier and not acquired, every wave may acquire."""
        for word in (UNACQUIRED, UNACQUIRED + 1):
            if int(thread.words[word]) >> wave & 1:
                thread.words[word] = (1 << self.waves) - 1

    def _last_write_back(self, thread: ResidentClock, wave: int, now: bool) -> int:
        """Number of the last write-back of a wave that is done: now, or at the last barrier."""
        if now:
            return int(thread.progress[DONE + wave * STREAMS + self.store_stream])
        return self._visible(thread, wave, self.store_stream)

    def _visible(self, thread: ResidentClock, wave: int, stream: int) -> int:
        """The number of a wave's stream that was reached at the last barrier."""
        phase = int(thread.context[state.PHASE])
        word = int(thread.progress[(phase & 1) * _VISIBLE + wave * STREAMS + stream])
        end_phase = word >> 32
        return _EVERYTHING if end_phase and end_phase != phase + 1 else word & _NUMBERS

    def acquired_clock(self, thread: ResidentClock) -> Clock:
        """What the wave at hand has acquired."""
        group, wave = thread.group, int(thread.context[state.WAVE])
        if wave not in group.fresh:
            return group.shared
        phase, fresh = group.fresh[wave]
        clock = join_clocks((fresh, group.shared))
        group.fresh[wave] = phase, clock
        return clock

    def observable(self, thread: ResidentClock) -> Observed:
        """What the wave at hand has observed and waited for, and what others had before the last
        barrier."""
        return joined_observed(self._observations(thread))

    def _observations(self, thread: ResidentClock) -> list[Observed]:
        group, wave = thread.group, int(thread.context[state.WAVE])
        observations = [group.seen]
        completions = int(thread.progress[DONE + wave * STREAMS + LOAD])
        for dwords, observation in group.pending.get(wave, {}).items():
            if observation.number <= completions:
                observations += self._observable_releases(dwords, observation)
        return observations

    def _observable_releases(
        self, dwords: tuple[int, ...], observation: Observation
    ) -> tuple[Observed, Observed]:
        """What a load may have read: events come before their loads, so that another host thread
        may have released in between."""
        return observation.released, self._visible_releases(dwords, observation.system)

    def _visible_releases(self, dwords: tuple[int, ...], system: bool) -> Observed:
        """The releases of dwords that no plain store has ended, as a load of agent or `system`
        scope observes them."""
        system = system and bool(self.launch.number)
        return self.memory.observe(dwords, self.launch.gpu, system=system)

    def _is_system(self, instruction: int) -> bool:
        return instruction in self.launch.system

    def _acquire(self, thread: ResidentClock, *, system: bool) -> None:
        group, wave = thread.group, int(thread.context[state.WAVE])
        previous_clock = self.acquired_clock(thread)
        learned = group.learned(wave, system=system)
        observations = [
            observed for observed in self._observations(thread) if id(observed) not in learned
        ]
        clock = join_clocks((previous_clock, *_clocks_of(observations, system=system)))
        learned.update((id(observed), observed) for observed in observations)
        if self._knows_more(group.number, previous_clock, clock):
            thread.words[CLEAN + wave] = 0
        group.fresh[wave] = int(thread.context[state.PHASE]), clock
        completions = int(thread.progress[DONE + wave * STREAMS + LOAD])
        pending = group.pending.get(wave, {})
        behind = [
            at
            for dwords, observation in pending.items()
            if observation.number <= completions
            for at in dwords
        ]
        for acquired in (group.acquired, *((group.acquired_far,) if system else ())):
            acquired.update(behind)
            acquired |= group.before
        outstanding = any(observation.number > completions for observation in pending.values())
        if not outstanding:
            mine = np.uint64(1 << wave)
            whole = system or not self.launch.number
            for word in (UNACQUIRED, *((UNACQUIRED + 1,) if whole else ())):
                thread.words[word] &= ~mine

    def _knows_more(self, group: int, previous_clock: Clock, clock: Clock) -> bool:
        """Whether a later clock of a wave knows more of other workgroups: what it has to pass on.
        A wave that polls by atomic operations acquires its own ones."""
        if clock is previous_clock:
            return False
        mine = previous_clock.releases
        return any(
            author[0] != group and mine.get(author) is not release
            for author, release in clock.releases.items()
        )

    def _observe(
        self, thread: ResidentClock, dwords: tuple[int, ...], instruction: int, number: int
    ) -> None:
        group, wave = thread.group, int(thread.context[state.WAVE])
        phase = int(thread.context[state.PHASE])
        pending = group.pending.setdefault(wave, {})
        system = self._is_system(instruction)
        pending[dwords] = Observation(phase, number, self._visible_releases(dwords, system), system)
        group.observed.update(dict.fromkeys(dwords, instruction))
        _set_unacquired(thread, wave)

    def _write_back(self, thread: ResidentClock, *, system: bool) -> None:
        wave, phase = int(thread.context[state.WAVE]), int(thread.context[state.PHASE])
        stream = self.store_stream
        stores = self._visible_of_all(thread)[:, stream + ORDERED].copy()
        issued = int(thread.progress[ISSUED + wave * STREAMS + stream])
        stores[wave] = issued
        thread.group.write_backs.append(WriteBack(phase, wave, issued, stores, system))

    def _release(self, thread: ResidentClock, instruction: int, number: int) -> Release:
        """What the wave at hand releases: its own accesses that are done, and those of others that
        a barrier has ordered before."""
        group, wave = thread.group, int(thread.context[state.WAVE])
        store = self.store_stream
        mine, words = wave * STREAMS, thread.progress
        issued = words[ISSUED : ISSUED + self.waves * STREAMS].reshape(-1, STREAMS)
        table = self._visible_of_all(thread)
        rows = table.take((LOAD + ORDERED, store + ORDERED, store + ORDERED), axis=1)
        assert rows.flags.c_contiguous  # native code reads them
        rows[wave, LOADED] = words[DONE + mine + LOAD]
        rows[wave, STORED:] = words[DONE + mine + store]
        far = rows if not self.launch.number else self._far(thread, table, rows)
        if self.writes_back:
            written = group.written.covered_stores(wave, self.waves)
            np.minimum(written, rows[:, STORED], out=rows[:, WRITTEN])
        return Release(
            group.number, wave, instruction, number, self.acquired_clock(thread), rows,
            issued.take((LOAD, store), axis=1).astype(np.uint32), far, self.launch.gpu,
            self.launch.number, self._is_system(instruction),
        )  # fmt: skip

    def _far(self, thread: ResidentClock, table: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """What of `rows` other GPUs get: of other waves what these have waited for, as a barrier
        may not wait for stores on their way to other GPUs."""
        group, wave = thread.group, int(thread.context[state.WAVE])
        far = table.take((LOAD, self.store_stream, self.store_stream), axis=1)
        far[wave] = rows[wave]
        if self.writes_back_far:
            written = group.written_far.covered_stores(wave, self.waves)
            np.minimum(written, far[:, STORED], out=far[:, WRITTEN])
        return far

    def _visible_of_all(self, thread: ResidentClock) -> np.ndarray:
        """`_visible` of all waves and streams: uint32[waves, streams]."""
        phase = int(thread.context[state.PHASE])
        first = (phase & 1) * _VISIBLE
        words = thread.progress[first : first + self.waves * STREAMS]
        table = words.astype(np.uint32) & np.uint32(_NUMBERS)
        end_phases = words >> np.uint64(32)
        if end_phases.any():
            table[(end_phases != 0) & (end_phases != phase + 1)] = _EVERYTHING
        table = table.reshape(self.waves, STREAMS)
        if thread.named_seen.size:
            seen = thread.named_seen[int(thread.context[state.WAVE]), : self.waves]
            np.maximum(table, seen.astype(np.uint32) & np.uint32(_NUMBERS), out=table)
        return table

    def _store(self, address: int, release: Release, *, update: bool) -> None:
        slot = self.memory.slot(address)
        if slot is None:
            return
        versions, index = slot
        sequence = self.memory.sequence(address)
        if not update or not versions[index]:  # the first one, or behind a plain store
            sequence.clear()
        if release.launch and release.system:
            sequence.drop(self.launch.ended)
        sequence.add(release)
        self.memory.renew(versions, index)


def _set_unacquired(thread: ResidentClock, wave: int) -> None:
    """A wave has observed something. What it acquires before a barrier, all know behind it."""
    thread.words[UNACQUIRED : UNACQUIRED + 2] |= np.uint64(1 << wave)


def _clocks_of(observations: Iterable[Observed], *, system: bool) -> Iterator[Clock]:
    """What an acquire takes."""
    for observed in observations:
        yield observed.near
        if system and observed.far is not observed.near:
            yield observed.far


def _addresses(addresses: int, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the lanes of a mask (int64), and the dwords (uint64) at which each of them is,
    of the addresses of all lanes at `addresses`."""
    lane_addresses = _LANE_ADDRESSES.from_address(addresses)
    if lanes.bit_count() <= _FEW:
        few = [lane for lane in range(lanes.bit_length()) if lanes >> lane & 1]
        dwords = np.array([lane_addresses[lane] & ~3 for lane in few], np.uint64)
        return np.array(few), dwords
    table = np.ctypeslib.as_array(lane_addresses)
    mask = np.frombuffer(lanes.to_bytes(8, "little"), np.uint8)
    numbers = np.flatnonzero(np.unpackbits(mask, bitorder="little"))
    return numbers, table[numbers] & np.uint64(~3 & (1 << 64) - 1)


__all__ = ["ClockEvents", "ClockLaunch"]
