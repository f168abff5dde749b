"""Google Benchmark's JSON (github.com/google/benchmark, src/json_reporter.cc).

`benchmarks[]` hold repetitions (`run_type` `iteration`) and aggregates of them; `real_time` is in
`time_unit`. Repetitions of one `run_name` are its samples; of aggregates alone the median is taken,
else the mean. Times are the host's, but for benchmarks named `…/manual_time`, which say their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wavecast.benchmarking.records import BenchSubject
from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.benchmarking.store.importers.timings import (
    HOST_TIME,
    About,
    ImportedTiming,
    import_timings,
)

_UNITS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def recognise(source: ImportedFile) -> bool:
    """A document with a context and benchmarks."""
    document = source.json
    return isinstance(document, dict) and {"benchmarks", "context"} <= set(document)


def read(source: ImportedFile, labels: ImportLabels) -> Imported:
    """Every benchmark that ended without an error."""
    context = source.json["context"]
    samples: dict[str, list[float]] = {}
    means: dict[str, dict[str, float]] = {}
    notes: list[str] = []
    for row in source.json["benchmarks"]:
        name = row.get("run_name") or row["name"]
        if row.get("error_occurred") or row.get("skipped"):
            message = row.get("error_message") or row.get("skip_message") or "no message"
            notes.append(f"{name}: {message}")
        elif row.get("run_type", "iteration") == "iteration":
            samples.setdefault(name, []).append(_seconds(row))
        elif row.get("aggregate_name") in ("median", "mean"):
            means.setdefault(name, {})[row["aggregate_name"]] = _seconds(row)
    timings = [_timing(name, tuple(times), None) for name, times in samples.items()]
    for name, statistics in means.items():
        if name not in samples:
            timings.append(_timing(name, (), statistics.get("median", statistics.get("mean"))))
            if "median" not in statistics:
                notes.append(f"{name}: its mean, no median was kept")
    about = About(
        context.get("date") or "", host=context.get("host_name") or "", notes=tuple(notes)
    )
    return import_timings(source, "google-benchmark", timings, labels, about)


def _timing(name: str, samples: tuple[float, ...], value: float | None) -> ImportedTiming:
    notes = () if "/manual_time" in name else (HOST_TIME,)
    return ImportedTiming(BenchSubject("callable", name), samples, value, notes=notes)


def _seconds(row: Mapping[str, Any]) -> float:
    return float(row["real_time"]) * _UNITS[row["time_unit"]]


__all__ = ["read", "recognise"]
