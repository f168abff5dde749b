"""`wavecast.validate`: predictions compared with measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from wavecast.api.result import ShownResult, few
from wavecast.errors import UsageError
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import OUTPUT_FILE, PROCESSES, Files, Integers

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.benchmarking.accuracy.importers import Importer
    from wavecast.benchmarking.accuracy.measure import Record
    from wavecast.benchmarking.accuracy.result import Validation


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(Options):
    """Options of files of measurements that are predicted and scored."""

    cases: bool = option(False, "JSON: write every problem in addition to the scores.")
    limit: int | None = option(
        None,
        "Use about N problems of each file, always the same ones.",
        values=Integers(1),
        metavar="N",
    )
    jobs: int | None = option(
        None,
        "Number of processes; by default one per processor.",
        "-j",
        "--jobs",
        values=PROCESSES,
        metavar="N",
    )
    write_docs: Path | None = option(
        None, "Write the scores as Markdown (docs/accuracy.md).", values=OUTPUT_FILE
    )


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(Options):
    """Options of times that are measured on the GPU of this machine."""

    measure: bool = option(False, "Measure on this machine's GPU; FILES are scripts with kernels.")
    results: Path = option(
        Path("results"), "Folder for the times of --measure.", values=Files(folder=True)
    )


MODES: Final[dict[str, type[Options]]] = {"measure": MeasureOptions}


@dataclass(frozen=True, slots=True, repr=False)
class ValidationReport(ShownResult):
    """Predictions of measurements, and their scores. The document is `wavecast.validate/1`, with
    `cases` every problem too."""

    WIDTH = 150
    validation: Validation
    cases: bool = False

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.validation import json as validation_json

        return validation_json.document(self.validation, cases=self.cases)

    def json(self) -> str:
        from wavecast.report.validation import json as validation_json

        return validation_json.dumps(self.validation, cases=self.cases)

    def html(self) -> str:
        from wavecast.report.validation import html as validation_html

        return validation_html.render(self.validation)

    def render(self, console: Console, *, detail: Any = "normal") -> None:
        from wavecast.report.validation import terminal

        terminal.render(self.validation, console, detail)

    def subject(self) -> str:
        return few([file.path.name for file in self.validation.files])


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredTimes(ShownResult):
    """Times of operations and kernels on the GPU of this machine, next to their predictions: the
    records that were appended to a file."""

    records: Sequence[Record]
    path: Path

    def to_dict(self) -> list[Any]:
        return [*self.records]

    def render(self, console: Console) -> None:
        from wavecast.report.bench import measurements

        measurements.render(self.records, console)
        console.print(f"stored in {self.path}", markup=False, soft_wrap=True)

    def subject(self) -> str:
        return str(self.path)


@overload
def validate(
    *files: str | Path, measure: Literal[True], progress: Progress = ..., **options: Any
) -> MeasuredTimes: ...


@overload
def validate(
    *files: str | Path, measure: Literal[False] = False, progress: Progress = ..., **options: Any
) -> ValidationReport: ...


def validate(
    *files: str | Path, progress: Progress = silent, **options: Any
) -> ValidationReport | MeasuredTimes:
    """Predict what `files` measured, and score the predictions (`docs/validate.md`).

    `options` are those of the command line, by the names of `ScoreOptions`. With `measure=True`
    (`MeasureOptions`) files are scripts, by default those in `examples`, and their kernels and some
    operations are measured on the GPU of this machine.

    Raises UsageError without files, InputError for one that cannot be read, NothingAnalysed where
    nothing can be predicted, or measured.
    """
    paths = [Path(file) for file in files]
    stated = ScoreOptions.among(MODES, options)
    if isinstance(stated, MeasureOptions):
        from wavecast.benchmarking.accuracy.measure import measure

        scripts = paths or sorted(Path("examples").glob("*.py"))
        path, records = measure(scripts, stated.results, progress)
        return MeasuredTimes(records, path)
    assert isinstance(stated, ScoreOptions)
    return score(paths, stated, progress)


def score(
    files: Sequence[Path],
    options: ScoreOptions,
    progress: Progress = silent,
    importers: tuple[Importer, ...] = (),
) -> ValidationReport:
    """The validation of files, read by the registered importers and by `importers`. Raises as
    `validate`."""
    from wavecast.benchmarking.accuracy.validate import ValidateOptions
    from wavecast.benchmarking.accuracy.validate import validate as validated
    from wavecast.files import write_text
    from wavecast.report.validation import markdown

    if not files:
        raise UsageError("no files of measurements given")
    run = ValidateOptions(jobs=options.jobs, limit=options.limit, importers=importers)
    validation = validated(files, run, progress)
    if options.write_docs is not None:
        write_text(options.write_docs, markdown.document(validation))
    return ValidationReport(validation, options.cases)


__all__ = [
    "MODES",
    "MeasureOptions",
    "MeasuredTimes",
    "ScoreOptions",
    "ValidationReport",
    "score",
    "validate",
]
