"""`wavecast ops`: the kernel library, and what it becomes on each GPU."""

from __future__ import annotations

from functools import partial

import click

from wavecast.api.ops import MODES, OperatorOptions, operators
from wavecast.cli import streams
from wavecast.cli.verb import Show, Verb

command = Verb(
    name="ops",
    function=operators,
    options=OperatorOptions,
    modes=MODES,
    show=Show(formats=("text", "json", "html"), output=True, width=220, highlight=True),
    progress=partial(streams.progress, lines=True),
    arguments=(click.Argument(["names"], nargs=-1, metavar="[OPERATOR]..."),),
    text="""List the operators of the kernel library; with --arch, compile them and show for each
    GPU the configuration, registers, spills, occupancy, predicted time and its share of the bound.

    --tune compiles further configurations of every kernel, on the shapes its operator is judged on,
    and keeps the best by prediction.
    """,
    examples=(
        "wavecast ops rms_norm --arch gfx942,gfx1100",
        "wavecast ops -k attention --arch mi300x --shapes 1 --format json",
        "wavecast ops matmul --arch mi300x --tune --jobs 8",
    ),
).command()

__all__ = ["command"]
