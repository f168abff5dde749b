"""Clocks of devices that differ from the host's: kernels then start before their calls, or long
after all of them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from wavecast.profiles.profile import NONE, Activities, Profile

EARLY: Final = -1_000_000
"""Nanoseconds from a call to its kernel that no correction of clocks leaves: kernels start after
their calls, and profilers align clocks to some microseconds."""
LATE: Final = 60 * 10**9
"""Nanoseconds that no queue makes every kernel of a profile wait."""
_LATER: Final = 100_000
"""Nanoseconds from one call to the next after which their kernels have that order on a stream:
calls of several threads overlap."""


class CallDelays:
    """The time from a call to what it launched, of the calls that a profile has."""

    def __init__(self, profile: Profile) -> None:
        calls = np.asarray(profile.calls.correlation, dtype=np.int64)
        self._known, first = np.unique(calls, return_index=True)
        self._called = np.asarray(profile.calls.start, dtype=np.int64)[first]

    def of(self, activities: Activities) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """(whether the call of each activity is known, nanoseconds from it to the start)."""
        start = np.asarray(activities.start, dtype=np.int64)
        if not len(self._known):
            return np.zeros(len(start), dtype=bool), np.zeros_like(start)
        correlation = np.asarray(activities.correlation, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._known, correlation), len(self._known) - 1)
        matched = (self._known[at] == correlation) & (correlation != NONE)
        return matched, start - self._called[at]


def align(profile: Profile) -> None:
    """Move what devices did so that the kernel that follows its call soonest starts with it, where
    the clocks of host and device differ; with a note. A clock that jumps in the run relates to the
    host's at no time: then why the device is idle is not known."""
    if not len(profile.calls):
        return
    delays = CallDelays(profile)
    shifts: dict[int, int] = {}
    for activities in (profile.launches, profile.copies):
        for device, delay in _soonest(activities, delays).items():
            if EARLY <= delay <= LATE:
                continue
            _move(activities, device, delay)
            shifts[device] = max(shifts.get(device, 0), delay, key=abs)
    for device, delay in shifts.items():
        profile.notes.append(
            f"clocks of the host and of device {device} differ: its first kernels start "
            f"{abs(delay) * 1e-9:,.6g} s {'after' if delay > 0 else 'before'} their calls; its "
            "times are moved to those of the calls, so idle times by cause are estimates"
        )
    for device in sorted(_jumping(profile, delays)):
        profile.unknown_from[device] = min(profile.launches.start)
        profile.notes.append(
            f"the clock of device {device} jumps: kernels start before those that were launched "
            "earlier on their stream, or a minute after others; spans and idle times mean nothing"
        )


def _soonest(activities: Activities, delays: CallDelays) -> dict[int, int]:
    """By device, the least time from a call to what it launched; without devices whose calls are
    not in the file."""
    matched, delay = delays.of(activities)
    device = np.asarray(activities.device, dtype=np.int64)[matched]
    delay = delay[matched]
    return {number: int(delay[device == number].min()) for number in np.unique(device).tolist()}


def _jumping(profile: Profile, delays: CallDelays) -> set[int]:
    """Devices with kernels that start in another order than a stream runs them, or whose delays
    differ by more than a queue makes them."""
    launches = profile.launches
    matched, delay = delays.of(launches)
    start = np.asarray(launches.start, dtype=np.int64)[matched]
    device = np.asarray(launches.device, dtype=np.int64)[matched]
    stream = np.asarray(launches.stream, dtype=np.int64)[matched]
    delay = delay[matched]
    devices = set(device[delay > LATE].tolist())
    order = np.lexsort((start, start - delay, stream, device))
    same = (np.diff(device[order]) == 0) & (np.diff(stream[order]) == 0)
    call_times = np.diff((start - delay)[order])
    back = same & (call_times > _LATER) & (np.diff(start[order]) < EARLY)
    return devices | set(device[order][1:][back].tolist())


def _move(activities: Activities, device: int, delay: int) -> None:
    for number, activity_device in enumerate(activities.device):
        if activity_device == device:
            activities.start[number] -= delay


__all__ = ["EARLY", "LATE", "CallDelays", "align"]
