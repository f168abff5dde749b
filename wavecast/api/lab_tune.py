"""`wavecast lab tune` from Python: other decisions of Triton and LLVM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.api.lab import LabKernelOptions
from wavecast.api.result import ShownResult, few
from wavecast.api.tune import ResumedSearch
from wavecast.options import Progress, option, silent
from wavecast.options.values import OUTPUT_FILE

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.lab.run import LabTuning


@dataclass(frozen=True, kw_only=True)
class LabTuneOptions(ResumedSearch, LabKernelOptions):
    """Options of a search of the compiler's decisions."""

    verify: int = option(4, "Execute the N fastest settings next to the original.", metavar="N")
    output: Path | None = option(
        None,
        "Write the best settings to this file, as JSON that programs load, and changed code next "
        "to it.",
        "-o",
        "--output",
        values=OUTPUT_FILE,
    )


@dataclass(frozen=True, slots=True, repr=False)
class LabTuneReport(ShownResult):
    """Alternatives of kernels by the time that they save; the document is `wavecast.lab.tune/1`."""

    WIDTH: ClassVar[int] = 200
    tuning: LabTuning

    def render(self, console: Console, *, top: int = 10) -> None:
        from wavecast.report.lab import alternatives

        alternatives.render(self.tuning, console, top=top)

    def to_dict(self) -> dict[str, Any]:
        from wavecast import json_objects
        from wavecast.report.lab import alternatives

        return json_objects.values(alternatives.document(self.tuning))

    def exit_code(self) -> int:
        return 0 if any(entry.base.seconds for entry in self.tuning.entries) else 2

    def subject(self) -> str:
        return few([entry.problem.kernel for entry in self.tuning.entries])


def tune(
    path: str | Path, *arguments: Any, progress: Progress = silent, **options: Any
) -> LabTuneReport:
    """Search other decisions of Triton and LLVM for the kernels of a script, or of a HIP file whose
    launch is stated; other orders, waits and priorities for assembly and code objects.

    `arguments` go to the script, `options` are those of the command line, by the names of
    `LabTuneOptions`. Raises UsageError, NothingAnalysed where no kernel was searched, InputError
    for a journal that an interrupted run left, and another WavecastError where nothing can be
    compiled.
    """
    from wavecast.lab.run import LabOptions, save_settings
    from wavecast.lab.run import tune as search

    stated, path = LabTuneOptions.of(options), Path(path)
    settings = LabOptions(
        jobs=stated.processes(),
        verify=stated.verify,
        journal=f"{stated.output}.journal" if stated.output else "",
        resume=stated.resume,
    )
    source = stated.source(path, arguments)
    tuning = search(source, stated.selection(path), settings, progress)
    if stated.output is not None:
        save_settings(tuning.entries, stated.output)
    return LabTuneReport(tuning)


__all__ = ["LabTuneOptions", "LabTuneReport", "tune"]
