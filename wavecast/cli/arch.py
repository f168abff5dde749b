"""`wavecast arch`: the devices wavecast knows, and their facts side by side."""

from __future__ import annotations

import click

from wavecast.api.arch import FactOptions, facts
from wavecast.cli.verb import Show, Verb

command = Verb(
    name="arch",
    function=facts,
    options=FactOptions,
    show=Show(output=True),
    arguments=(click.Argument(["devices"], nargs=-1),),
    text="""List devices, or show the facts of DEVICES side by side.

    DEVICES are ids, marketing names, gfx targets or sm targets.
    """,
    examples=(
        "wavecast arch",
        "wavecast arch mi300x mi355x h200 --field peak",
        "wavecast arch mi355x --field lds_banks --sources",
    ),
).command()

__all__ = ["command"]
