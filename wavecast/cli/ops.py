"""`wavecast ops`: the kernel library, and what it becomes on each GPU."""

from __future__ import annotations

import json
import re
import sys

import click


@click.command("ops")
@click.argument("names", nargs=-1, metavar="[OPERATOR]...")
@click.option("--arch", default="", help="GPUs to compile for, separated by commas.")
@click.option("-k", "pattern", default="", help="Operators whose name has this regular expression.")
@click.option("--small", is_flag=True, help="Test cases instead of the shapes it is judged on.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def command(names: tuple[str, ...], arch: str, pattern: str, small: bool, form: str) -> None:
    """List the operators of the kernel library; with --arch, compile them and show for each GPU the
    configuration, registers, spills, occupancy, predicted time and its share of the bound."""
    from rich.console import Console

    from wavecast import arch as known
    from wavecast.errors import NothingAnalysed, UsageError
    from wavecast.kernels import registry
    from wavecast.pipeline.library import survey
    from wavecast.report import library

    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"-k {pattern!r} is not a regular expression: {error}") from None
    chosen = [registry.operator(name) for name in names or registry.operators()]
    chosen = [operator for operator in chosen if wanted.search(operator.name)]
    if not chosen:
        raise NothingAnalysed("no operator has such a name")
    console = Console(width=None if sys.stdout.isatty() else 220)
    if not arch:
        library.listing(chosen, [registry.family(one.name) for one in chosen], console)
        return
    devices = [known.load(name) for name in arch.split(",")]
    found = survey(chosen, devices, small=small)
    if form == "json":
        click.echo(json.dumps(library.document(found), indent=1))
    else:
        library.render(found, console)
