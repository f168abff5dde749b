"""What a run did: time by kernel, operator, module and category; idle time and its causes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from wavecast.profiles.kernel_names import KernelName, recognise
from wavecast.profiles.profile import NONE, Activities, Profile

HOST, SYNCHRONISATION, DEPENDENCY, UNKNOWN = (
    "the host launched late",
    "the host waited for the device",
    "the stream waited",
    "not known",
)
_WAITS: Final = ("Synchronize", "synchronize", "MemcpyWithStream")
_SHORTEST: Final = 1_000
"""Nanoseconds between two kernels that count as one launch after the other, not as idle."""


@dataclass(slots=True)
class TimeShare:
    """Launches that have something in common: their number and nanoseconds."""

    count: int = 0
    nanoseconds: int = 0

    def add(self, nanoseconds: int) -> None:
        """Count one more."""
        self.count += 1
        self.nanoseconds += nanoseconds


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """A device from its first kernel to the end of its last one, in nanoseconds.

    `busy`: at least one kernel or copy runs. `exposed`: only collectives run. `idle` by cause.
    """

    device: int
    span: int
    busy: int
    kernels: int
    collectives: int
    exposed: int
    overlapped: int
    idle: Mapping[str, int]


@dataclass(slots=True)
class ProfileSummary:
    """Time of a profile by kernel (with its sizes), by category, library, operator and module."""

    devices: tuple[DeviceSummary, ...]
    by_kernel: dict[int, TimeShare] = field(default_factory=dict)
    by_category: dict[str, TimeShare] = field(default_factory=dict)
    by_library: dict[str, TimeShare] = field(default_factory=dict)
    by_op: dict[str, TimeShare] = field(default_factory=dict)
    by_module: dict[str, TimeShare] = field(default_factory=dict)

    @property
    def kernel_time(self) -> int:
        """Nanoseconds of all kernels."""
        return sum(share.nanoseconds for share in self.by_kernel.values())


def summarise(profile: Profile) -> ProfileSummary:
    """The summary of all devices of the profile."""
    names = [recognise(kernel.name) for kernel in profile.kernels.values]
    devices = sorted({*profile.launches.device, *profile.copies.device})
    summary = ProfileSummary(tuple(_device(profile, device, names) for device in devices))
    summary.by_kernel = _group_times(profile, lambda number: profile.launches.info[number])
    summary.by_category = _group_times(
        profile, lambda number: names[profile.launches.info[number]].category
    )
    summary.by_library = _group_times(
        profile, lambda number: names[profile.launches.info[number]].library or "not known"
    )
    summary.by_op = _group_times(profile, lambda number: _op(profile, number))
    summary.by_module = _group_times(profile, lambda number: module_of(profile, number))
    return summary


def waits_for_device(call: str) -> bool:
    """Whether the host waits for the device in a call of the runtime."""
    return any(word in call for word in _WAITS)


def module_of(profile: Profile, launch: int) -> str:
    """The path of the module that launched a kernel, without the numbers of layers: layers that are
    alike are one row. Empty where it is not known."""
    op = profile.launches.op[launch]
    if op == NONE:
        return ""
    module = profile.ops.module[op]
    if module == NONE:
        return ""
    return ".".join(part.rsplit("_", 1)[0] for part in profile.modules[module].split("."))


def _op(profile: Profile, launch: int) -> str:
    op = profile.launches.op[launch]
    return profile.op_infos[profile.ops.info[op]].name if op != NONE else ""


Key = TypeVar("Key", bound=Hashable)


def _group_times(profile: Profile, key: Callable[[int], Key]) -> dict[Key, TimeShare]:
    shares: defaultdict[Key, TimeShare] = defaultdict(TimeShare)
    for number, duration in enumerate(profile.launches.duration):
        shares[key(number)].add(duration)
    return dict(sorted(shares.items(), key=lambda item: -item[1].nanoseconds))


@dataclass(frozen=True, slots=True)
class KernelVariation:
    """The shortest and the longest launch of a kernel, and the standard deviation of all: in
    nanoseconds."""

    shortest: int
    longest: int
    deviation: float


def variations(profile: Profile) -> dict[int, KernelVariation]:
    """By number of the kernel, of those with launches in the file; empty where times are means."""
    if not len(profile.launches) or not profile.timeline:
        return {}
    info = np.asarray(profile.launches.info, dtype=np.int64)
    duration = np.asarray(profile.launches.duration, dtype=np.int64)
    order = np.argsort(info, kind="stable")
    numbers, first = np.unique(info[order], return_index=True)
    parts = np.split(duration[order], first[1:])
    return {
        number: KernelVariation(int(part.min()), int(part.max()), float(part.std()))
        for number, part in zip(numbers.tolist(), parts, strict=True)
    }


Intervals = NDArray[np.int64]


def _of(activities: Activities, device: int) -> tuple[NDArray[np.int64], Intervals]:
    """(numbers of the activities of a device, their intervals)."""
    mine = np.flatnonzero(np.asarray(activities.device, dtype=np.int64) == device)
    start = np.asarray(activities.start, dtype=np.int64)[mine]
    duration = np.asarray(activities.duration, dtype=np.int64)[mine]
    return mine, np.stack([start, start + duration], axis=1)


def union(intervals: Intervals) -> Intervals:
    """Disjoint intervals in order, with the same points: an array of (start, end)."""
    if not len(intervals):
        return intervals
    ordered = intervals[np.argsort(intervals[:, 0], kind="stable")]
    latest_end = np.maximum.accumulate(ordered[:, 1])
    first = np.append(True, ordered[1:, 0] > latest_end[:-1])
    last = np.append(first[1:], True)
    return np.stack([ordered[first, 0], latest_end[last]], axis=1)


def _length(intervals: Intervals) -> int:
    return int((intervals[:, 1] - intervals[:, 0]).sum())


def _device(profile: Profile, device: int, names: list[KernelName]) -> DeviceSummary:
    numbers, kernels = _of(profile.launches, device)
    copied, copies = _of(profile.copies, device)
    infos = np.asarray(profile.launches.info)[numbers]
    collective = np.array([names[i].category == "collective" for i in infos.tolist()], dtype=bool)
    busy = union(np.concatenate([kernels, copies]))
    compute = union(np.concatenate([kernels[~collective], copies]))
    communication = union(kernels[collective])
    both = _length(busy)
    exposed = both - _length(compute)
    communicated = _length(communication)
    return DeviceSummary(
        device=device,
        span=int(busy[-1, 1] - busy[0, 0]) if len(busy) else 0,
        busy=both,
        kernels=len(kernels),
        collectives=communicated,
        exposed=exposed,
        overlapped=communicated - exposed,
        idle=_idle(
            profile,
            np.concatenate([kernels[:, 0], copies[:, 0]]),
            np.concatenate(
                [_correlations(profile.launches, numbers), _correlations(profile.copies, copied)]
            ),
            busy,
            profile.unknown_from.get(device),
        ),
    )


def _correlations(activities: Activities, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(activities.correlation, dtype=np.int64)[numbers]


def _idle(
    profile: Profile,
    starts: NDArray[np.int64],
    correlations: NDArray[np.int64],
    busy: Intervals,
    unknown_from: int | None,
) -> dict[str, int]:
    """Gaps by their cause; `starts` and `correlations` are those of all kernels and copies.

    Up to the end of the call that launched the next kernel or copy, the host was late: it waited
    for the device if a synchronising call ended in the gap, and else computed. What remains is a
    wait of the stream. The cause is not known where the launching call is not in the profile, and
    in gaps that end after `unknown_from`.
    """
    causes: defaultdict[str, int] = defaultdict(int)
    if len(busy) < 2:
        return {}
    launched = {
        correlation: number
        for number, correlation in enumerate(profile.calls.correlation)
        if correlation != NONE
    }
    waits = np.array(
        sorted(
            start + duration
            for info, start, duration in zip(
                profile.calls.info, profile.calls.start, profile.calls.duration, strict=True
            )
            if waits_for_device(profile.call_names[info])
        ),
        dtype=np.int64,
    )
    order = np.argsort(starts, kind="stable")
    starts, correlations = starts[order], correlations[order]
    for begin, end in zip(busy[:-1, 1].tolist(), busy[1:, 0].tolist(), strict=True):
        if end - begin < _SHORTEST:
            continue
        call = launched.get(int(correlations[np.searchsorted(starts, end)]))
        if call is None or (unknown_from is not None and end > unknown_from):
            causes[UNKNOWN] += end - begin
            continue
        call_end = min(end, profile.calls.start[call] + profile.calls.duration[call])
        late = max(0, call_end - begin)
        waited = np.searchsorted(waits, begin) < np.searchsorted(waits, call_end)
        causes[SYNCHRONISATION if waited else HOST] += late
        causes[DEPENDENCY] += end - begin - late
    return {cause: time for cause, time in causes.items() if time}


__all__ = [
    "DeviceSummary",
    "KernelVariation",
    "ProfileSummary",
    "TimeShare",
    "module_of",
    "summarise",
    "union",
    "variations",
    "waits_for_device",
]
