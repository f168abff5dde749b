"""`wavecast run`: scripts, HIP programs, or one launch of a kernel, executed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from wavecast.api.run import RunOptions, RunReport, run, run_options
from wavecast.cli.supervise import script_exit
from wavecast.cli.verb import Show, Verb, Write
from wavecast.options import silent
from wavecast.pipeline.execute.outcome import RunOutcome

_WIDTH: Final = 1 << 10
"""Columns where no terminal shows the text: what arrays have is one line for other programs."""


class CheckedCommand(click.Command):
    """A command with check options, of which `--check determinism` is written as two words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        separator = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, _expand(args[:separator]) + args[separator:])


def _expand(args: list[str]) -> list[str]:
    words: list[str] = []
    for arg in args:
        orders = arg == "determinism" and words[-1:] == ["--check"]
        words.append("--check-determinism" if orders else arg)
    return words


def _run_apart(values: Mapping[str, Any], write: Write | None) -> int | None:
    """A script runs in a process of which crashes are reported; with a document everything does,
    which this process writes where the other one could not."""
    path: Path = values["path"]
    if write is None:
        return script_exit(path) if path.suffix == ".py" else None

    def write_end(outcome: RunOutcome) -> None:
        write(RunReport(path, RunOptions(), complete=False, stopped=outcome))

    return script_exit(path, write_end)


command = Verb(
    name="run",
    function=run,
    options=RunOptions,
    choose=run_options,
    show=Show(
        formats=("text", "json"),
        output=True,
        width=_WIDTH,
        highlight=True,
        stderr=True,
        executes=True,
    ),
    first=_run_apart,
    progress=lambda: contextlib.nullcontext(silent),
    arguments=(
        click.Argument(["path"], type=click.Path(path_type=Path)),
        click.Argument(["script_args"], nargs=-1, type=click.UNPROCESSED),
    ),
    text="""Execute kernels for an AMD GPU on this machine's processor.

    PATH is a Python script, HIP program, HIP file, assembly or code object. The Triton kernels of a
    script are executed where it launches them; its output, checks and exit code do not change, and
    arguments after -- go to it. With --gpus N it is run once per GPU, as torchrun does. A crash of
    the script is reported with its line. So is a HIP program run, built from source that has a main
    or as an executable (docs/hip.md). Of other files one kernel is launched with the arguments
    given here. Times of triton.testing are predictions for the GPU. docs/run.md describes
    arguments. With --format json standard output is one document, and what a script or program
    prints goes to standard error.
    """,
    examples=(
        "wavecast run test_matmul.py --arch gfx942",
        "wavecast run train.py --arch gfx1100 --threads 8 -- --steps 10",
        "wavecast run sum.hip --grid 2 --block 256 --arg input=f32[8192]:arange\n"
        "--arg output=f32[1]:zeros --arg quads=2048 --expect output=33550336",
        "wavecast run k.hsaco --args k.toml",
        "wavecast run nbody.hip --predict -- 1024",
        "wavecast run ./program --gpus 2",
        "wavecast run train.py --gpus 8",
        "wavecast run test_matmul.py --trace trace.json --perfetto waves.json",
        "wavecast run test_matmul.py --fidelity -o run.json",
        "wavecast run test_matmul.py --check",
        "wavecast run test_matmul.py --check determinism",
    ),
).command(CheckedCommand)

__all__ = ["CheckedCommand", "command"]
