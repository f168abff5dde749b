"""Traces of JAX and XLA for viewers: `*.trace.json.gz`, and `perfetto_trace.json.gz` with the same
events.

Processes are the planes of `*.xplane.pb`, threads their lines; names of both precede the events.
Times are microseconds, statistics are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

import msgspec

from wavecast.profiles.json_stream import ArrayReader
from wavecast.profiles.profile import Profile, ProfiledDevice
from wavecast.profiles.readers import xla

KEY: Final = "traceEvents"
_PLANE: Final = re.compile(rb'"name"\s*:\s*"/(?:device:(?:GPU|TPU|CUSTOM)|host:)')
_LIMITS: Final = (1_000_000, 5_000_000)
"""Events after which XLA writes no more (1 million until 2025)."""


class _Event(msgspec.Struct, frozen=True):
    ph: str = ""
    name: str = ""
    pid: int | None = None
    tid: int | None = None
    ts: float | None = None
    dur: float | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Timed:
    """An event of a stream or a thread."""

    name: str
    start_ns: float
    duration_ns: float


def recognise(head: bytes) -> bool:
    """A Chrome trace whose first processes are planes of XLA."""
    return b'"traceEvents"' in head and _PLANE.search(head) is not None


def read(stream: IO[bytes]) -> Profile:
    """The profile in `stream`, JSON that is already decompressed.

    Raises InputError for a file without events.
    """
    reader = ArrayReader(stream, KEY)
    decoder = msgspec.json.Decoder(list[_Event])
    collect = _Collector()
    for batch in reader.batches(decoder.decode):
        collect.add_all(batch)
    profile = collect.finish()
    profile.damaged += reader.damaged
    if reader.truncated:
        profile.notes.append("the file ends early; what follows is of the part that is there")
    if collect.timed in _LIMITS:
        profile.notes.append(
            f"XLA writes no more than {collect.timed:,} events: the .xplane.pb next to the file "
            "has all"
        )
    return profile


class _Collector(xla.XlaCollector):
    """Events by the names of their processes and threads."""

    def __init__(self) -> None:
        super().__init__()
        self.timed = 0
        self._planes: dict[int | None, str] = {}
        self._streams: dict[tuple[int | None, int | None], int] = {}
        self._devices: dict[int | None, int] = {}

    def add_all(self, events: Iterable[_Event]) -> None:
        """Names of processes and threads, then their events."""
        for event in events:
            if event.ph == "M":
                self._add_name(event)
            elif event.ph == "X":
                self.timed += 1
                self._add_activity(event)

    def _add_name(self, event: _Event) -> None:
        name = str(event.args.get("name", ""))
        if event.name == "process_name":
            self._planes[event.pid] = name
            device = xla.DEVICE.match(name)
            if device:
                number = self._devices[event.pid] = int(device[1])
                self.profile.devices[number] = ProfiledDevice()
        elif event.name == "thread_name":
            stream = xla.STREAM.match(name)
            if stream:
                self._streams[event.pid, event.tid] = int(stream[1])

    def _add_activity(self, event: _Event) -> None:
        device = self._devices.get(event.pid)
        host = device is None and self._planes.get(event.pid) in xla.HOST
        stream = self._streams.get((event.pid, event.tid))
        if not host and (device is None or stream is None):
            return
        if event.ts is None or event.dur is None:
            self.profile.damaged += 1
            return
        timed = _Timed(event.name, event.ts * 1000, event.dur * 1000)
        stats: Mapping[str, Any] = event.args
        if device is not None and stream is not None:
            self.activity(device, stream, timed, stats)
        else:
            self.host((event.pid, event.tid), timed, stats)


__all__ = ["KEY", "read", "recognise"]
