"""`wavecast.api.store`: measurements on disk, listed, exported, imported and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.api.measured import StoreOptions
from wavecast.api.result import ShownResult, few
from wavecast.errors import NothingAnalysed, UsageError
from wavecast.options import Progress, option, silent
from wavecast.options.values import NameList
from wavecast.wording import count

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.benchmarking.records import BenchRecord, BenchRun
    from wavecast.benchmarking.store.check import Checked
    from wavecast.benchmarking.store.importers import Imported
    from wavecast.benchmarking.store.keep import Kept


@dataclass(frozen=True, kw_only=True)
class RunsExportOptions(StoreOptions):
    """Options of an export."""

    runs: tuple[str, ...] = option(
        (), "Labels, commits, ids, last …", values=NameList(), metavar="RUN[,RUN…]"
    )
    salvage: bool = option(False, "Export what is readable of a damaged store.")


@dataclass(frozen=True, kw_only=True)
class ImportOptions(StoreOptions):
    """Options of files that are imported."""

    format: str = option("", "The format, if it is not recognised.")
    label: str = option("", "Name of the runs: main, pr-17.")
    device: str = option("", "The GPU, if the file does not name it.")
    commit: str = option("", "The measured commit, if the file does not name it.")


@dataclass(frozen=True, slots=True, repr=False)
class StoredRuns(ShownResult):
    """The runs of a store with their numbers of records, the oldest first. The document is a
    list."""

    WIDTH = 200
    path: Path
    runs: Sequence[tuple[BenchRun, int]]

    def to_dict(self) -> list[Any]:
        from wavecast.documents.measurement import StoredRunJson
        from wavecast.json_objects import values

        return values([StoredRunJson.of(run, records=number) for run, number in self.runs])

    def render(self, console: Console) -> None:
        from wavecast.report.bench import store

        store.render_runs(self.runs, console)

    def why_nothing(self) -> str:
        return "" if self.runs else f"{self.path} holds no runs"

    def subject(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True, repr=False)
class RunsExportReport(ShownResult):
    """What an export wrote to `file`, and the `problems` of records that it left out."""

    file: Path
    rows: int
    runs: int
    problems: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "file": str(self.file)}

    def render(self, console: Console) -> None:
        text = f"{count(self.rows, 'row')} of {count(self.runs, 'run')} in {self.file}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    def messages(self) -> list[str]:
        return [f"left out: {problem}" for problem in self.problems]

    def exit_code(self) -> int:
        return int(bool(self.problems))

    def subject(self) -> str:
        return str(self.file)


@dataclass(frozen=True, slots=True, repr=False)
class ImportReport(ShownResult):
    """What was imported from each file."""

    files: Sequence[tuple[Path, Imported, Sequence[Kept]]]

    def to_dict(self) -> list[Any]:
        return [
            {
                "file": str(file),
                "format": imported.format,
                "notes": [*imported.notes],
                "runs": [{"id": one.run.id, "new": one.new, "known": one.known} for one in kept],
            }
            for file, imported, kept in self.files
        ]

    def render(self, console: Console) -> None:
        for file, imported, kept in self.files:
            for one in kept:
                known = f", {one.known} were there" if one.known else ""
                text = f"{file}: {imported.format}: run {one.run.id}: {one.new} records{known}"
                console.print(text, markup=False, highlight=False, soft_wrap=True)

    def messages(self) -> list[str]:
        return [f"{file}: {note}" for file, imported, _ in self.files for note in imported.notes]

    def subject(self) -> str:
        return few([str(file) for file, _, _ in self.files])


@dataclass(frozen=True, slots=True, repr=False)
class StoreCheck(ShownResult):
    """What of a store can be read, and what is damaged."""

    path: Path
    content: Checked

    def to_dict(self) -> dict[str, Any]:
        return asdict(self.content)

    def render(self, console: Console) -> None:
        content = self.content
        read = f"{count(content.runs, 'run')}, {count(content.records, 'record')}"
        lines = [f"{read} that can be read"]
        if content.interrupted:
            runs = ", ".join(content.interrupted)
            lines.append(f"interrupted, with the samples taken until then: {runs}")
        lines += [f"damaged: {problem}" for problem in content.problems]
        for line in lines if content.problems else [*lines, "nothing is damaged"]:
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    def messages(self) -> list[str]:
        salvage = "export what can be read: wavecast store export FILE --salvage"
        return [salvage] if self.content.problems else []

    def exit_code(self) -> int:
        return int(bool(self.content.problems))

    def subject(self) -> str:
        return str(self.path)


def stored_runs(
    *,
    progress: Progress = silent,  # noqa: ARG001
    **options: Any,
) -> StoredRuns:
    """The runs of a store. `options` are those of `StoreOptions`. Raises StoreError for a file that
    has no measurements."""
    from wavecast.benchmarking.store.sqlite import open_store

    path = StoreOptions.of(options).store_path
    with open_store(path, create=False) as store:
        return StoredRuns(
            path, [(run, sum(1 for _ in store.records(run.id))) for run in store.runs()]
        )


def export(
    file: str | Path,
    *,
    progress: Progress = silent,  # noqa: ARG001
    **options: Any,
) -> RunsExportReport:
    """Write FILE.parquet, .json, .jsonl or .csv: one row per figure, without loss. `options` are
    those of `RunsExportOptions`.

    Raises StoreError for a file that has no measurements or is damaged, UnknownName for a run or an
    ending of the file, NothingAnalysed for a store without runs, MissingTool without pyarrow.
    """
    from wavecast.benchmarking.store.check import readable
    from wavecast.benchmarking.store.export import export as write
    from wavecast.benchmarking.store.select import select_runs
    from wavecast.benchmarking.store.sqlite import open_store

    stated, file = RunsExportOptions.of(options), Path(file)
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent}")
    path = stated.store_path
    problems: list[str] = []
    with open_store(path, create=False) as store:
        runs = select_runs(store.runs(), ",".join(stated.runs)) if stated.runs else store.runs()
        if not runs:
            raise NothingAnalysed(f"{path} holds no runs")

        def run_records() -> Iterator[tuple[BenchRun, Iterable[BenchRecord]]]:
            for run in runs:
                salvaged = readable(path, run, problems) if stated.salvage else None
                yield run, store.records(run.id) if salvaged is None else salvaged

        rows = write(file, run_records())
    return RunsExportReport(file, rows, len(runs), problems)


def import_files(
    *files: str | Path,
    progress: Progress = silent,  # noqa: ARG001
    **options: Any,
) -> ImportReport:
    """Import kernel times of other tools, and exports. Importing a file again adds nothing.
    `options` are those of `ImportOptions`.

    Raises InputError for a file in no known format, UnknownName for a format or a GPU, StoreError
    for a run that the store has with other records.
    """
    from wavecast.benchmarking.store.importers import ImportLabels, read_file
    from wavecast.benchmarking.store.keep import keep
    from wavecast.benchmarking.store.sqlite import open_store

    stated = ImportOptions.of(options)
    if not files:
        raise UsageError("say which files to import")
    labels = ImportLabels(stated.label, stated.device, stated.commit)
    read = [(Path(file), read_file(Path(file), stated.format, labels)) for file in files]
    with open_store(stated.store_path) as store:
        kept = [
            keep(store, imported.runs, complete=imported.format != "wavecast")
            for _, imported in read
        ]
    return ImportReport([(*pair, runs) for pair, runs in zip(read, kept, strict=True)])


def check(
    *,
    progress: Progress = silent,  # noqa: ARG001
    **options: Any,
) -> StoreCheck:
    """Check the file of a store and read every record. `options` are those of `StoreOptions`.
    Raises StoreError for a file of another kind."""
    from wavecast.benchmarking.store import check as checking

    path = StoreOptions.of(options).store_path
    return StoreCheck(path, checking.check(path))


__all__ = [
    "ImportOptions",
    "ImportReport",
    "RunsExportOptions",
    "RunsExportReport",
    "StoreCheck",
    "StoredRuns",
    "check",
    "export",
    "import_files",
    "stored_runs",
]
