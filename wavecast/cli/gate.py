"""`wavecast gate`: kernels under guard against their committed baseline."""

from __future__ import annotations

from typing import Any

import click

from wavecast.api.gate import GateOptions, GateReport, gate
from wavecast.cli.verb import Show, Verb
from wavecast.errors import WavecastError


def _gate(*subjects: str, **options: Any) -> GateReport:
    """What `gate` returns and raises; an error is an annotation, too."""
    try:
        return gate(*subjects, **options)
    except WavecastError as error:
        stated = {name: value for name, value in options.items() if name != "progress"}
        if GateOptions.of(stated).annotates:
            from wavecast.report.bench.gate_files import workflow_command_of_error

            click.echo(workflow_command_of_error(str(error), "pyproject.toml"), err=True)
        raise


command = Verb(
    name="gate",
    function=_gate,
    options=GateOptions,
    show=Show(formats=("text", "json", "markdown", "html"), output=True, width=200, highlight=True),
    arguments=(click.Argument(["subjects"], nargs=-1, metavar="[SUBJECT]..."),),
    text="""Measure the kernels of [tool.wavecast.gate] without a GPU, and compare them with the
    committed baseline.

    SUBJECTs are names or patterns; without any, all are measured. Exit codes: 0 nothing is worse
    than its threshold allows, 1 something is worse, wrong, failed or gone, 2 bad input.

    The settings are in [tool.wavecast.gate] of pyproject.toml: see docs/ci.md.
    """,
    examples=(
        "wavecast gate --update",
        "wavecast gate",
        "wavecast gate 'rms_*' --arch gfx942 --junit gate.xml --sarif gate.sarif",
    ),
).command()

__all__ = ["command"]
