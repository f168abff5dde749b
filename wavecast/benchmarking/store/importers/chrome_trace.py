"""Chrome traces of torch.profiler."""

from __future__ import annotations

from wavecast.benchmarking.store.importers.profiled import matches_reader, runs
from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.profiles.readers import kineto


def recognise(source: ImportedFile) -> bool:
    """A document with trace events, or a list of them."""
    return matches_reader(source, kineto)


def read(source: ImportedFile, labels: ImportLabels) -> Imported:
    """Kernels, by name and size of launch."""
    return runs(source, "chrome-trace", kineto, labels)


__all__ = ["read", "recognise"]
