"""Memory of devices over a profiled run: how much at most, and in which operator and module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from wavecast.json_objects import Count, JsonObject, doc
from wavecast.profiles.profile import NONE, MemorySamples, Profile


class TensorMemory(JsonObject):
    """Memory of a device that PyTorch's allocator manages (`profile_memory=True`)."""

    device: Annotated[int, doc("number of the device in PyTorch")]
    changes: Annotated[Count, doc("allocations and releases in the file")]
    first: Annotated[Count, doc("bytes that tensors have at the first change")]
    last: Annotated[Count, doc("bytes that tensors have at the last change")]
    peak: Annotated[Count, doc("the most bytes that tensors have")]
    reserved: Annotated[Count, doc("the most bytes that the allocator has from the driver")]
    time: Annotated[float, doc("seconds from the first change to when tensors have the most")]
    operator: Annotated[str, doc("the operator then; empty: not known")]
    module: Annotated[str, doc("the module then; empty: not known")]
    allocations: Annotated[Count, doc("allocations")]
    allocated: Annotated[Count, doc("bytes of all allocations together")]


def memory_use(profile: Profile) -> list[TensorMemory]:
    """The memory of every device with samples, by number; none without `profile_memory=True`."""
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
        time=(samples.time[at] - min(samples.time)) * 1e-9,
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
    rows = np.flatnonzero(around)
    if not len(rows):
        return "", ""
    op = int(rows[np.argmax(start[rows])])
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
