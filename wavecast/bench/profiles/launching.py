"""What launches cost: time in the launching call, time until the kernel starts, kernels that are
shorter than the call that launched them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wavecast.bench.profiles.profile import NONE, Profile


@dataclass(frozen=True, slots=True)
class LaunchCosts:
    """Of `launches` kernels that one call each launched: medians, in nanoseconds, of the time
    in the call and from its start to that of the kernel; `short` kernels take no longer than their
    call."""

    launches: int
    call: int
    delay: int
    short: int


def launch_costs(profile: Profile, device: int) -> LaunchCosts | None:
    """Of a device; None if the file has no call that launched one kernel alone. Kernels of a graph
    are launched together and have no such calls."""
    launches, calls = profile.launches, profile.calls
    mine = np.flatnonzero(np.asarray(launches.device, dtype=np.int64) == device)
    correlation = np.asarray(launches.correlation, dtype=np.int64)[mine]
    numbers, first, count = np.unique(correlation, return_index=True, return_counts=True)
    alone = (count == 1) & (numbers != NONE)
    numbers, kernels = numbers[alone], mine[first[alone]]
    given, call_of = np.unique(np.asarray(calls.correlation, dtype=np.int64), return_index=True)
    known = np.isin(numbers, given)
    if not known.any():
        return None
    kernels = kernels[known]
    call_of = call_of[np.searchsorted(given, numbers[known])]
    took = np.asarray(calls.duration, dtype=np.int64)[call_of]
    started = np.asarray(calls.start, dtype=np.int64)[call_of]
    delay = np.asarray(launches.start, dtype=np.int64)[kernels] - started
    short = np.asarray(launches.duration, dtype=np.int64)[kernels] <= took
    medians = int(np.median(took)), int(np.median(delay))
    return LaunchCosts(len(kernels), *medians, int(short.sum()))


__all__ = ["LaunchCosts", "launch_costs"]
