"""`wavecast compare`: what changed from one set of runs to another."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from wavecast.cli.old_store import store_option
from wavecast.cli.types import NumberRange


@click.command(
    "compare",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Runs are named by a label, a commit, the beginning of their id, or last, last~1 …

    wavecast compare last~1 last

    wavecast compare main pr-17 --kpi measured_seconds,spills --format markdown
    """,
)
@click.argument("before")
@click.argument("after")
@click.option("--kpi", "kpis", default="", help="Figures to compare, separated by commas.")
@click.option("--minimum", type=NumberRange(min=0), default=0.01, show_default=True,
              help="The smallest relative change that counts.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Also show what is the same.")
@click.option("--fail", is_flag=True, help="Exit with 1 if something is slower or worse.")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown", "html"]),
              default="text", show_default=True)  # fmt: skip
@store_option
def command(
    before: str,
    after: str,
    kpis: str,
    minimum: float,
    everything: bool,
    fail: bool,
    form: str,
    path: Path,
) -> None:
    """Compare two sets of runs: FASTER, SLOWER, SAME or AMBIGUOUS, with reasons.

    Measured times are compared by their samples and the variance between runs, with a limit on
    false discoveries; other figures are exact. Runs of different chips are compared by their share
    of the bound. What cannot be compared is refused, with the reason.
    """
    from wavecast.bench.compare.compare import Criteria, compare
    from wavecast.bench.kpis import kpi
    from wavecast.bench.store.select import chosen, records_of
    from wavecast.bench.store.sqlite import open_store
    from wavecast.cli import streams
    from wavecast.report import comparison
    from wavecast.report.recorded_html import page

    wanted = tuple(kpi(name).name for name in kpis.split(",") if name)
    with open_store(path, create=False) as store:
        runs = store.runs()
        sides = chosen(runs, before), chosen(runs, after)
        records = [records_of(store, side) for side in sides]
    found = compare(records[0], records[1], Criteria(minimum=minimum, kpis=wanted))
    if form == "json":
        click.echo(json.dumps(comparison.document(found), indent=1, ensure_ascii=False))
    elif form == "markdown":
        click.echo(comparison.markdown(found, sides), nl=False)
    elif form == "html":
        click.echo(
            page(
                f"{before} and {after}",
                lambda console: comparison.render(found, sides, console, everything=everything),
            )
        )
    else:
        width = None if sys.stdout.isatty() else 200
        comparison.render(found, sides, streams.console(width), everything=everything)
    if fail and comparison.worst(found.compared):
        sys.exit(1)
