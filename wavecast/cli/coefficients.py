"""`wavecast coefficients`: every fitted, measured or assumed number of the model."""

from __future__ import annotations

import click

from wavecast.api.coefficients import coefficients
from wavecast.cli.verb import Show, Verb
from wavecast.options import NoOptions

command = Verb(
    name="coefficients",
    function=coefficients,
    options=NoOptions,
    show=Show(formats=("text", "json", "markdown"), output=True),
    arguments=(click.Argument(["families"], nargs=-1, metavar="[FAMILY]..."),),
    text="List the model's coefficients with their values by chip, unit, status and source.",
    examples=("wavecast coefficients power",),
).command()

__all__ = ["command"]
