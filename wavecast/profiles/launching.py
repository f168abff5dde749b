"""What launches cost: time in the launching call, time until the kernel starts, kernels that are
shorter than the call that launched them; and the launches that wait in a queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from wavecast.json_objects import Count, JsonObject, NonNegative, Share, doc
from wavecast.profiles.profile import NONE, Profile


class LaunchCosts(JsonObject):
    """Launches of kernels by one call each; those of graphs are launched together."""

    launches: Annotated[Count, doc("kernels that one call each launched")]
    call: Annotated[NonNegative, doc("median seconds in the launching call")]
    delay: Annotated[float, doc("median seconds from the start of the call to that of the kernel")]
    short: Annotated[Count, doc("kernels that take no longer than the call that launched them")]


def launch_costs(profile: Profile, device: int) -> LaunchCosts | None:
    """What launches of a device cost; None if the file has no call that launched one kernel alone.
    Kernels of a graph are launched together and have no such calls."""
    launches, calls = profile.launches, profile.calls
    mine = np.flatnonzero(np.asarray(launches.device, dtype=np.int64) == device)
    correlation = np.asarray(launches.correlation, dtype=np.int64)[mine]
    numbers, first, count = np.unique(correlation, return_index=True, return_counts=True)
    alone = (count == 1) & (numbers != NONE)
    numbers, kernels = numbers[alone], mine[first[alone]]
    correlations, call_of = np.unique(
        np.asarray(calls.correlation, dtype=np.int64), return_index=True
    )
    has_call = np.isin(numbers, correlations)
    if not has_call.any():
        return None
    kernels = kernels[has_call]
    call_of = call_of[np.searchsorted(correlations, numbers[has_call])]
    took = np.asarray(calls.duration, dtype=np.int64)[call_of]
    started = np.asarray(calls.start, dtype=np.int64)[call_of]
    delay = np.asarray(launches.start, dtype=np.int64)[kernels] - started
    short = np.asarray(launches.duration, dtype=np.int64)[kernels] <= took
    medians = int(np.median(took)) * 1e-9, int(np.median(delay)) * 1e-9
    return LaunchCosts(len(kernels), *medians, int(short.sum()))


class QueueLength(JsonObject):
    """Launches of a stream whose call has begun and whose kernel has not started."""

    stream: Annotated[int, doc("number of the stream")]
    launches: Annotated[Count, doc("launches; a graph is one")]
    mean: Annotated[NonNegative, doc("mean number over time")]
    longest: Annotated[Count, doc("the most at a time")]
    empty: Annotated[Share, doc("share of the time in which there are none")]


def queue_lengths(profile: Profile, device: int) -> list[QueueLength]:
    """The queue of every stream of a device that has launches with calls, by number. None where
    the file lacks launches: they may be in the queue."""
    if device in profile.unknown_from:
        return []
    return [
        _queue(stream, times, lengths) for stream, times, lengths in queue_changes(profile, device)
    ]


def queue_changes(
    profile: Profile, device: int
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """(stream, times in nanoseconds, length of the queue from each time on) of every stream of a
    device that has launches with calls in the file."""
    launches, calls = profile.launches, profile.calls
    correlations, first = np.unique(
        np.asarray(calls.correlation, dtype=np.int64), return_index=True
    )
    call_starts = np.asarray(calls.start, dtype=np.int64)[first]
    correlation = np.asarray(launches.correlation, dtype=np.int64)
    stream = np.asarray(launches.stream, dtype=np.int64)
    start = np.asarray(launches.start, dtype=np.int64)
    mine = np.asarray(launches.device, dtype=np.int64) == device
    mine &= (correlation != NONE) & np.isin(correlation, correlations)
    for number in np.unique(stream[mine]).tolist():
        rows = np.flatnonzero(mine & (stream == number))
        rows = rows[np.argsort(start[rows], kind="stable")]
        keys, index = np.unique(correlation[rows], return_index=True)
        starts, begins = start[rows[index]], call_starts[np.searchsorted(correlations, keys)]
        times = np.concatenate([begins, np.maximum(starts, begins)])
        changes = np.repeat(np.array([1, -1]), len(begins))
        order = np.lexsort((changes, times))
        yield number, times[order], np.cumsum(changes[order])


def _queue(stream: int, times: NDArray[np.int64], length: NDArray[np.int64]) -> QueueLength:
    spans = np.diff(times)
    whole = int(times[-1] - times[0])
    mean = float((spans * length[:-1]).sum() / whole) if whole else 0.0
    empty = float(spans[length[:-1] == 0].sum() / whole) if whole else 0.0
    return QueueLength(stream, len(times) // 2, mean, int(length.max()), empty)


__all__ = ["LaunchCosts", "QueueLength", "launch_costs", "queue_changes", "queue_lengths"]
