"""Schedules for the kernels that a script launches, or that a file of code has."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from wavecast import files
from wavecast.lab.schedule.kernel import KernelSchedule
from wavecast.lab.schedule.search import WORK
from wavecast.lab.searching import LabSource, Progress, SearchRun, run_search
from wavecast.pipeline.explain.selection import Selection

_NOT_IN_A_NAME = re.compile(r"[^\w.-]")

ScheduleRun = SearchRun[KernelSchedule]


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """How a scheduling runs. Each search simulates about `work` instructions and is seeded with
    `seed`. Results go to the file `journal`, "" for a temporary one; those in it are not searched
    again."""

    seed: int = 0
    work: int = WORK
    journal: str = ""


def schedule_kernels(
    source: LabSource,
    selection: Selection,
    options: ScheduleOptions,
    progress: Progress = lambda _: None,
) -> ScheduleRun:
    """Schedule the loops of every kernel that a script launches, or that a HIP file, assembly or a
    code object has.

    Raises UsageError for an NVIDIA GPU and for code whose launch is not stated, InputError for a
    journal that no scheduling wrote, NothingAnalysed where no kernel was scheduled, CaptureError,
    CompileError, MissingTool.
    """
    if not options.journal:
        with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
            here = replace(options, journal=str(Path(folder) / "journal"))
            return schedule_kernels(source, selection, here, progress)
    path = Path(options.journal).absolute()
    if not path.exists():
        files.write_text(path, "")
    values = {"seed": options.seed, "work": options.work}
    convert = KernelSchedule.from_json
    return run_search(source, selection, "schedule", values, path, convert, progress)


def write_assembly(run: ScheduleRun, folder: Path) -> int:
    """Write the assembly of every schedule that saves time as KERNEL.DEVICE.s to a folder, which is
    made; the number of files. Raises InputError where a file cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for problem, kernel_schedule in run.results:
        if kernel_schedule.saved > 0:
            name = _NOT_IN_A_NAME.sub("_", f"{problem.kernel}.{problem.device}.s")
            files.write_text(folder / name, kernel_schedule.assembly)
            count += 1
    return count


__all__ = ["ScheduleOptions", "ScheduleRun", "schedule_kernels", "write_assembly"]
