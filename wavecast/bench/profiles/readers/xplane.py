"""Profiles of JAX and XLA: `*.xplane.pb`, read through JAX.

A plane per GPU has a line per stream. Its other lines (`XLA Ops`, `Steps` …) show the same kernels
again and are left out. A kernel has its grid, block and registers, and the operation and module of
the compiled program that it is from. The launching calls are in a plane of the host.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from wavecast.bench.profiles.profile import (
    NONE,
    Profile,
    ProfiledDevice,
    ProfiledKernel,
    ProfiledOp,
)
from wavecast.bench.profiles.readers.sizes import Axes

MAGIC: Final = b"\n"
"""A plane is the first field of the file; the reader takes a path."""
_DEVICE: Final = re.compile(r"/device:GPU:(\d+)")
_STREAM: Final = re.compile(r"Stream #(\d+)")
_CALLS: Final = ("/host:CUPTI", "/host:ROCTRACER", "/host:CPU")
_PLANE: Final = re.compile(
    rb"\n[\x80-\xff]*[\x00-\x7f](?:\x08[\x80-\xff]*[\x00-\x7f])?\x12.(?:/|Task Env)", re.DOTALL
)
"""Field 1 of a length: a plane, with its number and its name."""
_DIGITS: Final = re.compile(r"[0-9]{1,12}")
_DETAIL: Final = re.compile(r"(\w+):([\d,.]+)")
_COPY_STATS: Final = ("memcpy_details", "memset_details")


class TraceEvent(Protocol):
    """An event of a line: nanoseconds, and pairs of names and values."""

    @property
    def name(self) -> str: ...
    @property
    def start_ns(self) -> float: ...
    @property
    def duration_ns(self) -> float: ...
    @property
    def stats(self) -> Iterable[tuple[str, Any]]: ...


class TraceLine(Protocol):
    """A stream or a thread."""

    @property
    def name(self) -> str: ...
    @property
    def events(self) -> Iterable[TraceEvent]: ...


class TracePlane(Protocol):
    """A device, or one kind of events of the host."""

    @property
    def name(self) -> str: ...
    @property
    def lines(self) -> Iterable[TraceLine]: ...
    @property
    def stats(self) -> Iterable[tuple[str, Any]]: ...


def recognise(head: bytes) -> bool:
    """Protocol buffers whose first field is a plane with a name."""
    return _PLANE.match(head) is not None


def read(path: Path) -> Profile:
    """The kernels, copies and launching calls of a profile.

    Raises MissingTool without JAX, InputError for a file that cannot be read.
    """
    from wavecast.integrations.jax.xplane import planes

    return profile_of(planes(path))


def profile_of(planes: Iterable[TracePlane]) -> Profile:
    """The profile of planes as JAX reads them."""
    collect = _Collector()
    known = list(planes)
    for plane in known:
        if plane.name in _CALLS:
            collect.host(plane)
    for plane in known:
        device = _DEVICE.fullmatch(plane.name)
        if device:
            collect.device(int(device[1]), plane)
    if not len(collect.profile.launches):
        collect.profile.notes.append("it has no plane of a GPU with kernels, only of the host")
    return collect.profile


class _Collector:
    """Puts events into the columns of a profile."""

    def __init__(self) -> None:
        self.profile = Profile("JAX/XLA profiler")
        self._threads: dict[tuple[str, str], int] = {}
        self._started: dict[int, int] = {}

    def host(self, plane: TracePlane) -> None:
        """Calls that launch: events with a correlation."""
        profile = self.profile
        for line in plane.lines:
            thread = self._threads.setdefault((plane.name, line.name), len(self._threads))
            for event in line.events:
                correlation = dict(event.stats).get("correlation_id")
                if not isinstance(correlation, int):
                    continue
                try:
                    start, duration = _times(event)
                    number = profile.call_names.number(event.name)
                    profile.calls.add(number, thread, start, duration, correlation)
                except ValueError:
                    profile.damaged += 1
                    continue
                self._started[correlation] = start

    def device(self, number: int, plane: TracePlane) -> None:
        """The streams of a GPU."""
        self.profile.devices[number] = _properties(dict(plane.stats))
        for line in plane.lines:
            stream = _STREAM.match(line.name)
            for event in line.events if stream else ():
                try:
                    self._activity(event, number, int(stream[1]) if stream else NONE)
                except ValueError:
                    self.profile.damaged += 1

    def _activity(self, event: TraceEvent, device: int, stream: int) -> None:
        stats, profile = dict(event.stats), self.profile
        start, duration = _times(event)
        given = stats.get("correlation_id")
        correlation = given if isinstance(given, int) else NONE
        if any(name in stats for name in _COPY_STATS):
            info = profile.copy_names.number(event.name)
            profile.copies.add(info, device, stream, start, duration, correlation)
            return
        info = profile.kernels.number(_kernel(event.name, str(stats.get("kernel_details", ""))))
        profile.launches.add(info, device, stream, start, duration, correlation)
        if stats.get("hlo_op"):
            self._operation(stats, self._started.get(correlation, start))

    def _operation(self, stats: Mapping[str, Any], start: int) -> None:
        """The operation of the last kernel, when it was launched."""
        profile, operation = self.profile, str(stats["hlo_op"])
        scopes = [part for part in str(stats.get("tf_op", "")).rstrip(":").split("/") if part]
        name = scopes[-1] if scopes else operation.rpartition(".")[0] or operation
        profile.launches.op[-1] = len(profile.ops)
        profile.ops.add(profile.op_infos.number(ProfiledOp(name)), NONE, start, 0)
        parts = (str(stats.get("hlo_module", "")), *scopes[:-1])
        path = ".".join(f"{part.replace('.', ' ')}_0" for part in parts if part)
        if path:
            profile.ops.module[-1] = profile.modules.number(path)


def _times(event: TraceEvent) -> tuple[int, int]:
    """Start and duration. Raises ValueError for NaN and infinities."""
    if not (math.isfinite(event.start_ns) and math.isfinite(event.duration_ns)):
        raise ValueError(f"start {event.start_ns}, duration {event.duration_ns}")
    return round(event.start_ns), round(event.duration_ns)


def _kernel(name: str, details: str) -> ProfiledKernel:
    """A kernel with what its details have: `regs:32 static_shared:0 … grid:8,1,1 block:128,1,1`."""
    found = dict(_DETAIL.findall(details))
    shared = _whole(found.get("static_shared")) + _whole(found.get("dynamic_shared"))
    return ProfiledKernel(
        name,
        blocks=_axes(found.get("grid")),
        threads=_axes(found.get("block")),
        registers=_whole(found.get("regs")),
        lds_bytes=shared,
    )


def _whole(text: str | None) -> int:
    return int(text) if text and _DIGITS.fullmatch(text) else 0


def _axes(text: str | None) -> Axes:
    numbers = (text or "").split(",")
    if len(numbers) != 3:
        return (0, 0, 0)
    x, y, z = (_whole(number) for number in numbers)
    return (x, y, z)


def _properties(stats: Mapping[str, Any]) -> ProfiledDevice:
    """The GPU of a plane; its target is the compute capability, which only NVIDIA's have."""

    def number(name: str) -> int:
        value = stats.get(name)
        return value if isinstance(value, int) else 0

    vendor = str(stats.get("device_vendor", ""))
    major, minor = number("compute_cap_major"), number("compute_cap_minor")
    target = f"sm_{major}{minor}" if major and "amd" not in vendor.lower() else ""
    return ProfiledDevice(
        str(stats.get("device_type_string", "")),
        target,
        number("core_count"),
        number("memory_size"),
    )


__all__ = ["MAGIC", "TraceEvent", "TraceLine", "TracePlane", "profile_of", "read", "recognise"]
