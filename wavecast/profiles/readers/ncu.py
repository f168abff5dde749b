"""Nsight Compute's CSV: the details page (a row per metric) and the raw page (a column per metric,
units in the row below the columns).

Messages of the tool (`==PROF== …`) precede the table. Numbers have separators of thousands; a file
with decimal commas is refused, because 1,234 could then be two numbers.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import IO, Final

from wavecast.errors import InputError
from wavecast.profiles.json_stream import read_whole
from wavecast.profiles.profile import Profile, ProfiledDevice, ProfiledKernel
from wavecast.profiles.readers.sizes import Axes
from wavecast.wording import count

_TIME: Final = ("gpu__time_duration.sum", "Duration")
_NANOSECONDS: Final = {
    "nsecond": 1, "usecond": 1e3, "msecond": 1e6, "second": 1e9,
    "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9,
}  # fmt: skip
_GIGAHERTZ: Final = {
    "hz": 1e-9, "khz": 1e-6, "mhz": 1e-3, "ghz": 1,
    "cycle/second": 1e-9, "cycle/msecond": 1e-6, "cycle/usecond": 1e-3, "cycle/nsecond": 1,
}  # fmt: skip
_ENGLISH: Final = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?([eE][+-]?\d+)?")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),(\d{1,2}|\d{4,})")
_DIGITS: Final = re.compile(r"[0-9]{1,18}")
_REGISTERS: Final = ("Registers Per Thread", "launch__registers_per_thread")


def recognise(head: bytes) -> bool:
    """A CSV file with kernels and metrics, after messages of the tool."""
    return b"Kernel Name" in head and (b"Metric Name" in head or _TIME[0].encode() in head)


def read(stream: IO[bytes]) -> Profile:
    """Launches in the order of the file, one after the other: ncu serialises them.

    Raises InputError for decimal commas and for a table without launches.
    """
    text = read_whole(stream).decode("utf-8-sig", "replace")
    lines = [line for line in text.splitlines() if line and not line.startswith("==")]
    try:
        rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    except csv.Error as error:
        raise InputError(f"the table cannot be read: {error}") from None
    for row in rows:
        if any(isinstance(v, str) and _DECIMAL_COMMA.fullmatch(v) for v in row.values()):
            raise InputError(
                "decimal commas make the numbers ambiguous", hint="run ncu with LC_ALL=C"
            )
    launches = _details(rows) if rows and "Metric Name" in rows[0] else _raw(rows)
    profile = Profile("Nsight Compute")
    profile.notes.append("ncu fixes the clocks and flushes the caches unless it is told otherwise")
    now, untimed = 0, 0
    for row, metrics in launches:
        duration = _duration(metrics)
        if duration is None:
            untimed += 1
            continue
        number = len(profile.launches)
        info = profile.kernels.number(_kernel(row, metrics))
        device = _integer(row.get("Device"))
        stream_number = _integer(row.get("Stream"))
        try:
            profile.launches.add(info, device, stream_number, now, duration)
        except ValueError:
            profile.damaged += 1
            continue
        now += duration
        profile.counters[number] = {
            name: float(value.replace(",", "")) * _GIGAHERTZ.get(unit.lower(), 1)
            for name, (value, unit) in metrics.items()
            if _ENGLISH.fullmatch(value)
        }
        capability = (row.get("CC") or "").replace(".", "")
        profile.devices[device] = ProfiledDevice(target=f"sm_{capability}" if capability else "")
    if not len(profile.launches):
        raise InputError(f"no launch has a time ({_TIME[0]})", hint="ncu --set full has it")
    if untimed:
        profile.notes.append(f"{count(untimed, 'launch', 'launches')} without a time, left out")
    return profile


_Metrics = dict[str, tuple[str, str]]


def _details(rows: Sequence[Mapping[str, str]]) -> list[tuple[Mapping[str, str], _Metrics]]:
    launches: dict[tuple[str, str], tuple[Mapping[str, str], _Metrics]] = {}
    for row in rows:
        key = (row.get("Process ID") or "", row.get("ID") or "")
        metrics = launches.setdefault(key, (row, {}))[1]
        if row.get("Metric Name"):
            metrics[row["Metric Name"]] = (
                row.get("Metric Value") or "",
                row.get("Metric Unit") or "",
            )
    return list(launches.values())


def _raw(rows: Sequence[Mapping[str, str]]) -> list[tuple[Mapping[str, str], _Metrics]]:
    if not rows:
        return []
    units, *launches = rows
    return [
        (row, {name: (row[name] or "", units[name] or "") for name in row if name in units})
        for row in launches
    ]


def _duration(metrics: _Metrics) -> int | None:
    for name in _TIME:
        if name in metrics:
            value, unit = metrics[name]
            if unit in _NANOSECONDS and _ENGLISH.fullmatch(value):
                nanoseconds = float(value.replace(",", "")) * _NANOSECONDS[unit]
                return round(nanoseconds) if math.isfinite(nanoseconds) else None
    return None


def _kernel(row: Mapping[str, str], metrics: _Metrics) -> ProfiledKernel:
    registers = next((metrics[name][0] for name in _REGISTERS if name in metrics), "")
    return ProfiledKernel(
        row.get("Kernel Name") or "unnamed kernel",
        blocks=_axes(row.get("Grid Size")),
        threads=_axes(row.get("Block Size")),
        registers=_integer(registers.replace(",", "")),
    )


def _axes(text: str | None) -> Axes:
    numbers = [int(n) for n in re.findall(r"\b[0-9]{1,18}\b", text or "")]
    if not 1 <= len(numbers) <= 3:
        return (0, 0, 0)
    x, y, z = (*numbers, 1, 1)[:3]
    return (x, y, z)


def _integer(text: str | None) -> int:
    return int(text) if text and _DIGITS.fullmatch(text) else 0


__all__ = ["read", "recognise"]
