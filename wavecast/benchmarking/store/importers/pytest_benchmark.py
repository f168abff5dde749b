"""pytest-benchmark's JSON (github.com/ionelmc/pytest-benchmark, session.py, stats.py).

`benchmarks[].stats` hold times in seconds: `data`, one per round, where it was saved, and `median`;
`fullname` and `params` say of what, `commit_info` and `machine_info` where. Times are the host's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wavecast.benchmarking.records import BenchSubject, Scalar
from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.benchmarking.store.importers.timings import (
    HOST_TIME,
    About,
    ImportedTiming,
    import_timings,
)


def recognise(source: ImportedFile) -> bool:
    """A document with benchmarks and what machine they ran on."""
    document = source.json
    return isinstance(document, dict) and {"benchmarks", "machine_info"} <= set(document)


def read(source: ImportedFile, labels: ImportLabels) -> Imported:
    """Every benchmark."""
    document = source.json
    commit = document.get("commit_info") or {}
    about = About(
        started=document.get("datetime") or "",
        commit=commit.get("id") or "",
        dirty=bool(commit.get("dirty")),
        host=document["machine_info"].get("node") or "",
    )
    timings = [_timing(benchmark) for benchmark in document["benchmarks"]]
    return import_timings(source, "pytest-benchmark", timings, labels, about)


def _timing(benchmark: Mapping[str, Any]) -> ImportedTiming:
    stats = benchmark["stats"]
    params = benchmark.get("params") or {}
    name = benchmark.get("fullname") or benchmark["name"]
    if params and name.endswith("]"):
        name = name[: name.index("[")]
    axes: dict[str, Scalar] = {
        key: value if isinstance(value, (str, int, float, bool)) else str(value)
        for key, value in params.items()
    }
    samples = tuple(float(seconds) for seconds in stats.get("data") or ())
    value = None if samples else float(stats["median"])
    return ImportedTiming(BenchSubject("callable", name, axes), samples, value, notes=(HOST_TIME,))


__all__ = ["read", "recognise"]
