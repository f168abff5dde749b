"""`wavecast gate`: kernels under guard against their committed baseline."""

from __future__ import annotations

import click

from wavecast.api.gate import GateOptions, gate
from wavecast.cli.verb import Show, Verb

command = Verb(
    name="gate",
    function=gate,
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
