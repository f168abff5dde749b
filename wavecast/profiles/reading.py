"""Files of profilers, by content: one reader per format.

Another distribution adds a reader with an entry point in the group `wavecast.profiles`:

    [project.entry-points."wavecast.profiles"]
    mine = "mine.profiles"

A reader is a module with `recognise(head: bytes) -> bool` for the first bytes of a file, and
`read`, which takes the unpacked bytes as a stream, or the path if the module has `MAGIC`.
"""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import IO, Final

from wavecast import files, plugins
from wavecast.errors import InputError
from wavecast.profiles.clocks import align
from wavecast.profiles.implausible import leave_out
from wavecast.profiles.json_stream import read_some
from wavecast.profiles.lost import find_lost
from wavecast.profiles.profile import Profile
from wavecast.profiles.readers import att
from wavecast.wording import count

GROUP: Final = "wavecast.profiles"
OWN: Final = {
    "sqlite": "wavecast.profiles.readers.sqlite",
    "xplane": "wavecast.profiles.readers.xplane",
    "perfetto": "wavecast.profiles.readers.perfetto",
    "rocprofv3_json": "wavecast.profiles.readers.rocprofv3_json",
    "proton": "wavecast.profiles.readers.proton",
    "xla_json": "wavecast.profiles.readers.xla_json",
    "kineto": "wavecast.profiles.readers.kineto",
    "ncu": "wavecast.profiles.readers.ncu",
    "tables": "wavecast.profiles.readers.tables",
}
"""Readers of this package; the first that recognises a file reads it."""
_HEAD: Final = 4 << 20
_DAY: Final = 24 * 3600 * 10**9
"""Nanoseconds that no profiler records for."""
_PACKED: Final = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open}
_TRACES: Final = ((".xplane.pb",), (".json", ".json.gz"))
"""Ends of the names of traces in a folder; JAX writes each trace in both formats."""
_COPY: Final = "perfetto_trace.json.gz"
"""What JAX writes a second time for Perfetto."""


def read(path: Path) -> Profile:
    """The profile in a file.

    Raises InputError for a file that is absent, damaged or of no format that is known.
    """
    files.check_regular(path)
    head = _head(path)
    for name in plugins.names(GROUP, OWN):
        reader = plugins.load(GROUP, OWN, name)
        if reader.recognise(head):
            return _read(path, reader)
    raise InputError(
        f"{path}: not a profile that Wavecast reads",
        hint="PyTorch profiler, rocprofv3 (csv, json, rocpd), rocprof-compute, ncu --csv, "
        "nsys export --type sqlite, Proton hatchet, JAX (xplane.pb, trace.json.gz), "
        "Perfetto (.pftrace)",
    )


def read_ranks(path: Path) -> Iterator[tuple[Path, Profile]]:
    """The profiles of a file, or of the traces in a folder in the order of their names; a folder
    that is one thread trace is one profile.

    Raises InputError as `read`, and for a folder without traces.
    """
    if not path.is_dir():
        yield path, read(path)
        return
    if att.is_trace(path):
        yield path, clean_profile(att.read(path))
        return
    thread_traces = sorted(p.name for p in path.glob("ui_output_*") if att.is_trace(p))
    if thread_traces:
        raise InputError(
            f"{path} has {count(len(thread_traces), 'thread trace')}: give one of them",
            hint=", ".join(thread_traces),
        )
    files_here = sorted(p for p in path.iterdir() if p.is_file())
    files_here = [p for p in files_here if p.name != _COPY] or files_here
    every = ([p for p in files_here if p.name.endswith(ends)] for ends in _TRACES)
    traces = next(filter(None, every), [])
    if not traces:
        raise InputError(f"{path}: no .json, .json.gz or .xplane.pb in the folder")
    for trace in traces:
        yield trace, read(trace)


def _read(path: Path, reader: ModuleType) -> Profile:
    if hasattr(reader, "MAGIC"):
        profile = reader.read(path)
    else:
        try:
            with _open(path) as stream:
                profile = reader.read(stream)
        except InputError as error:
            raise InputError(f"{path}: {error.message}", hint=error.hint) from error
    return clean_profile(profile)


def clean_profile(profile: Profile) -> Profile:
    """A profile that a reader made, without records that are of no run; with notes on what is left
    out, and on times that cannot be of one run."""
    if profile.damaged:
        profile.notes.append(f"{count(profile.damaged, 'record')} cannot be read, left out")
    if profile.unfinished:
        profile.notes.append(
            f"{count(profile.unfinished, 'record')} without a start and a later end: left out of "
            "times, means and spans"
        )
    leave_out(profile)
    align(profile)
    find_lost(profile)
    starts = profile.launches.start
    apart = (max(starts) - min(starts)) // _DAY if starts else 0
    if apart:
        profile.notes.append(
            f"kernels start up to {count(apart, 'day')} apart: their times are of different "
            "clocks, so spans and idle times mean nothing"
        )
    return profile


def _open(path: Path) -> IO[bytes]:
    try:
        with path.open("rb") as file:
            magic = file.read(3)
        for start, opener in _PACKED.items():
            if magic.startswith(start):
                return opener(path, "rb")
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _head(path: Path) -> bytes:
    with _open(path) as stream:
        head, whole = read_some(stream, _HEAD)
    if not head and not whole:
        raise InputError(f"{path}: cannot be unpacked")
    return head


__all__ = ["GROUP", "OWN", "clean_profile", "read", "read_ranks"]
