"""`wavecast store`: measurements on disk: list, export, import, check."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wavecast.cli.groups import CommandGroup
from wavecast.cli.old_store import store_option
from wavecast.errors import NothingAnalysed, UsageError

if TYPE_CHECKING:
    from wavecast.bench.records import BenchRecord, BenchRun

_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("store", cls=CommandGroup, context_settings=_HELP)
def command() -> None:
    """List, export, import and check measurements."""


@command.command("list", context_settings=_HELP)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True)  # fmt: skip
@store_option
def list_runs(form: str, path: Path) -> None:
    """List all runs, the oldest first."""
    from wavecast.bench.store.sqlite import open_store
    from wavecast.cli import streams
    from wavecast.documents.base import values
    from wavecast.documents.measurement import StoredRunJson
    from wavecast.report import store as report

    with open_store(path, create=False) as store:
        runs = [(run, sum(1 for _ in store.records(run.id))) for run in store.runs()]
    if form == "json":
        listed = [StoredRunJson.of(run, records=number) for run, number in runs]
        click.echo(json.dumps(values(listed), indent=1))
    else:
        report.render_runs(runs, streams.console(None if sys.stdout.isatty() else 200))
    if not runs:
        raise NothingAnalysed(f"{path} holds no runs")


@command.command(
    "export",
    context_settings=_HELP,
    epilog="""Runs are named as in `wavecast compare`:

    wavecast store export all.parquet

    wavecast store export main.csv --runs main,last
    """,
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--runs", "wanted", default="", help="Labels, commits, ids, last …, separated by commas."
)
@click.option("--salvage", is_flag=True, help="Export what is readable of a damaged store.")
@store_option
def export_runs(file: Path, wanted: str, salvage: bool, path: Path) -> None:
    """Write FILE.parquet, .json, .jsonl or .csv: one row per figure, without loss."""
    from wavecast.bench.store.check import readable
    from wavecast.bench.store.export import export
    from wavecast.bench.store.select import chosen
    from wavecast.bench.store.sqlite import open_store
    from wavecast.report import units

    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent}")
    problems: list[str] = []
    with open_store(path, create=False) as store:
        runs = chosen(store.runs(), wanted) if wanted else store.runs()
        if not runs:
            raise NothingAnalysed(f"{path} holds no runs")

        def measured() -> Iterator[tuple[BenchRun, Iterable[BenchRecord]]]:
            for run in runs:
                yield run, readable(path, run, problems) if salvage else store.records(run.id)

        rows = export(file, measured())
    for problem in problems:
        click.echo(f"left out: {problem}", err=True)
    click.echo(
        f"{units.plural(rows, 'row')} of {units.plural(len(runs), 'run')} in {file}", err=True
    )
    if problems:
        sys.exit(1)


@command.command(
    "import",
    context_settings=_HELP,
    epilog="""Examples:

    wavecast store import nightly.parquet

    wavecast store import trace_kernel_trace.csv --device mi300x --label main --commit 1a2b3c4
    """,
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--format", "name", default="", help="The format, if it is not recognised.")
@click.option("--label", default="", help="Name of the runs: main, pr-17.")
@click.option("--device", default="", help="The GPU, if the file does not name it.")
@click.option("--commit", default="", help="The measured commit, if the file does not name it.")
@click.option("--formats", "show", is_flag=True, help="List the formats and exit.")
@store_option
def import_files(
    files: tuple[Path, ...],
    name: str,
    label: str,
    device: str,
    commit: str,
    show: bool,
    path: Path,
) -> None:
    """Import kernel times of other tools, and exports. Importing a file again adds nothing."""
    from wavecast.bench.store.importers import FORMATS, ImportLabels, read_file
    from wavecast.bench.store.keep import keep
    from wavecast.bench.store.sqlite import open_store

    if show:
        for known, meaning in FORMATS.items():
            click.echo(f"{known:18}{meaning}")
        return
    if not files:
        raise UsageError("say which files to import")
    given = ImportLabels(label, device, commit)
    read = [(file, read_file(file, name, given)) for file in files]
    with open_store(path) as store:
        for file, found in read:
            for note in found.notes:
                click.echo(f"{file}: {note}", err=True)
            for kept in keep(store, found.runs, ended=found.format != "wavecast"):
                known = f", {kept.known} were there" if kept.known else ""
                click.echo(f"{file}: {found.format}: run {kept.run.id}: {kept.new} records{known}")


@command.command("check", context_settings=_HELP)
@store_option
def check_store(path: Path) -> None:
    """Check the file and read every record. The exit code is 1 if something is damaged."""
    from wavecast.bench.store.check import check
    from wavecast.report import units

    found = check(path)
    records = units.plural(found.records, "record")
    click.echo(f"{units.plural(found.runs, 'run')}, {records} that can be read")
    if found.interrupted:
        click.echo(
            f"interrupted, with the samples taken until then: {', '.join(found.interrupted)}"
        )
    for problem in found.problems:
        click.echo(f"damaged: {problem}")
    if found.problems:
        click.echo("export what can be read: wavecast store export FILE --salvage", err=True)
        sys.exit(1)
    click.echo("nothing is damaged")
