"""`wavecast rules`: the findings wavecast looks for, from the registry."""

from __future__ import annotations

import click

from wavecast.api.rules import rules
from wavecast.cli.verb import Show, Verb
from wavecast.options import NoOptions

command = Verb(
    name="rules",
    function=rules,
    options=NoOptions,
    show=Show(formats=("text", "json", "markdown"), output=True),
    arguments=(click.Argument(["names"], nargs=-1, metavar="[NAME]..."),),
    text="List the rules, or explain those named.",
    examples=("wavecast rules", "wavecast rules register-spills"),
).command()

__all__ = ["command"]
