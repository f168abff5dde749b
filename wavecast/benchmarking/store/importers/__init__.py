"""Files of other tools that hold kernel times, and our own exports, as runs and records."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

from wavecast.benchmarking.records import BenchRecord
from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.errors import InputError, UnknownName

FORMATS: Final[dict[str, str]] = {
    "wavecast": "an export: .parquet, .json, .jsonl, .csv",
    "nvbench": "NVBench: --json or --jsonbin",
    "pytest-benchmark": "pytest-benchmark: --benchmark-json, .benchmarks/",
    "google-benchmark": "Google Benchmark: --benchmark_out_format=json",
    "aiter": "AITER: CSV files of tuned GEMM and MoE kernels",
    "rocprofv3": "rocprofv3 and rocprof-compute: CSV",
    "rocpd": "rocprofv3's SQLite database",
    "ncu": "Nsight Compute: ncu --csv, details or raw page",
    "chrome-trace": "torch.profiler: export_chrome_trace, .json or .json.gz",
}
"""Name -> what it is. The module of a format has its name, and `recognise(source)`, whether a file
is of this format, and `read(source, given)`, its runs."""

_OTHER_CONTENT: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
                         ValueError)  # fmt: skip
"""What a module raises for values of a type or range that its format does not have."""


def read_file(path: Path, name: str = "", labels: ImportLabels | None = None) -> Imported:
    """The runs of a file of the format `name`, or of the one it is recognised as.

    Raises UnknownName for a format that is none, InputError for a file of no known format or
    without kernel times, UsageError for a device that contradicts the file.
    """
    if name and name not in FORMATS:
        raise UnknownName("format", name, FORMATS)
    labels = labels or ImportLabels()
    source = ImportedFile(path)
    if not name:
        name = next((candidate for candidate in FORMATS if _matches_format(candidate, source)), "")
    if not name:
        what = f": {source.not_json}" if source.not_json else ""
        hint = f"known: {', '.join(FORMATS)}; see wavecast store import --formats"
        raise InputError(f"{path} is in no known format{what}", hint=hint)
    try:
        imported: Imported = _module(name).read(source, labels)
        runs = [(run, [_checked(record) for record in records]) for run, records in imported.runs]
        return replace(imported, runs=tuple((run, tuple(records)) for run, records in runs))
    except _OTHER_CONTENT as error:
        raise InputError(
            f"{path} is not a valid {name} file: {type(error).__name__}: {error}"
        ) from None


def _checked(record: BenchRecord) -> BenchRecord:
    """A record as a store gives it back. Raises TypeError and ValueError for values of types that
    no record has."""
    return BenchRecord.from_json(record.to_json())


def _matches_format(name: str, source: ImportedFile) -> bool:
    try:
        return _module(name).recognise(source)
    except _OTHER_CONTENT:
        return False


def _module(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name.replace('-', '_')}")


__all__ = ["FORMATS", "ImportLabels", "Imported", "read_file"]
