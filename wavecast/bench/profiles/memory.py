"""Memory of devices over a profiled run: how much at most, and in which operator and module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from wavecast.bench.profiles.profile import NONE, MemorySamples, Profile


@dataclass(frozen=True, slots=True)
class TensorMemory:
    """Of one device, as PyTorch numbers it, in bytes.

    `first` and `last` are allocated at the first and at the last change, `peak` at most: `time`
    nanoseconds after the first change, in an operator and a module (empty: not known);
    `reserved` is the most that the allocator has from the driver. `allocations` counts what grew,
    `allocated` its bytes.
    """

    device: int
    changes: int
    first: int
    last: int
    peak: int
    reserved: int
    time: int
    operator: str
    module: str
    allocations: int
    allocated: int


def memory_use(profile: Profile) -> list[TensorMemory]:
    """Of every device with samples, by number; none without `profile_memory=True`."""
    return [_use(profile, device) for device in sorted(profile.memory) if profile.memory[device]]


def _use(profile: Profile, device: int) -> TensorMemory:
    samples = profile.memory[device]
    order = np.argsort(np.asarray(samples.time, dtype=np.int64), kind="stable")
    allocated = np.asarray(samples.allocated, dtype=np.int64)[order]
    at = int(order[int(allocated.argmax())])
    operator, module = _where(profile, samples, at)
    growth = np.diff(allocated)
    growth = growth[growth > 0]
    return TensorMemory(
        device=device,
        changes=len(samples),
        first=int(allocated[0]),
        last=int(allocated[-1]),
        peak=int(allocated.max()),
        reserved=max(samples.reserved),
        time=samples.time[at] - min(samples.time),
        operator=operator,
        module=module,
        allocations=len(growth),
        allocated=int(growth.sum()),
    )


def _where(profile: Profile, samples: MemorySamples, at: int) -> tuple[str, str]:
    """(operator, module) around a sample: the innermost of its thread."""
    ops = profile.ops
    thread, time = samples.thread[at], samples.time[at]
    start = np.asarray(ops.start, dtype=np.int64)
    around = np.asarray(ops.thread, dtype=np.int64) == thread
    around &= (start <= time) & (time < start + np.asarray(ops.duration, dtype=np.int64))
    found = np.flatnonzero(around)
    if not len(found):
        return "", ""
    op = int(found[np.argmax(start[found])])
    module = ops.module[op]
    return (
        profile.op_infos[ops.info[op]].name,
        profile.modules[module] if module != NONE else "",
    )


def outline(samples: MemorySamples, points: int) -> Iterator[tuple[int, int, int]]:
    """(time, allocated, reserved) in the order of time, the highest of each part: at most `points`
    of them."""
    order = np.argsort(np.asarray(samples.time, dtype=np.int64), kind="stable")
    allocated = np.asarray(samples.allocated, dtype=np.int64)
    for part in np.array_split(order, min(points, len(order))):
        at = int(part[int(allocated[part].argmax())])
        yield samples.time[at], samples.allocated[at], samples.reserved[at]


__all__ = ["TensorMemory", "memory_use", "outline"]
