"""`wavecast bench`: measure operators, functions and scripts, on a GPU or without one."""

from __future__ import annotations

import os
import sys

import click

from wavecast.api.bench import MODES, BenchOptions, bench, measured_options
from wavecast.cli.verb import AfterDashes, Show, Verb


def _import_from_here(*_: object) -> None:
    """MODULE:FUNCTION is imported from the current folder."""
    sys.path.insert(0, os.getcwd())


command = Verb(
    name="bench",
    function=bench,
    options=BenchOptions,
    modes=MODES,
    choose=measured_options,
    after="script_args",
    first=_import_from_here,
    show=Show(formats=("text", "json", "html"), output=True, width=200, highlight=True),
    arguments=(
        click.Argument(
            ["subjects"], nargs=-1, required=True, metavar="OPERATOR|MODULE:FUNCTION|SCRIPT.py..."
        ),
    ),
    text="""Measure operators of the library, Python functions, or the kernels of scripts.

    Operators and functions are measured at all combinations of their axes. A function takes the
    axes by name and returns what is called. Arguments after -- go to scripts. On a GPU, results
    are checked first, and subjects are timed alternately with GPU events. With --arch no GPU is
    needed: times are predicted, resources are read from the code and, with --execute, instructions,
    bytes and bank conflicts are counted on the emulator. Every record is stored immediately; Ctrl-C
    keeps the records so far and exits with 130. docs/bench.md has the details.
    """,
    examples=(
        "wavecast bench rms_norm -a rows=1,64,8192 -a columns=4096 --arch gfx942,gfx1100",
        "wavecast bench matmul -a m=2^4..2^12 -a n=4096 -a k=4096 --timing graph --label main",
        "wavecast bench mykernels:attention -a tokens=1024:8192:1024 --arch gfx950 --execute",
        "wavecast bench train_step.py -k attention --arch gfx942 -- --layers 2",
    ),
).command(AfterDashes)

__all__ = ["command"]
