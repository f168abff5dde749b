"""Runs of kernels that move data more than they compute, one after another on a stream: what a
compiler or a fused kernel could make one kernel."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.bench.profiles.kernel_names import recognise
from wavecast.bench.profiles.profile import Profile

_FUSIBLE: Final = frozenset(
    {"cache and positions", "element-wise", "index and copy", "norm", "quantisation", "reduction",
     "softmax"}
)  # fmt: skip
_LONGEST: Final = 32
"""Kernels of a run; a longer run, as of an optimizer without `foreach`, is divided."""


@dataclass(frozen=True, slots=True)
class KernelSequence:
    """A run of `kernels` (numbers of `Profile.kernels`) that occurs `count` times, all of them with
    the same kernels and grids. `nanoseconds` are those of its kernels, `gaps` those between."""

    kernels: tuple[int, ...]
    count: int
    nanoseconds: int
    gaps: int


def kernel_sequences(profile: Profile) -> list[KernelSequence]:
    """Runs of at least two kernels, those with the most time first. None of a profile without
    timeline."""
    launches = profile.launches
    if not len(launches) or not profile.timeline:
        return []
    device = np.asarray(launches.device, dtype=np.int64)
    stream = np.asarray(launches.stream, dtype=np.int64)
    start = np.asarray(launches.start, dtype=np.int64)
    info = np.asarray(launches.info, dtype=np.int64)
    end = start + np.asarray(launches.duration, dtype=np.int64)
    fusible = np.array([recognise(k.name).category in _FUSIBLE for k in profile.kernels.values])
    order = np.lexsort((start, stream, device))
    same = (np.diff(device[order]) == 0) & (np.diff(stream[order]) == 0)
    runs: defaultdict[tuple[int, ...], list[int]] = defaultdict(lambda: [0, 0, 0])

    def finish(first: int, last: int) -> None:
        for begin in range(first, last, _LONGEST):
            mine = order[begin : min(last, begin + _LONGEST)]
            if len(mine) > 1:
                total = runs[tuple(info[mine].tolist())]
                busy = int((end[mine] - start[mine]).sum())
                total[0] += 1
                total[1] += busy
                total[2] += max(0, int(end[mine[-1]] - start[mine[0]]) - busy)

    in_run = fusible[info[order]]
    continues = np.append(False, in_run[1:] & in_run[:-1] & same)
    bounds = np.flatnonzero(~continues)
    for first, last in zip(bounds.tolist(), [*bounds[1:].tolist(), len(order)], strict=True):
        if last - first > 1:
            finish(first, last)
    found = [KernelSequence(kernels, *total) for kernels, total in runs.items()]
    return sorted(found, key=lambda one: -one.nanoseconds)


__all__ = ["KernelSequence", "kernel_sequences"]
