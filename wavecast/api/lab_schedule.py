"""`wavecast lab schedule` from Python: another order of the instructions in loops."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wavecast.api.lab import LabKernelOptions
from wavecast.api.result import ShownResult, few
from wavecast.options import Progress, option, silent
from wavecast.options.values import OUTPUT_FILE, OUTPUT_FOLDER, Integers

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.lab.scheduling import ScheduleRun

_WORK_UNIT: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class LabScheduleOptions(LabKernelOptions):
    """Options of a search of schedules."""

    work: int = option(
        12, "Simulate about N million instructions per kernel.", values=Integers(1), metavar="N"
    )
    seed: int = option(0, "Seed of the search.", metavar="N")
    journal: Path | None = option(
        None,
        "Append schedules to this file; those in it are not searched again.",
        values=OUTPUT_FILE,
    )
    assembly: Path | None = option(
        None, "Write the new assembly of every kernel to this folder.", values=OUTPUT_FOLDER
    )
    patch: Path | None = option(
        None,
        "Write the compiler's assembly of every kernel, and a patch to the new order, here.",
        values=OUTPUT_FOLDER,
    )
    groups: Path | None = option(
        None,
        "Ask the compiler for the orders by sched_group_barrier; write patches of HIP files, LLVM "
        "IR of Triton kernels, to this folder.",
        values=OUTPUT_FOLDER,
    )


@dataclass(frozen=True, slots=True, repr=False)
class ScheduleReport(ShownResult):
    """Schedules of kernels. With an order whose results differ the exit code is 1. The document is
    `wavecast.lab.schedule/1`."""

    WIDTH: ClassVar[int] = 200
    run: ScheduleRun

    def render(self, console: Console) -> None:
        from wavecast.report.lab import schedules

        schedules.render(self.run, console)

    def to_dict(self) -> dict[str, Any]:
        from wavecast import json_objects
        from wavecast.report.lab import schedules

        return json_objects.values(schedules.document(self.run))

    def exit_code(self) -> int:
        if any(schedule.wrong for _, schedule in self.run.results):
            return 1
        return 0 if self.run.results else 2

    def subject(self) -> str:
        return f"schedules of {few([problem.kernel for problem, _ in self.run.results])}"


def schedule(
    path: str | Path, *arguments: Any, progress: Progress = silent, **options: Any
) -> ScheduleReport:
    """Search another order for the loops of the kernels of a script, or of a HIP file, assembly or
    a code object whose launch is stated.

    `arguments` go to the script, `options` are those of the command line, by the names of
    `LabScheduleOptions`. Raises UsageError, InputError for a journal that no scheduling wrote,
    NothingAnalysed where no kernel was scheduled, and another WavecastError where nothing can be
    compiled.
    """
    from wavecast.lab.scheduling import (
        ScheduleOptions,
        schedule_kernels,
        write_asked,
        write_assembly,
        write_patches,
    )

    stated, path = LabScheduleOptions.of(options), Path(path)
    settings = ScheduleOptions(
        seed=stated.seed,
        work=stated.work * _WORK_UNIT,
        journal=str(stated.journal) if stated.journal is not None else "",
        asks=stated.groups is not None,
    )
    source = stated.source(path, arguments)
    run = schedule_kernels(source, stated.selection(path), settings, progress)
    if stated.assembly is not None:
        write_assembly(run, stated.assembly)
    if stated.patch is not None:
        write_patches(run, stated.patch)
    if stated.groups is not None:
        write_asked(run, stated.groups)
    return ScheduleReport(run)


__all__ = ["LabScheduleOptions", "ScheduleReport", "schedule"]
