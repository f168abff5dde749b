"""Nsight Compute's CSV (NVIDIA, "Nsight Compute CLI", --csv and --page).

The details page has a row per metric: `Kernel Name`, `Metric Name`, `Metric Unit`, `Metric Value`;
the raw page a column per metric and its units in the row below the columns. The time is
`gpu__time_duration.sum`, which the section Speed Of Light calls `Duration`. Numbers have separators
of thousands; `CC` is the compute capability, and no column names the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from wavecast.bench.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.bench.store.importers.timings import (
    About,
    ImportedTiming,
    grouped,
    imported,
    kernel,
    launch,
)
from wavecast.errors import InputError

_METRICS: Final = ("gpu__time_duration.sum", "Duration")
_UNITS: Final = {
    "nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1.0,
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0,
}  # fmt: skip
_ENGLISH: Final = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?([eE][+-]?\d+)?")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),(\d{1,2}|\d{4,})")


def recognise(source: ImportedFile) -> bool:
    """A CSV file with kernels and metrics."""
    columns = set(source.columns)
    return "Kernel Name" in columns and bool(columns & {"Metric Name", _METRICS[0]})


def read(source: ImportedFile, given: ImportLabels) -> Imported:
    """Launches, by kernel and size of launch; each launch counts once. Raises InputError."""
    rows = list(source.table())
    for row in rows:
        if any(_DECIMAL_COMMA.fullmatch(text) for text in row.values()):
            raise InputError(
                f"{source.path} has decimal commas, so that its numbers are not certain",
                hint="run ncu with LC_ALL=C",
            )
    times = _raw(source, rows) if _METRICS[0] in source.columns else _details(source, rows)
    notes = ("profiled: ncu fixes the clocks and flushes the caches unless it is told otherwise",)
    found = grouped(times)
    return imported(source, "ncu", found, given, About(notes=notes if found else ()))


def _details(
    source: ImportedFile, rows: list[dict[str, str]]
) -> Iterator[tuple[ImportedTiming, float]]:
    seen: set[tuple[str, str]] = set()
    for row in rows:
        launched = (row.get("Process ID", ""), row["ID"])
        if row["Metric Name"] in _METRICS and launched not in seen:
            seen.add(launched)
            yield _timing(row), _seconds(source, row["Metric Value"], row["Metric Unit"])


def _raw(
    source: ImportedFile, rows: list[dict[str, str]]
) -> Iterator[tuple[ImportedTiming, float]]:
    if not rows:
        return
    units, *launches = rows
    unit = units[_METRICS[0]]
    for row in launches:
        yield _timing(row), _seconds(source, row[_METRICS[0]], unit)


def _timing(row: Mapping[str, str]) -> ImportedTiming:
    axes = {}
    if "Grid Size" in row and "Block Size" in row:
        axes = launch(_sizes(row["Grid Size"]), _sizes(row["Block Size"]))
    capability = row.get("CC", "").replace(".", "")
    return ImportedTiming(
        kernel(row["Kernel Name"], axes), target=f"sm_{capability}" if capability else ""
    )


def _sizes(text: str) -> list[str]:
    return text.strip("()").split(",")


def _seconds(source: ImportedFile, value: str, unit: str) -> float:
    if unit not in _UNITS:
        raise InputError(f"{source.path}: a time has the unit {unit!r}")
    if not _ENGLISH.fullmatch(value):
        raise InputError(f"{source.path}: {value!r} is not a number")
    return float(value.replace(",", "")) * _UNITS[unit]


__all__ = ["read", "recognise"]
