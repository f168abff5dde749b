"""`wavecast validate`: predictions compared with measurements."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import click

from wavecast.api.machines import Detail
from wavecast.api.validate import MODES, ScoreOptions, validate
from wavecast.cli import streams
from wavecast.cli.verb import Show, Verb

FILES: Final = click.Argument(["files"], nargs=-1, type=click.Path(path_type=Path))
SHOW: Final = Show(
    formats=("text", "json", "html"), output=True, view=Detail, width=150, highlight=True
)

command = Verb(
    name="validate",
    function=validate,
    options=ScoreOptions,
    modes=MODES,
    show=SHOW,
    progress=partial(streams.progress, lines=True),
    arguments=(FILES,),
    text="""Predict what FILES measured, and score the predictions.

    FILES are Parquet, CSV or JSON lines in one of the formats of docs/validate.md, AITER's tuned
    CSV files, MIOpen find databases (.fdb.txt) and Tensile logic (.yaml).
    """,
    examples=(
        "wavecast validate measured.csv",
        "wavecast validate *.parquet --format html -o accuracy.html",
        "wavecast validate a8w8_tuned_gemm.csv gfx90a68.HIP.fdb.txt",
    ),
).command()

__all__ = ["FILES", "SHOW", "command"]
