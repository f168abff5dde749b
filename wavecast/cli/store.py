"""`wavecast store`: measurements on disk: list, export, import, check."""

from __future__ import annotations

from pathlib import Path

import click

from wavecast.api.measured import StoreOptions
from wavecast.api.store import (
    ImportOptions,
    RunsExportOptions,
    check,
    export,
    import_files,
    stored_runs,
)
from wavecast.cli.groups import CommandGroup
from wavecast.cli.verb import Show, Verb


def _formats(context: click.Context, _: click.Parameter, value: bool) -> None:
    """`--formats`: the formats that are read, and nothing else."""
    if not value or context.resilient_parsing:
        return
    from wavecast.benchmarking.store.importers import FORMATS

    for name, meaning in FORMATS.items():
        click.echo(f"{name:18}{meaning}")
    context.exit()


_VERBS = (
    Verb(
        name="list",
        function=stored_runs,
        options=StoreOptions,
        show=Show(output=True, width=200, highlight=True),
        text="List all runs, the oldest first.",
        examples=(),
    ),
    Verb(
        name="export",
        function=export,
        options=RunsExportOptions,
        show=Show(formats=("text",)),
        arguments=(click.Argument(["file"], type=click.Path(dir_okay=False, path_type=Path)),),
        text="""Write FILE.parquet, .json, .jsonl or .csv: one row per figure, without loss.

        Runs are named as in `wavecast compare`.
        """,
        examples=(
            "wavecast store export all.parquet",
            "wavecast store export main.csv --runs main,last",
        ),
    ),
    Verb(
        name="import",
        function=import_files,
        options=ImportOptions,
        show=Show(formats=("text",)),
        arguments=(
            click.Argument(["files"], nargs=-1, type=click.Path(path_type=Path), metavar="FILE..."),
            click.Option(
                ["--formats"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_formats,
                help="List the formats and exit.",
            ),
        ),
        text="""Import kernel times of other tools, and exports. Importing a file again adds
        nothing.""",
        examples=(
            "wavecast store import nightly.parquet",
            "wavecast store import trace_kernel_trace.csv --device mi300x --label main"
            " --commit 1a2b3c4",
        ),
    ),
    Verb(
        name="check",
        function=check,
        options=StoreOptions,
        show=Show(formats=("text",)),
        text="Check the file and read every record. The exit code is 1 if something is damaged.",
        examples=(),
    ),
)

command = CommandGroup(
    "store",
    commands=[verb.command() for verb in _VERBS],
    help="List, export, import and check measurements.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

__all__ = ["command"]
