"""A profiled timeline with other times of its kernels: when everything would start and end.

A kernel starts after its call and after the one before it on its stream, by as much later as in
the profile; waits between streams so keep their time. A call that waits for the device ends after
the kernels that it waited for. The host takes its measured times, times a factor. Gaps keep their
times where the file lacks what may have run in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wavecast.profiles.profile import NONE, Activities, Profile
from wavecast.profiles.summary import union, waits_for_device

_LAUNCH, _WAIT = range(2)
_TOGETHER: Final = 1_000
"""Nanoseconds between kernels of one graph, where the profile has a longer gap (assumed)."""


@dataclass(frozen=True, slots=True)
class ProfileTimeline:
    """Starts and ends of the launches and copies of a profile, launches first, in nanoseconds."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    devices: NDArray[np.int64]

    @property
    def span(self) -> int:
        """From the first start to the last end, in nanoseconds."""
        return int(self.ends.max() - self.starts.min()) if len(self.ends) else 0

    @property
    def busy(self) -> int:
        """Nanoseconds in which something runs, the sum over devices."""
        return sum(
            int(np.diff(union(self.intervals(device)), axis=1).sum())
            for device in np.unique(self.devices).tolist()
        )

    def intervals(self, device: int) -> NDArray[np.int64]:
        """(start, end) of everything on a device."""
        mine = self.devices == device
        return np.stack([self.starts[mine], self.ends[mine]], axis=1)


def measured_timeline(profile: Profile) -> ProfileTimeline:
    """The timeline in the file."""
    starts, durations, devices = _columns(profile)
    return ProfileTimeline(starts, starts + durations, devices)


def replay(
    profile: Profile, seconds: Sequence[float], host: float = 1.0, *, graphs: bool = False
) -> ProfileTimeline:
    """The timeline with these times of the launches. Copies keep theirs. `host` multiplies the
    host's times; with `graphs` the host launches at once what it launches between two waits."""
    starts, durations, devices = _columns(profile)
    ends = starts + durations
    new_durations = durations.copy()
    new_durations[: len(seconds)] = np.round(np.asarray(seconds) * 1e9).astype(np.int64)
    calls, streams = profile.calls, _streams(profile)
    begin, call_index = _call_times(profile)
    incomplete = _incomplete(profile, starts, devices)
    clock = _HostClock(profile, 0.0 if graphs else host)
    new_starts, new_ends = starts.copy(), ends.copy()
    free: dict[tuple[int, int], tuple[int, int]] = {}
    launched: list[tuple[int, int]] = []
    for _, kind, number in _events(profile, begin):
        if kind == _WAIT:
            thread = calls.thread[number]
            start = calls.start[number]
            end = start + calls.duration[number]
            waited = next(((old, new) for old, new in reversed(launched) if old <= end), None)
            if waited and waited[0] > start:
                clock.resume(thread, end, max(clock.at(thread, start), waited[1]) + end - waited[0])
            continue
        call = begin[number]
        ready = new_ready = None
        if call >= 0 and not incomplete[number]:
            thread = calls.thread[call_index[number]]
            after = int(min(starts[number], call + calls.duration[call_index[number]]))
            ready, new_ready = after, clock.at(thread, after)
        before, new_before = free.get(streams[number], (None, None))
        reference = max((time for time in (ready, before) if time is not None), default=None)
        earliest = max((t for t in (new_ready, new_before) if t is not None), default=None)
        if reference is None or earliest is None:
            new_starts[number] = starts[number]
        else:
            gap = max(0, int(starts[number]) - reference)
            shorter = graphs and not incomplete[number]
            new_starts[number] = earliest + (min(gap, _TOGETHER) if shorter else gap)
        new_ends[number] = new_starts[number] + new_durations[number]
        free[streams[number]] = (int(ends[number]), int(new_ends[number]))
        launched.append((int(ends[number]), int(new_ends[number])))
    return ProfileTimeline(new_starts, new_ends, devices)


class _HostClock:
    """Times of the host after the change, by thread."""

    def __init__(self, profile: Profile, factor: float) -> None:
        first = [min(table.start, default=0) for table in (profile.launches, profile.calls)]
        self._origin, self._factor = min(first), factor
        self._shift: defaultdict[int, int] = defaultdict(int)

    def at(self, thread: int, time: int) -> int:
        """When a thread does what it did at `time`."""
        delta = round((time - self._origin) * self._factor)
        return self._origin + delta + self._shift[thread]

    def resume(self, thread: int, time: int, new: int) -> None:
        """A thread that continued at `time` continues at `new`."""
        self._shift[thread] += new - self.at(thread, time)


def _columns(profile: Profile) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    def concatenate(column: Callable[[Activities], Sequence[int]]) -> NDArray[np.int64]:
        both = [np.asarray(column(a), dtype=np.int64) for a in (profile.launches, profile.copies)]
        return np.concatenate(both)

    return (
        concatenate(lambda a: a.start),
        concatenate(lambda a: a.duration),
        concatenate(lambda a: a.device),
    )


def _incomplete(
    profile: Profile, starts: NDArray[np.int64], devices: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Activities before which the file lacks some."""
    mask = np.zeros(len(starts), dtype=bool)
    for device, first in profile.unknown_from.items():
        mask |= (devices == device) & (starts > first)
    return mask


def _streams(profile: Profile) -> list[tuple[int, int]]:
    return [
        (device, stream)
        for activities in (profile.launches, profile.copies)
        for device, stream in zip(activities.device, activities.stream, strict=True)
    ]


def _call_times(profile: Profile) -> tuple[list[int], list[int]]:
    """(start of the launching call, its number) of every activity; -1 without one."""
    calls = profile.calls
    number_of = {c: n for n, c in enumerate(calls.correlation) if c != NONE}
    numbers = [
        number_of.get(correlation, -1)
        for activities in (profile.launches, profile.copies)
        for correlation in activities.correlation
    ]
    return [calls.start[n] if n >= 0 else -1 for n in numbers], numbers


def _events(profile: Profile, begin: Sequence[int]) -> list[tuple[int, int, int]]:
    """(time, kind, number) in the order of the host: launches at their calls, or where these are
    not in the file at their starts; waits at their ends."""
    starts = _columns(profile)[0].tolist()
    events = [
        (call if call >= 0 else starts[number], _LAUNCH, number)
        for number, call in enumerate(begin)
    ]
    calls = profile.calls
    events += [
        (calls.start[n] + calls.duration[n], _WAIT, n)
        for n, info in enumerate(calls.info)
        if waits_for_device(profile.call_names[info])
    ]
    # Kernels of one graph have one call: they keep their order.
    return sorted(events, key=lambda e: (e[0], e[1], starts[e[2]] if e[1] == _LAUNCH else 0))


__all__ = ["ProfileTimeline", "measured_timeline", "replay"]
