"""`wavecast lab compilers` from Python: code generators side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.api.launch import KernelOptions, ScriptOutput
from wavecast.api.result import ShownResult, few
from wavecast.options import Progress, option, silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from wavecast.arch import Device
    from wavecast.compile.codeobject import Launch
    from wavecast.lab.codegen import CodeGenerator
    from wavecast.lab.compilers import CompilerComparison


@dataclass(frozen=True, kw_only=True)
class LabCompilersOptions(ScriptOutput, KernelOptions):
    """Options of a comparison of code generators."""

    bisect: str = option(
        "",
        "Name the passes that make a figure (vgprs, instructions, seconds …) differ.",
        metavar="FIGURE",
    )
    releases: tuple[str, ...] = option(
        (), "Another release of Triton, in a separate environment.", "--triton", metavar="RELEASE"
    )
    programs: tuple[str, ...] = option(
        (), "Another llc, clang or zig.", "--compiler", metavar="PROGRAM"
    )


@dataclass(frozen=True, slots=True, repr=False)
class CompilersReport(ShownResult):
    """Code generators side by side, one comparison per kernel and GPU. The document is
    `wavecast.lab.compilers/1`."""

    WIDTH: ClassVar[int] = 200
    comparisons: Sequence[CompilerComparison]
    notes: Sequence[str]

    def render(self, console: Console) -> None:
        from wavecast.report.lab import compilers

        compilers.render(self.comparisons, self.notes, console)

    def to_dict(self) -> dict[str, Any]:
        from wavecast import json_objects
        from wavecast.report.lab import compilers

        return json_objects.values(compilers.document(self.comparisons, self.notes))

    def markdown(self) -> str:
        """The ranking of the code generators and every time, as Markdown."""
        from wavecast.report.lab import compilers

        return compilers.markdown(self.comparisons)

    def exit_code(self) -> int:
        return 0 if self.comparisons else 2

    def subject(self) -> str:
        return f"compilers of {few([comparison.kernel for comparison in self.comparisons])}"


def compilers(
    path: str | Path, *arguments: Any, progress: Progress = silent, **options: Any
) -> CompilersReport:
    """Compile the LLVM IR of a script's kernels with every code generator of this machine.

    `arguments` go to the script, `options` are those of the command line, by the names of
    `LabCompilersOptions`. Raises UnknownName for a figure, UsageError for an NVIDIA GPU,
    MissingTool for a program or a release that cannot be used, and as a capture of the script.
    """
    from wavecast.benchmarking.diff.environments import python_with
    from wavecast.lab.bisect import check_figure
    from wavecast.lab.codegen import generator_of
    from wavecast.lab.compilers import compared_compilers
    from wavecast.lab.releases import TritonRelease
    from wavecast.lab.script_reports import reports_of_script

    stated, path = LabCompilersOptions.of(options), Path(path)
    if stated.bisect:
        check_figure(stated.bisect)
    selection = stated.selection(path)
    interpreters = {release: python_with(release) for release in stated.releases}

    def compare(launch: Launch, device: Device) -> CompilerComparison:
        others: list[CodeGenerator] = [
            TritonRelease(release, python, device) for release, python in interpreters.items()
        ]
        others += [generator_of(program, device.target) for program in stated.programs]
        return compared_compilers(launch, device, figure=stated.bisect, others=others)

    shown = reports_of_script(
        path,
        tuple(map(str, arguments)),
        selection,
        compare,
        kernels=stated.kernels,
        quiet=not stated.show_output,
        progress=progress,
    )
    return CompilersReport(shown.reports, shown.notes)


__all__ = ["CompilersReport", "LabCompilersOptions", "compilers"]
