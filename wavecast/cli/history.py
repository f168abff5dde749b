"""`wavecast history`: figures over commits, and where they changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from wavecast.cli.old_store import store_option
from wavecast.cli.opening import opening
from wavecast.cli.types import NumberRange, RegexParam
from wavecast.errors import NothingAnalysed, UsageError


@click.command(
    "history",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast history rms_norm --kpi measured_seconds

    wavecast history --device mi300x -o history.html
    """,
)
@click.argument("subject", default="", metavar="[SUBJECT-REGEX]", type=RegexParam())
@click.option("--kpi", "kpis", default="", help="Figures to show, separated by commas.")
@click.option("--device", "devices", default="", help="Devices to show, separated by commas.")
@click.option("--minimum", type=NumberRange(min=0), default=0.01, show_default=True,
              help="The smallest relative change that counts.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Also show figures that did not change.")
@click.option("--format", "form", type=click.Choice(["text", "json", "html"]), default=None,
              help="The format; by default from the output's name, else text.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="Write to this file.")  # fmt: skip
@store_option
@opening
def command(
    subject: str,
    kpis: str,
    devices: str,
    minimum: float,
    everything: bool,
    form: str | None,
    output: Path | None,
    path: Path,
) -> None:
    """Show figures of subjects over runs, in the order of their commits, and where they changed.

    Measured times change if their levels differ by more than noise explains; other figures are
    exact. HTML is one self-contained page with a plot of every figure.
    """
    from wavecast.bench.history.series import Wanted, history
    from wavecast.bench.kpis import kpi
    from wavecast.bench.store.select import records_of
    from wavecast.bench.store.sqlite import open_store
    from wavecast.cli import streams
    from wavecast.report import history as report
    from wavecast.report import history_html

    form = form or {".html": "html", ".json": "json"}.get(output.suffix if output else "", "text")
    if form == "html" and output is None and sys.stdout.isatty():
        raise UsageError("HTML needs an output file", hint="-o history.html")
    wanted = Wanted(
        subject,
        tuple(kpi(name).name for name in kpis.split(",") if name),
        tuple(filter(None, devices.split(","))),
        minimum,
    )
    with open_store(path, create=False) as store:
        runs = store.runs()
        records = records_of(store, runs)
    found = history(records, runs, wanted, Path.cwd())
    if not found.series:
        raise NothingAnalysed(f"no figure in {path} fits")
    match form:
        case "json":
            text = json.dumps(report.document(found), indent=1, ensure_ascii=False) + "\n"
        case "html":
            text = history_html.render(found)
        case _ if output is None:
            width = None if sys.stdout.isatty() else 200
            report.render(found, streams.console(width), everything=everything)
            return
        case _:
            with output.open("w", encoding="utf-8") as file:
                report.render(found, streams.console(200, file), everything=everything)
            return
    if output is None:
        streams.as_document(sys.stdout)
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
