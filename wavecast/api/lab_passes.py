"""`wavecast lab passes` from Python: what compiler passes do to kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.api.lab import LabKernelOptions
from wavecast.api.launch import LaunchOptions
from wavecast.api.result import ShownResult, few
from wavecast.errors import UsageError
from wavecast.options import Progress, option, silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from wavecast.lab.passes import PassReport


@dataclass(frozen=True, kw_only=True)
class LabPassesOptions(LabKernelOptions):
    """Options of the passes of kernels."""

    without: bool = option(
        True, "Also compile without each pass that can be switched off.", "--without/--no-without"
    )


@dataclass(frozen=True, slots=True, repr=False)
class PassesReport(ShownResult):
    """The passes of kernels, one report per kernel and GPU. The document is
    `wavecast.lab.passes/1`."""

    WIDTH: ClassVar[int] = 200
    reports: Sequence[PassReport]
    notes: Sequence[str]

    def render(self, console: Console) -> None:
        from wavecast.report.lab import passes

        passes.render(self.reports, self.notes, console)

    def to_dict(self) -> dict[str, Any]:
        from wavecast import json_objects
        from wavecast.report.lab import passes

        return json_objects.values(passes.document(self.reports, self.notes))

    def html(self) -> str:
        from wavecast.report.lab import passes_html

        return passes_html.render(self.reports, self.notes)

    def exit_code(self) -> int:
        return 0 if self.reports else 2

    def subject(self) -> str:
        return f"passes of {few([report.kernel for report in self.reports])}"


def passes(
    path: str | Path, *arguments: Any, progress: Progress = silent, **options: Any
) -> PassesReport:
    """What each pass of Triton and LLVM does to the kernels of a script, a HIP file or LLVM IR.

    `arguments` go to the script or the compiler, `options` are those of the command line, by the
    names of `LabPassesOptions`. Raises UsageError for an NVIDIA GPU, NothingAnalysed where no
    kernel matches, and another WavecastError where nothing can be compiled.
    """
    from wavecast.lab.pass_sources import TritonPasses
    from wavecast.lab.passes import passes_of
    from wavecast.lab.script_reports import reports_of_file, reports_of_script

    stated, path = LabPassesOptions.of(options), Path(path)
    words, selection = tuple(map(str, arguments)), stated.selection(path)
    if path.suffix == ".py" and stated.states(*LaunchOptions.described()):
        raise UsageError(f"{path} is a script: it makes its own launches and arguments")
    report_of = partial(passes_of, without=stated.without)
    if path.suffix == ".py":
        shown = reports_of_script(
            path,
            words,
            selection,
            lambda launch, device: report_of(TritonPasses(launch, device)),
            kernels=stated.kernels,
            quiet=not stated.show_output,
            progress=progress,
        )
    else:
        shown = reports_of_file(
            path,
            (*stated.compiler_options, *words),
            selection,
            report_of,
            plan=stated.plan(path),
            kernels=stated.kernels,
            progress=progress,
        )
    return PassesReport(shown.reports, shown.notes)


__all__ = ["LabPassesOptions", "PassesReport", "passes"]
