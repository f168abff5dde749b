"""Schedules for the kernels that a script launches."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wavecast import files
from wavecast.errors import NothingAnalysed, UsageError
from wavecast.integrations.triton import CaptureFailure, capture_script
from wavecast.integrations.triton.script import NOT_COMPUTED
from wavecast.lab.journal import LabProblem, records
from wavecast.lab.schedule.kernel import KernelSchedule
from wavecast.lab.schedule.search import WORK
from wavecast.pipeline.selection import Selection

WORKER = "wavecast.lab.schedule.worker"
"""The module of the capturing process."""
_NOT_IN_A_NAME = re.compile(r"[^\w.-]")


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """How a scheduling runs. Each search simulates about `work` instructions and is seeded with
    `seed`. Results go to the file `journal`, "" for a temporary one; those in it are not searched
    again."""

    seed: int = 0
    work: int = WORK
    journal: str = ""
    kernels: str = ""
    quiet: bool = True
    device_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """The schedules found, the kernels and targets that failed, and notes for the user."""

    entries: tuple[tuple[LabProblem, KernelSchedule], ...]
    failures: tuple[CaptureFailure, ...]
    notes: tuple[str, ...]


def schedule_script(
    script: Path,
    arguments: Sequence[str],
    selection: Selection,
    options: ScheduleOptions,
    progress: Callable[[str], None] = lambda _: None,
) -> ScheduleRun:
    """Run a script for each target and schedule the loops of every kernel it launches.

    Raises UsageError for an NVIDIA GPU, InputError for a journal that no scheduling wrote,
    NothingAnalysed for a script that launches no matching kernel, CaptureError, MissingTool.
    """
    for device in selection.devices:
        if device.vendor != "amd":
            raise UsageError(f"{device.name}: only AMD code is scheduled")
    if not options.journal:
        with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
            here = replace(options, journal=str(Path(folder) / "journal"))
            return schedule_script(script, arguments, selection, here, progress)
    path = Path(options.journal).absolute()
    if not path.exists():
        files.write_text(path, "")
    progress(f"running {script.name} for {', '.join(selection.targets)}")

    def poll() -> None:
        count = path.read_bytes().count(b"\n")
        progress(f"{count} schedules")

    captured = capture_script(
        script,
        arguments,
        selection.devices,
        kernels=options.kernels,
        quiet=options.quiet,
        worker=WORKER,
        settings={
            "devices": [device.id for device in selection.devices],
            "device_files": list(options.device_files),
            "journal": str(path),
            "seed": options.seed,
            "work": options.work,
        },
        at_once=1,
        on_poll=poll,
    )
    notes = tuple(note for note in captured.notes if note != NOT_COMPUTED)
    found = tuple(records(path, KernelSchedule.from_json))
    if not found and not captured.failures:
        raise NothingAnalysed(f"{script.name}: no kernel was scheduled", hint="; ".join(notes))
    return ScheduleRun(found, captured.failures, (*selection.notes, *notes))


def write_assembly(run: ScheduleRun, folder: Path) -> int:
    """Write the assembly of every schedule that saves time as KERNEL.DEVICE.s to a folder, which is
    made; the number of files. Raises InputError where a file cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for problem, found in run.entries:
        if found.saved > 0:
            name = _NOT_IN_A_NAME.sub("_", f"{problem.kernel}.{problem.device}.s")
            files.write_text(folder / name, found.assembly)
            count += 1
    return count


__all__ = ["WORKER", "ScheduleOptions", "ScheduleRun", "schedule_script", "write_assembly"]
