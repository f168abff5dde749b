"""`wavecast history`: figures over commits, and where they changed."""

from __future__ import annotations

import click

from wavecast.api.history import HistoryOptions, history
from wavecast.cli.types import click_type
from wavecast.cli.verb import Show, Verb
from wavecast.options.values import Regex

command = Verb(
    name="history",
    function=history,
    options=HistoryOptions,
    show=Show(formats=("text", "json", "html"), output=True, width=200, highlight=True),
    arguments=(
        click.Argument(
            ["subject"], default="", metavar="[SUBJECT-REGEX]", type=click_type(Regex())
        ),
    ),
    text="""Show figures of subjects over runs, in the order of their commits, and where they
    changed.

    Measured times change if their levels differ by more than noise explains; other figures are
    exact. HTML is one self-contained page with a plot of every figure.
    """,
    examples=(
        "wavecast history rms_norm --kpi measured_seconds",
        "wavecast history --device mi300x -o history.html",
    ),
).command()

__all__ = ["command"]
