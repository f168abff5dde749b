"""Schedules for the kernels that a script launches, or that a file of code has."""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

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
    again. With `asks`, the compiler is asked for the orders."""

    seed: int = 0
    work: int = WORK
    journal: str = ""
    asks: bool = False


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
    values = {"seed": options.seed, "work": options.work, "asks": options.asks}
    convert = KernelSchedule.from_json
    return run_search(source, selection, "schedule", values, path, convert, progress)


def write_assembly(run: ScheduleRun, folder: Path) -> int:
    """Write the assembly of every schedule that saves time as KERNEL.DEVICE.s to a folder, which is
    made; the number of files. Raises InputError where a file cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, kernel_schedule in _faster(run):
        files.write_text(folder / f"{name}.s", kernel_schedule.assembly)
        count += 1
    return count


def write_patches(run: ScheduleRun, folder: Path) -> int:
    """Write the compiler's assembly of every schedule that saves time as KERNEL.DEVICE.s, and the
    unified diff to the new order as KERNEL.DEVICE.patch, to a folder, which is made; the number of
    patches. `patch KERNEL.DEVICE.s KERNEL.DEVICE.patch` makes the new assembly. Raises InputError
    where a file cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, kernel_schedule in _faster(run):
        files.write_text(folder / f"{name}.s", kernel_schedule.original)
        files.write_text(folder / f"{name}.patch", patch_text(kernel_schedule, f"{name}.s"))
        count += 1
    return count


def write_asked(run: ScheduleRun, folder: Path) -> int:
    """Write what asks the compiler for the orders to a folder, which is made: of a HIP file the
    patch KERNEL.DEVICE.patch, of a Triton kernel its LLVM IR as KERNEL.DEVICE.ll; the number of
    files. Raises InputError where a file cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, kernel_schedule in _faster(run):
        asked = kernel_schedule.asked
        if asked is not None and asked.text:
            suffix = "patch" if asked.where == "source" else "ll"
            files.write_text(folder / f"{name}.{suffix}", asked.text)
            count += 1
    return count


def patch_text(kernel_schedule: KernelSchedule, name: str) -> str:
    """The unified diff from the compiler's assembly in the file `name` to that of the new order, as
    patch(1) and git-apply(1) read it; "" where no order is faster."""
    before, after = (
        text.splitlines(keepends=True)
        for text in (kernel_schedule.original, kernel_schedule.assembly)
    )
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines)


_NO_NEWLINE: Final = "\\ No newline at end of file\n"


def _faster(run: ScheduleRun) -> Iterator[tuple[str, KernelSchedule]]:
    """(KERNEL.DEVICE as a file's name, schedule) of schedules that save time."""
    for problem, kernel_schedule in run.results:
        if kernel_schedule.saved > 0:
            yield _NOT_IN_A_NAME.sub("_", f"{problem.kernel}.{problem.device}"), kernel_schedule


__all__ = [
    "ScheduleOptions",
    "ScheduleRun",
    "patch_text",
    "schedule_kernels",
    "write_asked",
    "write_assembly",
    "write_patches",
]
