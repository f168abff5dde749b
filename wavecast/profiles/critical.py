"""The critical path of a profiled run: what its end waited for, back to its start.

From the end of the last kernel backwards: a kernel that started when another one ended waited for
it; else it waited for its call, and the host was what the device waited for until the kernel before
it had ended. What it waited for is not known where the file lacks the call, or what may have run in
that time. Every nanosecond of the span is in exactly one part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.profiles.kernel_names import recognise
from wavecast.profiles.profile import NONE, Profile

HOST, WAIT, COPY = "host", "launch or wait of a stream", "copy"
UNKNOWN: Final = "not known"
_TOGETHER: Final = 1_000
"""Nanoseconds between the end of one kernel and the start of the next that it had waited for."""


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Nanoseconds of the path of one device by part: categories of kernels, `COPY`, `HOST`, `WAIT`
    and `UNKNOWN`; `kernels` counts those on the path."""

    device: int
    parts: Mapping[str, int]
    kernels: int

    @property
    def length(self) -> int:
        """Nanoseconds from the first start to the last end."""
        return sum(self.parts.values())


def critical_path(profile: Profile, device: int) -> CriticalPath:
    """The critical path of all streams of a device. An empty path without kernels and copies."""
    starts, ends, parts, correlations = _activities(profile, device)
    if not len(starts):
        return CriticalPath(device, {}, 0)
    call_ends = {
        correlation: start + duration
        for correlation, start, duration in zip(
            profile.calls.correlation, profile.calls.start, profile.calls.duration, strict=True
        )
        if correlation != NONE
    }
    order = np.argsort(ends, kind="stable")
    sorted_ends = ends[order]
    unknown_from = profile.unknown_from.get(device, int(ends.max()))
    times: defaultdict[str, int] = defaultdict(int)
    at = int(order[-1])
    cursor, kernels, first = int(ends[at]), 0, int(starts.min())
    while True:
        begin = int(starts[at])
        times[parts[at]] += cursor - begin
        kernels += parts[at] != COPY
        cursor = begin
        if cursor <= first:
            break
        before = int(np.searchsorted(sorted_ends, cursor, side="right")) - 1
        # What ends at the start of this one, or before it: what is longest is not waited for.
        while before >= 0 and int(starts[order[before]]) >= cursor:
            before -= 1
        if before < 0:
            times[WAIT] += cursor - first
            break
        end = int(sorted_ends[before])
        if cursor - end > _TOGETHER:
            call_end = call_ends.get(int(correlations[at]))
            if call_end is None or cursor > unknown_from:
                times[UNKNOWN] += cursor - end
            else:
                late = max(0, min(call_end, cursor) - end)
                times[HOST] += late
                times[WAIT] += cursor - end - late
        else:
            times[WAIT] += cursor - end
        cursor, at = end, int(order[before])
    return CriticalPath(device, dict(sorted(times.items(), key=lambda p: -p[1])), kernels)


def _activities(
    profile: Profile, device: int
) -> tuple[np.ndarray, np.ndarray, list[str], np.ndarray]:
    starts, ends, parts, correlations = [], [], [], []
    names = [recognise(kernel.name).category for kernel in profile.kernels.values]
    for activities, kernel in ((profile.launches, True), (profile.copies, False)):
        for number, activity_device in enumerate(activities.device):
            if activity_device == device:
                starts.append(activities.start[number])
                ends.append(activities.start[number] + activities.duration[number])
                parts.append(names[activities.info[number]] if kernel else COPY)
                correlations.append(activities.correlation[number])
    return np.array(starts, np.int64), np.array(ends, np.int64), parts, np.array(correlations)


__all__ = ["COPY", "HOST", "UNKNOWN", "WAIT", "CriticalPath", "critical_path"]
