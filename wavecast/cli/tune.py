"""`wavecast tune`: configurations of autotuned kernels, and tables for engines."""

from __future__ import annotations

from pathlib import Path

import click

from wavecast.api.tune import MODES, TopRows, TuneOptions, tune
from wavecast.cli.verb import Show, Verb

command = Verb(
    name="tune",
    function=tune,
    options=TuneOptions,
    modes=MODES,
    show=Show(view=TopRows, width=200, highlight=True),
    arguments=(
        click.Argument(["path"], required=False, type=click.Path(path_type=Path)),
        click.Argument(["script_args"], nargs=-1, type=click.UNPROCESSED),
    ),
    text="""Tune the autotuned kernels of the script PATH without a GPU.

    The script runs on CPU tensors. Every configuration is compiled and its time predicted; the best
    ones are simulated from executed samples. docs/tune.md describes how programs use the table.
    Arguments after -- go to the script.

    With --table there is no script: a table of configurations for a Triton kernel of vLLM or SGLang
    is written, in the file that the engine reads. vLLM must be installed: its kernel is compiled in
    every configuration, and its time predicted.
    """,
    examples=(
        "wavecast tune matmul.py --arch gfx942,mi355x --output table.json",
        "wavecast tune matmul.py --space wide --budget 300 --jobs 8 -o table.json",
        "wavecast tune model.py -k attention --budget 10m -o table.json --resume -- --batch 4",
        "wavecast tune --table experts --shape 128x768x2048x8 --arch mi355x --output tables",
        "wavecast tune --table experts --shape 256x2048x7168x8 --dtype fp8_block --engine sglang\n"
        "-o .",
        "wavecast tune --table fp8-product --shape 4096x7168 --arch mi300x --batches 1,16,256 -o .",
    ),
).command()

__all__ = ["command"]
