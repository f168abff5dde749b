"""Profiles of JAX and XLA: `*.xplane.pb`, read through JAX.

A plane per GPU has a line per stream. Its other lines (`XLA Ops`, `Steps` …) show the same kernels
again and are left out. The launching calls are in a plane of the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Protocol

from wavecast.profiles.profile import Profile
from wavecast.profiles.readers import xla

MAGIC: Final = b"\n"
"""A plane is the first field of the file; the reader takes a path."""
_PLANE: Final = re.compile(
    rb"\n[\x80-\xff]*[\x00-\x7f](?:\x08[\x80-\xff]*[\x00-\x7f])?\x12.(?:/|Task Env)", re.DOTALL
)
"""Field 1 of a length: a plane, with its number and its name."""


class PlaneEvent(xla.TraceEvent, Protocol):
    """An event of a line, with pairs of names and values."""

    @property
    def stats(self) -> Iterable[tuple[str, Any]]: ...


class TraceLine(Protocol):
    """A stream or a thread."""

    @property
    def name(self) -> str: ...
    @property
    def events(self) -> Iterable[PlaneEvent]: ...


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
    from wavecast.frameworks.jax.xplane import planes

    return profile_of(planes(path))


def profile_of(planes: Iterable[TracePlane]) -> Profile:
    """The profile of planes as JAX reads them."""
    collect = xla.XlaCollector()
    for plane in planes:
        device = xla.DEVICE.fullmatch(plane.name)
        if device:
            number = int(device[1])
            collect.profile.devices[number] = xla.properties(dict(plane.stats))
            _streams(collect, number, plane)
        elif plane.name in xla.HOST:
            for line in plane.lines:
                for event in line.events:
                    collect.host((plane.name, line.name), event, dict(event.stats))
    return collect.finish()


def _streams(collect: xla.XlaCollector, device: int, plane: TracePlane) -> None:
    for line in plane.lines:
        stream = xla.STREAM.match(line.name)
        if stream:
            for event in line.events:
                collect.activity(device, int(stream[1]), event, dict(event.stats))


__all__ = ["MAGIC", "PlaneEvent", "TraceLine", "TracePlane", "profile_of", "read", "recognise"]
