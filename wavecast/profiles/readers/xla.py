"""What both formats of XLA's profiles have in common: events of streams and of the host.

A stream has kernels and copies. A kernel has its grid, block and registers, and the operation and
module of the compiled program that it is from. Calls of the host have the number of what they
launch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

from wavecast.profiles.profile import (
    NONE,
    Profile,
    ProfiledDevice,
    ProfiledKernel,
    ProfiledOp,
)
from wavecast.profiles.readers.sizes import Axes

DEVICE: Final = re.compile(r"/device:GPU:(\d{1,9})")
STREAM: Final = re.compile(r"Stream #(\d{1,9})")
HOST: Final = ("/host:CUPTI", "/host:ROCTRACER", "/host:CPU")
_DIGITS: Final = re.compile(r"[0-9]{1,12}")
_DETAIL: Final = re.compile(r"(\w+):([\d,.]+)")
_COPY_STATS: Final = ("memcpy_details", "memset_details")
Stats = Mapping[str, Any]
"""Statistics of an event or a plane by name."""


class TraceEvent(Protocol):
    """An event of a stream or a thread: its name, nanoseconds, and statistics by name."""

    @property
    def name(self) -> str: ...
    @property
    def start_ns(self) -> float: ...
    @property
    def duration_ns(self) -> float: ...


class XlaCollector:
    """Puts events into the columns of a profile; `finish` is called after the last."""

    def __init__(self) -> None:
        self.profile = Profile("JAX/XLA profiler")
        self._threads: dict[tuple[object, object], int] = {}

    def host(self, thread: tuple[object, object], event: TraceEvent, stats: Stats) -> None:
        """A call of the host, if it launches: it has a correlation."""
        correlation = _number(stats.get("correlation_id"))
        if correlation == NONE:
            return
        profile = self.profile
        try:
            start, duration = _times(event)
            number = profile.call_names.number(event.name)
            thread_number = self._threads.setdefault(thread, len(self._threads))
            profile.calls.add(number, thread_number, start, duration, correlation)
        except ValueError:
            profile.damaged += 1

    def activity(self, device: int, stream: int, event: TraceEvent, stats: Stats) -> None:
        """A kernel or a copy on a stream."""
        try:
            self._activity(device, stream, event, stats)
        except ValueError as error:
            self.profile.leave_out(error)

    def finish(self) -> Profile:
        """The profile; operations start with the calls that launched them."""
        profile, launches = self.profile, self.profile.launches
        started = dict(zip(profile.calls.correlation, profile.calls.start, strict=True))
        for correlation, op in zip(launches.correlation, launches.op, strict=True):
            if op != NONE and correlation in started:
                profile.ops.start[op] = started[correlation]
        if not len(launches):
            profile.notes.append("it has no stream of a GPU with kernels, only the host")
        return profile

    def _activity(self, device: int, stream: int, event: TraceEvent, stats: Stats) -> None:
        profile = self.profile
        start, duration = _times(event)
        correlation = _number(stats.get("correlation_id"))
        if any(name in stats for name in _COPY_STATS):
            info = profile.copy_names.number(event.name)
            profile.copies.add(info, device, stream, start, duration, correlation)
            return
        info = profile.kernels.number(_kernel(event.name, str(stats.get("kernel_details", ""))))
        profile.launches.add(info, device, stream, start, duration, correlation)
        if stats.get("hlo_op"):
            self._operation(stats, start)

    def _operation(self, stats: Stats, start: int) -> None:
        """The operation of the last kernel."""
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
    fields = dict(_DETAIL.findall(details))
    shared = _whole(fields.get("static_shared")) + _whole(fields.get("dynamic_shared"))
    return ProfiledKernel(
        name,
        blocks=_axes(fields.get("grid")),
        threads=_axes(fields.get("block")),
        registers=_whole(fields.get("regs")),
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


def _number(value: object) -> int:
    """A correlation: an integer, or its digits in JSON; NONE for anything else."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else NONE


def properties(stats: Mapping[str, Any]) -> ProfiledDevice:
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


__all__ = ["DEVICE", "HOST", "STREAM", "TraceEvent", "XlaCollector", "properties"]
