"""rocpd, the SQLite database of rocprofv3. The grid is in work-items."""

from __future__ import annotations

from wavecast.benchmarking.store.importers.profiled import matches_reader, runs
from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.profiles.readers import sqlite


def recognise(source: ImportedFile) -> bool:
    """A database with a table of dispatches."""
    return matches_reader(source, sqlite) and sqlite.has_rocpd(source.path)


def read(source: ImportedFile, labels: ImportLabels) -> Imported:
    """Dispatches of all processes, by kernel and size of launch."""
    return runs(source, "rocpd", sqlite, labels, in_work_items=True)


__all__ = ["read", "recognise"]
