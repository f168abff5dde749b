"""`wavecast learn`: the course."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from wavecast.cli import streams
from wavecast.cli.groups import CommandGroup
from wavecast.extras import install_hint

_HELP = {"help_option_names": ["-h", "--help"]}
_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.group("learn", cls=CommandGroup, invoke_without_command=True, context_settings=_HELP)
@click.pass_context
def command(context: click.Context) -> None:
    """A course in GPU kernels: chapters with a slow kernel, a task, goals, and a solution.

    Nothing but this machine is needed. Begin with `wavecast learn start 1`.
    """
    if context.invoked_subcommand is not None:
        return
    from wavecast.learn.chapter import chapters
    from wavecast.report.course import render_list

    render_list(chapters(), streams.console(highlight=False))


@command.command("start", context_settings=_HELP)
@click.argument("chapter")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), required=False)
def start(chapter: str, folder: Path | None) -> None:
    """Write the text and the kernel of CHAPTER, a number or name, to FOLDER (its name)."""
    from wavecast.learn.chapter import chapter as find

    found = find(chapter)
    path = found.begin(folder or Path(found.name))
    click.echo(found.text)
    click.echo(f"Edit {path}, then: wavecast learn check {found.number} {path}")


@command.command("check", context_settings=_HELP)
@click.argument("chapter")
@click.argument("file", type=_FILE, required=False)
def check(chapter: str, file: Path | None) -> None:
    """Check the goals of CHAPTER on FILE; exit code 1 while one is not reached."""
    from wavecast.errors import InputError
    from wavecast.learn import goals
    from wavecast.learn.chapter import chapter as find
    from wavecast.report.course import render_goal

    found = find(chapter)
    path = file or Path(found.name) / found.file
    if not path.is_file():
        raise InputError(f"no such file: {path}", hint=f"wavecast learn start {found.number}")
    console = streams.console(highlight=False)
    reached = True
    with streams.progress() as update:
        update(f"executing and predicting {path}")
        for goal in goals.check(found, path.resolve()):
            render_goal(goal, console)
            reached = reached and goal.reached
    if not reached:
        sys.exit(1)
    console.print(f"chapter {found.number} is done")


@command.command("solution", context_settings=_HELP)
@click.argument("chapter")
def solution(chapter: str) -> None:
    """Print a solution of CHAPTER."""
    from wavecast.learn.chapter import chapter as find

    click.echo(find(chapter).solution.read_text(encoding="utf-8"), nl=False)


@command.command("notebook", context_settings=_HELP)
@click.argument("chapter")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=None,
              help="The file.  [default: NAME.ipynb]")  # fmt: skip
def notebook(chapter: str, output: Path | None) -> None:
    """Write CHAPTER as a Jupyter notebook."""
    from wavecast.errors import MissingTool
    from wavecast.learn.chapter import chapter as find

    found = find(chapter)
    try:
        from wavecast.learn.notebook import dumps
    except ModuleNotFoundError as error:
        raise MissingTool(
            f"notebooks need the package nbformat ({error})",
            hint=install_hint("notebook"),
        ) from None
    path = output or Path(f"{found.name}.ipynb")
    with streams.writing(path) as file:
        file.write(dumps(found))
    click.echo(str(path))
