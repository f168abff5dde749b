"""Clocks of devices that differ from the host's: kernels then start before their calls, or long
after all of them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from wavecast.bench.profiles.profile import NONE, Activities, Profile

_EARLY: Final = -1_000_000
"""Nanoseconds from a call to its kernel that no correction of clocks leaves: kernels start after
their calls, and profilers align clocks to some microseconds."""
_LATE: Final = 60 * 10**9
"""Nanoseconds that no queue makes every kernel of a profile wait."""


def align(profile: Profile) -> None:
    """Move what devices did so that the kernel that follows its call soonest starts with it, where
    the clocks of host and device differ; with a note."""
    calls = np.asarray(profile.calls.correlation, dtype=np.int64)
    known, first = np.unique(calls, return_index=True)
    if not len(known):
        return
    called = np.asarray(profile.calls.start, dtype=np.int64)[first]
    moved: dict[int, int] = {}
    for activities in (profile.launches, profile.copies):
        for device, delay in _soonest(activities, known, called).items():
            if _EARLY <= delay <= _LATE:
                continue
            _move(activities, device, delay)
            moved[device] = max(moved.get(device, 0), delay, key=abs)
    for device, delay in moved.items():
        profile.notes.append(
            f"clocks of the host and of device {device} differ: its first kernels start "
            f"{abs(delay) * 1e-9:,.6g} s {'after' if delay > 0 else 'before'} their calls; its "
            "times are moved to those of the calls, so idle times by cause are estimates"
        )


def _soonest(
    activities: Activities, known: NDArray[np.int64], called: NDArray[np.int64]
) -> dict[int, int]:
    """By device, the least time from a call to what it launched; without devices whose calls are
    not in the file."""
    correlation = np.asarray(activities.correlation, dtype=np.int64)
    if not len(correlation):
        return {}
    at = np.minimum(np.searchsorted(known, correlation), len(known) - 1)
    matched = (known[at] == correlation) & (correlation != NONE)
    device = np.asarray(activities.device, dtype=np.int64)[matched]
    delay = np.asarray(activities.start, dtype=np.int64)[matched] - called[at[matched]]
    return {one: int(delay[device == one].min()) for one in np.unique(device).tolist()}


def _move(activities: Activities, device: int, delay: int) -> None:
    for number, one in enumerate(activities.device):
        if one == device:
            activities.start[number] -= delay


__all__ = ["align"]
