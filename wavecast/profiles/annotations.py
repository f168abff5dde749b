"""Time of devices by the ranges that the program named: `record_function`, steps of the profiler,
ranges of NVTX."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray

from wavecast.json_objects import Count, JsonObject, NonNegative, doc
from wavecast.profiles.profile import NONE, Profile

_NUMBERED: Final = re.compile(r"#\d+$")
"""`ProfilerStep#6`: ranges that differ in their number only are one row."""


class AnnotatedTime(JsonObject):
    """Ranges that the program named; those within them are included."""

    path: Annotated[tuple[str, ...], doc("names of the ranges around it and its own")]
    count: Annotated[Count, doc("ranges")]
    host: Annotated[NonNegative, doc("seconds of the ranges on the host")]
    shortest: Annotated[NonNegative, doc("seconds of the shortest range on the host")]
    longest: Annotated[NonNegative, doc("seconds of the longest range on the host")]
    launches: Annotated[Count, doc("kernels launched in the ranges")]
    device: Annotated[NonNegative, doc("seconds of these kernels")]


def annotated_time(profile: Profile) -> list[AnnotatedTime]:
    """By path, those with the most time of the device first.

    A kernel is of the innermost range around its call. Calls of threads without ranges, as those of
    autograd, are of the range that the thread with the most ranges is in.
    """
    ranges = profile.annotations
    if not len(ranges):
        return []
    paths: list[tuple[str, ...]] = []
    segments = _segments(profile, paths)
    of_launch = _launches(profile, segments)
    kernels: defaultdict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    for innermost, duration in zip(of_launch.tolist(), profile.launches.duration, strict=True):
        path = paths[innermost] if innermost != NONE else ()
        for length in range(1, len(path) + 1):
            total = kernels[path[:length]]
            total[0] += 1
            total[1] += duration
    hosts: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for path, duration in zip(paths, ranges.duration, strict=True):
        hosts[path].append(duration)
    rows = [
        AnnotatedTime(
            path=path,
            count=len(durations),
            host=sum(durations) * 1e-9,
            shortest=min(durations) * 1e-9,
            longest=max(durations) * 1e-9,
            launches=kernels[path][0],
            device=kernels[path][1] * 1e-9,
        )
        for path, durations in hosts.items()
    ]
    return sorted(rows, key=lambda row: (-row.device, -row.host, row.path))


@dataclass(frozen=True, slots=True)
class _Segments:
    """The innermost range of one thread from each start on (NONE: none)."""

    starts: NDArray[np.int64]
    innermost: NDArray[np.int64]

    def at(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        index = np.searchsorted(self.starts, times, side="right") - 1
        return np.where(index < 0, NONE, self.innermost[np.maximum(index, 0)])


def _segments(profile: Profile, paths: list[tuple[str, ...]]) -> dict[int, _Segments]:
    """By thread; `paths` gets the path of every range."""
    ranges = profile.annotations
    paths.extend(() for _ in range(len(ranges)))
    by_thread: defaultdict[int, list[int]] = defaultdict(list)
    for number, thread in enumerate(ranges.thread):
        by_thread[thread].append(number)
    return {thread: _innermost_segments(profile, mine, paths) for thread, mine in by_thread.items()}


def _innermost_segments(
    profile: Profile, mine: Sequence[int], paths: list[tuple[str, ...]]
) -> _Segments:
    ranges = profile.annotations
    starts: list[int] = []
    innermost: list[int] = []
    stack: list[tuple[int, int]] = []  # (end, range)

    def close(until: int) -> None:
        while stack and stack[-1][0] <= until:
            end, _ = stack.pop()
            starts.append(end)
            innermost.append(stack[-1][1] if stack else NONE)

    for number in sorted(mine, key=lambda index: (ranges.start[index], -ranges.duration[index])):
        start = ranges.start[number]
        close(start)
        name = _NUMBERED.sub("", profile.annotation_names[ranges.info[number]])
        paths[number] = (*(paths[stack[-1][1]] if stack else ()), name)
        end = start + ranges.duration[number]
        if stack:
            end = min(end, stack[-1][0])
        stack.append((end, number))
        starts.append(start)
        innermost.append(number)
    close(max(end for end, _ in stack))
    return _Segments(np.array(starts, dtype=np.int64), np.array(innermost, dtype=np.int64))


def _launches(profile: Profile, segments: dict[int, _Segments]) -> NDArray[np.int64]:
    """The innermost range of every launch, NONE without one."""
    calls = profile.calls
    main = max(segments.values(), key=lambda candidate: len(candidate.starts))
    thread = np.asarray(calls.thread, dtype=np.int64)
    start = np.asarray(calls.start, dtype=np.int64)
    of_call = main.at(start)
    for number, thread_segments in segments.items():
        mine = thread == number
        of_call[mine] = thread_segments.at(start[mine])
    correlation = np.asarray(calls.correlation, dtype=np.int64)
    unique, first = np.unique(correlation, return_index=True)
    launched = np.asarray(profile.launches.correlation, dtype=np.int64)
    of_launch = np.full(len(launched), NONE, dtype=np.int64)
    if len(unique):
        at = np.minimum(np.searchsorted(unique, launched), len(unique) - 1)
        matched = (unique[at] == launched) & (launched != NONE)
        of_launch[matched] = of_call[first[at[matched]]]
    return of_launch


__all__ = ["AnnotatedTime", "annotated_time"]
