"""Scores predictions against the published measurements that the coefficients were fitted to.

    python -m calibration.validate DATA/*.parquet [--sources CHECKOUT] [OPTIONS]

The options are those of `wavecast validate`, which reads the files of its own importers too.
`--sources` is a checkout of the programs of the HIP suite.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from calibration.datasets import importers
from wavecast.api.validate import ScoreOptions, ValidationReport, score
from wavecast.cli import streams
from wavecast.cli.main import run
from wavecast.cli.validate import FILES, SHOW
from wavecast.cli.verb import Verb
from wavecast.options import Progress, option, silent
from wavecast.options.values import Files


@dataclass(frozen=True, kw_only=True)
class PublishedOptions(ScoreOptions):
    """Options of published measurements that are scored."""

    sources: Path | None = option(
        None, "A checkout of the programs of the HIP suite.", values=Files(folder=True)
    )


def validate(*files: Path, progress: Progress = silent, **options: Any) -> ValidationReport:
    """Predict what files measured, and score the predictions. Raises as `wavecast.validate`."""
    stated = PublishedOptions.of(options)
    return score(files, stated, progress, importers(stated.sources))


command = Verb(
    name="calibration.validate",
    function=validate,
    options=PublishedOptions,
    show=SHOW,
    progress=partial(streams.progress, lines=True),
    arguments=(
        FILES,
        click.Option(
            ["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error."
        ),
    ),
    text="Predict what FILES measured, and score the predictions.",
    examples=(),
).command()

if __name__ == "__main__":
    run(command=command)
