"""`wavecast compare`: what changed from one set of runs to another."""

from __future__ import annotations

import click

from wavecast.api.compare import CompareOptions, compare
from wavecast.cli.verb import Show, Verb

command = Verb(
    name="compare",
    function=compare,
    options=CompareOptions,
    show=Show(formats=("text", "json", "markdown", "html"), output=True, width=200, highlight=True),
    arguments=(click.Argument(["before"]), click.Argument(["after"])),
    text="""Compare two sets of runs: FASTER, SLOWER, SAME or AMBIGUOUS, with reasons.

    Measured times are compared by their samples and the variance between runs, with a limit on
    false discoveries; other figures are exact. Runs of different chips are compared by their share
    of the bound. What cannot be compared is refused, with the reason.

    Runs are named by a label, a commit, the beginning of their id, or last, last~1 …
    """,
    examples=(
        "wavecast compare last~1 last",
        "wavecast compare main pr-17 --kpi measured_seconds,spills --format markdown",
    ),
).command()

__all__ = ["command"]
