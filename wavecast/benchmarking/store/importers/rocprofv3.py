"""Tables of AMD's profilers as CSV: rocprofv3's kernel trace, counters of rocprof-compute.

The grid is in work-items. The GPU's name is in another file (`agent_info.csv`): say it with
--device.
"""

from __future__ import annotations

from wavecast.benchmarking.store.importers.profiled import matches_reader, runs
from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.profiles.readers import tables


def recognise(source: ImportedFile) -> bool:
    """A CSV file with kernels and when they began and ended."""
    return matches_reader(source, tables)


def read(source: ImportedFile, labels: ImportLabels) -> Imported:
    """Dispatches, by kernel and size of launch."""
    return runs(source, "rocprofv3", tables, labels, in_work_items=True)


__all__ = ["read", "recognise"]
