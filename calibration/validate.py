"""Scores predictions against the published measurements that the coefficients were fitted to.

    python -m calibration.validate DATA/*.parquet [--sources CHECKOUT] [OPTIONS]

The options are those of `wavecast validate`, which reads the files of its own importers too.
`--sources` is a checkout of the programs of the HIP suite.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibration.datasets import importers
from wavecast.cli.main import run
from wavecast.cli.validate import command as verb
from wavecast.cli.validate import score

_MEASURING = ("measure", "results")
"""Options of `wavecast validate` that do not score files."""


@click.command(
    "calibration.validate",
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[option for option in verb.params if option.name not in _MEASURING],
)
@click.option("--sources", type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="A checkout of the programs of the HIP suite.")  # fmt: skip
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command(sources: Path | None, **given: Any) -> int:
    """Predict what FILES measured, and score the predictions."""
    return score(**given, importers=importers(sources))


if __name__ == "__main__":
    run(command=command)
