"""`wavecast learn`: the course."""

from __future__ import annotations

from pathlib import Path

import click

from wavecast.api.learn import NotebookOptions, check, course, notebook, solution, start
from wavecast.cli.groups import CommandGroup
from wavecast.cli.verb import Show, Verb
from wavecast.options import NoOptions

_TEXT = Show(formats=("text",))
_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)

_VERBS = (
    Verb(
        name="list",
        function=course,
        options=NoOptions,
        show=_TEXT,
        text="List the chapters.",
        examples=(),
    ),
    Verb(
        name="start",
        function=start,
        options=NoOptions,
        show=_TEXT,
        arguments=(
            click.Argument(["chapter"]),
            click.Argument(["folder"], type=_FOLDER, required=False),
        ),
        text="Write the text and the kernel of CHAPTER, a number or name, to FOLDER (its name).",
        examples=(),
    ),
    Verb(
        name="check",
        function=check,
        options=NoOptions,
        show=_TEXT,
        arguments=(
            click.Argument(["chapter"]),
            click.Argument(["file"], type=_FILE, required=False),
        ),
        text="Check the goals of CHAPTER on FILE; exit code 1 while one is not reached.",
        examples=(),
    ),
    Verb(
        name="solution",
        function=solution,
        options=NoOptions,
        show=_TEXT,
        arguments=(click.Argument(["chapter"]),),
        text="Print a solution of CHAPTER.",
        examples=(),
    ),
    Verb(
        name="notebook",
        function=notebook,
        options=NotebookOptions,
        show=_TEXT,
        arguments=(click.Argument(["chapter"]),),
        text="Write CHAPTER as a Jupyter notebook.",
        examples=(),
    ),
)

command = CommandGroup(
    "learn",
    commands=[verb.command() for verb in _VERBS],
    default="list",
    help="""A course in GPU kernels: chapters with a slow kernel, a task, goals, and a solution.

    Nothing but this machine is needed. Begin with `wavecast learn start 1`.
    """,
    context_settings={"help_option_names": ["-h", "--help"]},
)

__all__ = ["command"]
