"""Runs of kernels that move data more than they compute, one after another on a stream: what a
compiler or a fused kernel could make one kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Final

import numpy as np

from wavecast.json_objects import Count, JsonObject, NonNegative, doc
from wavecast.profiles.kernel_names import functor, recognise, short
from wavecast.profiles.profile import Profile

_FUSIBLE: Final = frozenset(
    {"cache and positions", "element-wise", "index and copy", "norm", "quantisation", "reduction",
     "softmax"}
)  # fmt: skip
_LONGEST: Final = 32
"""Kernels of a run; a longer run, as of an optimizer without `foreach`, is divided."""


class KernelSequence(JsonObject):
    """Memory-bound kernels that follow each other on a stream, with the same kernels each time."""

    kernels: Annotated[tuple[Count, ...], doc("numbers in the order of the file's first launches")]
    text: Annotated[str, doc("short names of the kernels, with the number of those that repeat")]
    count: Annotated[Count, doc("how often they occur")]
    seconds: Annotated[NonNegative, doc("time of the kernels, of all occurrences")]
    gaps: Annotated[NonNegative, doc("seconds between them, of all occurrences")]


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
    sequences = [
        KernelSequence(kernels, _text(profile, kernels), count, busy * 1e-9, gaps * 1e-9)
        for kernels, (count, busy, gaps) in runs.items()
    ]
    return sorted(sequences, key=lambda sequence: -sequence.seconds)


def _text(profile: Profile, kernels: Sequence[int]) -> str:
    """Short names of the kernels; a name that repeats is written once with its number."""
    names = (_brief(profile.kernels[number].name) for number in kernels)
    runs = ((name, len(list(equal))) for name, equal in groupby(names))
    return " → ".join(name + (f" x {length}" if length > 1 else "") for name, length in runs)


def _brief(name: str) -> str:
    return functor(name) or short(name).removeprefix("at::native::")


__all__ = ["KernelSequence", "kernel_sequences"]
