"""Kernel times of other tools as records of one run."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from statistics import median
from typing import Final

from wavecast import arch
from wavecast.benchmarking.environment import now
from wavecast.benchmarking.records import (
    BenchRecord,
    BenchRun,
    BenchSubject,
    Conditions,
    Environment,
    Figure,
    Scalar,
)
from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.errors import InputError, UsageError

HOST_TIME: Final = "host time, not the GPU's, unless the benchmark reports its own"


@dataclass(frozen=True, slots=True)
class ImportedTiming:
    """The times of one subject in seconds: samples in their order, or only their median (`value`).
    `board` is the name the file gives of the GPU, `target` `gfx942` or `sm_90`."""

    subject: BenchSubject
    samples: tuple[float, ...] = ()
    value: float | None = None
    board: str = ""
    target: str = ""
    cache: str = ""
    more: Mapping[str, Scalar] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class About:
    """What a file says of all its times. `started` is any ISO 8601 time, local ones count as
    UTC."""

    started: str = ""
    commit: str = ""
    dirty: bool = False
    host: str = ""
    notes: tuple[str, ...] = ()


def import_timings(
    source: ImportedFile,
    name: str,
    timings: Sequence[ImportedTiming],
    labels: ImportLabels,
    about: About = About(),
) -> Imported:
    """One run of all timings of the tool `name`. Its id follows from the file and what was given,
    so that a file that is imported twice is known again.

    Raises InputError without times, or with one that is not positive.
    """
    if not timings:
        left_out = f" ({'; '.join(about.notes)})" if about.notes else ""
        raise InputError(f"{source.path} holds no kernel times{left_out}")
    commit = labels.commit or about.commit
    identity = (source.digest, name, labels.label, labels.device, labels.commit)
    run = BenchRun(
        id=hashlib.sha256("\0".join(identity).encode()).hexdigest()[:12],
        started=_utc(about.started, source) or now(),
        label=labels.label,
        command=f"wavecast store import {source.path.name}",
        commit=commit,
        dirty=about.dirty,
    )
    records = tuple(_record(timing, source, name, labels, about, commit) for timing in timings)
    return Imported(name, ((run, records),), about.notes)


def _record(
    timing: ImportedTiming,
    source: ImportedFile,
    name: str,
    labels: ImportLabels,
    about: About,
    commit: str,
) -> BenchRecord:
    for seconds in (*timing.samples, *([] if timing.value is None else [timing.value])):
        if not (math.isfinite(seconds) and seconds > 0):
            raise InputError(f"{source.path}: {timing.subject.key} took {seconds} s")
    device, target = _device(timing, labels)
    value = median(timing.samples) if timing.value is None else timing.value
    return BenchRecord(
        subject=timing.subject,
        environment=Environment(
            device=device,
            target=target,
            emulated=False,
            board=timing.board,
            host=about.host,
            commit=commit,
            dirty=about.dirty,
            more={**timing.more, "file": source.path.name},
        ),
        conditions=Conditions(cache=timing.cache, timing=name),
        figures={"measured_seconds": Figure(value, "imported", samples=timing.samples)},
        notes=timing.notes,
    )


def _device(timing: ImportedTiming, labels: ImportLabels) -> tuple[str, str]:
    """(id of the device, target). A target alone names no device: several share it."""
    board_device = by_name(timing.board) if timing.board else None
    label_device = arch.load(labels.device) if labels.device else None
    if board_device is not None and label_device is not None and board_device.id != label_device.id:
        raise UsageError(f"the file says {timing.board}, --device {labels.device}")
    device = board_device or label_device
    if device is None:
        return "", timing.target
    if timing.target and device.target != timing.target:
        raise UsageError(f"the file says {timing.target}, {device.id} is {device.target}")
    return device.id, device.target


@cache
def by_name(board: str) -> arch.Device | None:
    """The device that a driver calls so; case and punctuation do not matter."""
    plain_name = _plain(board)
    for device in arch.devices():
        if plain_name in map(_plain, (device.name, *device.aliases)):
            return device
    return None


def group_timings(times: Iterable[tuple[ImportedTiming, float]]) -> list[ImportedTiming]:
    """Single times by subject and GPU, in the order they were first seen."""
    groups: dict[tuple[str, str, str], tuple[ImportedTiming, list[float]]] = {}
    for timing, seconds in times:
        key = (timing.subject.key, timing.board, timing.target)
        groups.setdefault(key, (timing, []))[1].append(seconds)
    return [
        replace(first, samples=tuple(samples), value=None) for first, samples in groups.values()
    ]


def launch(grid: Sequence[object], group: Sequence[object]) -> dict[str, Scalar]:
    """The axes of a launch: what tells launches of one kernel apart where nothing else is known.
    `grid` counts what the tool counts: work-items for ROCm, blocks for CUDA."""
    return {"grid": _sizes(grid), "workgroup": _sizes(group)}


def kernel(name: str, axes: Mapping[str, Scalar]) -> BenchSubject:
    """A kernel that a profiler saw."""
    return BenchSubject("kernel", name, axes)


def _sizes(sizes: Sequence[object]) -> str:
    return "x".join(str(size).strip() for size in sizes)


def _plain(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def _utc(text: str, source: ImportedFile) -> str:
    if not text:
        return ""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{source.path}: {text!r} is not a date") from None
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return time.isoformat(timespec="microseconds")


__all__ = [
    "HOST_TIME",
    "About",
    "ImportedTiming",
    "by_name",
    "group_timings",
    "import_timings",
    "kernel",
    "launch",
]
