"""`wavecast tune` from Python: configurations of autotuned kernels, searched by prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wavecast.api.engine_tables import EngineTables, TableOptions, write_tables
from wavecast.api.launch import KernelOptions, ScriptOutput
from wavecast.api.result import ShownResult, few
from wavecast.errors import UsageError
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import PROCESSES, Files, Integers, OneOf

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.tuning import TuningTable
    from wavecast.tuning.run import TuneResult
    from wavecast.tuning.settings import TuneSettings


@dataclass(frozen=True, kw_only=True)
class ResumedSearch(Options):
    """A search by several processes, with a journal next to its `output`, an option that classes
    add."""

    NEEDS: ClassVar[Mapping[str, str]] = {"resume": "output"}

    jobs: int | None = option(
        None,
        "Number of processes.",
        "-j",
        "--jobs",
        values=PROCESSES,
        metavar="N",
        default_text="one per processor",
    )
    resume: bool = option(False, "Continue an interrupted run from its journal.")

    def processes(self) -> int:
        """The number of processes."""
        from wavecast.limits import available_processors

        return self.jobs or available_processors()


@dataclass(frozen=True, kw_only=True)
class TuneOptions(ResumedSearch, ScriptOutput, KernelOptions):
    """Options of a search of configurations."""

    space: str = option(
        "own",
        "own: the autotuner's configurations; wide: also their neighbours.",
        values=OneOf(("own", "wide")),
    )
    budget: str = option(
        "300", "Configurations or time (90s, 10m, 1h) per call and target.", metavar="N|TIME"
    )
    search: str = option(
        "evolution", "Strategy for a wide space: exhaustive, random or evolution.", metavar="NAME"
    )
    seed: int = option(
        0,
        "Seed of the search. Equal seeds try equal configurations.",
        values=Integers(0, (1 << 63) - 1),
    )
    simulate: int = option(6, "Simulate the best N from executed samples.", metavar="N")
    output: Path | None = option(
        None,
        "Write the table to this file, as JSON that programs load; with --table to this folder.",
        "-o",
        "--output",
        values=Files(),
    )
    ray: str = option("", "Search on a Ray cluster: HOST:PORT, auto, or local.", metavar="ADDRESS")

    def search_settings(self) -> TuneSettings:
        """How the search runs. Raises UsageError for a budget."""
        from wavecast.tuning.budget import SearchBudget
        from wavecast.tuning.settings import TuneSettings

        return TuneSettings(
            devices=(),
            device_files=tuple(str(file.absolute()) for file in self.arch_files),
            journal=f"{self.output}.journal" if self.output else "",
            space=self.space,
            search=self.search,
            budget=SearchBudget.parse(self.budget),
            simulate=self.simulate,
            jobs=self.processes(),
            seed=self.seed,
        )


@dataclass(frozen=True, kw_only=True)
class TopRows(Options):
    """How a search is shown."""

    top: int = option(10, "Number of rows to show per kernel.", values=Integers(1), metavar="N")


MODES: Final[dict[str, type[Options]]] = {"table": TableOptions}
"""The option that changes what is tuned -> the options that go with it."""


@dataclass(frozen=True, slots=True, repr=False)
class TuneReport(ShownResult):
    """Configurations of autotuned kernels. Programs use `table` (`docs/tune.md`). The document is
    `wavecast.tune/1`."""

    WIDTH: ClassVar[int] = 200
    result: TuneResult

    @property
    def table(self) -> TuningTable:
        """The configurations of each kernel, the best first."""
        return self.result.table

    def render(self, console: Console, *, top: int = 10) -> None:
        from wavecast.report.lab import tuning

        tuning.render(self.result, console, top=top)

    def to_dict(self) -> dict[str, Any]:
        return self.table.to_json()

    def exit_code(self) -> int:
        return 0 if any(entry.best for entry in self.table.entries) else 2

    def subject(self) -> str:
        kernels = few([entry.problem.kernel for entry in self.table.entries])
        return f"{kernels} on {few([entry.problem.device for entry in self.table.entries])}"


def tune(
    script: str | Path | None = None, *arguments: Any, progress: Progress = silent, **options: Any
) -> TuneReport | EngineTables:
    """Search configurations of the autotuned kernels of a script, without a GPU.

    `arguments` go to the script, `options` are those of the command line, by the names of
    `TuneOptions`. With `table` there is no script: the result is a table for an engine
    (`TableOptions`).

    Raises NothingAnalysed for a script without autotuned launches, InputError for a file that
    cannot be written or a journal that an interrupted run left, UsageError, MissingTool.
    """
    from wavecast.files import check_writable, write_text

    stated = TuneOptions.among(MODES, options)
    if isinstance(stated, TableOptions):
        if script is not None:
            raise UsageError(f"--table is without a script: {script}")
        return write_tables(stated, progress)
    assert isinstance(stated, TuneOptions)
    if script is None:
        raise UsageError("no PATH of a script", hint="or --table")
    from wavecast.tuning.run import tune as search
    from wavecast.tuning.script import TuneScript

    selection, settings = stated.selection(), stated.search_settings()
    if stated.output is not None:
        check_writable(stated.output)
    source = TuneScript(
        Path(script), tuple(map(str, arguments)), stated.kernels, not stated.show_output
    )
    report = TuneReport(
        search(source, selection, settings, progress, resume=stated.resume, ray=stated.ray)
    )
    if stated.output is not None:
        write_text(stated.output, report.json() + "\n")
    return report


__all__ = ["MODES", "ResumedSearch", "TopRows", "TuneOptions", "TuneReport", "tune"]
