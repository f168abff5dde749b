"""Nsight Compute's CSV, details and raw page. No column names the GPU: say it with --device."""

from __future__ import annotations

from wavecast.benchmarking.store.importers.profiled import matches_reader, runs
from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.profiles.readers import ncu


def recognise(source: ImportedFile) -> bool:
    """A CSV file with kernels and metrics."""
    return matches_reader(source, ncu)


def read(source: ImportedFile, labels: ImportLabels) -> Imported:
    """Launches, by kernel and size of launch; each launch counts once."""
    return runs(source, "ncu", ncu, labels)


__all__ = ["read", "recognise"]
