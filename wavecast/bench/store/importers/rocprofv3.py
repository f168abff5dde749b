"""rocprofv3's kernel trace as CSV (ROCm documentation, "Using rocprofv3", kernel trace).

One row per dispatch: `Kernel_Name`, `Agent_Id`, `Start_Timestamp` and `End_Timestamp` in
nanoseconds, `Workgroup_Size_X` … and `Grid_Size_X` …, the grid in work-items. The GPU's name is in
another file (`agent_info.csv`): say it with --device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from wavecast.bench.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.bench.store.importers.timings import ImportedTiming, grouped, imported, kernel, launch

_NEEDED: Final = frozenset({"Kernel_Name", "Start_Timestamp", "End_Timestamp"})


def recognise(source: ImportedFile) -> bool:
    """A CSV file with kernels and when they began and ended."""
    return set(source.columns) >= _NEEDED


def read(source: ImportedFile, given: ImportLabels) -> Imported:
    """Dispatches, by kernel and size of launch."""
    return imported(source, "rocprofv3", grouped(_times(source)), given)


def _times(source: ImportedFile) -> Iterator[tuple[ImportedTiming, float]]:
    for row in source.table():
        if row.get("Kind", "KERNEL_DISPATCH") != "KERNEL_DISPATCH":
            continue
        nanoseconds = int(row["End_Timestamp"]) - int(row["Start_Timestamp"])
        axes = launch(_sizes(row, "Grid_Size"), _sizes(row, "Workgroup_Size"))
        agent = {"agent": row["Agent_Id"]} if "Agent_Id" in row else {}
        yield ImportedTiming(kernel(row["Kernel_Name"], axes), more=agent), nanoseconds * 1e-9


def _sizes(row: Mapping[str, str], name: str) -> list[str]:
    return [row[f"{name}_{axis}"] for axis in "XYZ"]


__all__ = ["read", "recognise"]
