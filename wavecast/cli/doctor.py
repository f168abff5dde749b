"""`wavecast doctor`: what is installed, what works here, and what to install for the rest."""

from __future__ import annotations

import json
import platform
from typing import Any

import click

from wavecast.cli import streams


@click.command("doctor", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-f", "--format", "format_", type=click.Choice(["text", "json"]), default="text",
              show_default=True)  # fmt: skip
def command(format_: str) -> None:
    """Show which inputs and targets work on this machine, and what to install for the others."""
    from dataclasses import asdict

    from wavecast.extras import extras
    from wavecast.pipeline.capabilities import examine
    from wavecast.version import __version__

    capabilities = examine()
    if format_ == "json":
        document = {
            "wavecast": __version__,
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}",
            "tools": [tool.to_dict() for tool in capabilities.tools],
            "inputs": [entry.to_dict() for entry in capabilities.inputs],
            "extras": [asdict(extra) for extra in extras()],
        }
        click.echo(json.dumps(document, indent=2))
    else:
        _show(capabilities)


def _show(capabilities: Any) -> None:
    from rich.table import Table

    from wavecast.extras import extras, install_hint
    from wavecast.version import __version__

    console = streams.console()
    console.print(
        f"wavecast {__version__}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}"
    )
    tools = Table("", "tool", "version", "needed for", "install", box=None, pad_edge=False)
    for tool in capabilities.tools:
        mark = "[green]yes[/]" if tool.found else "[yellow]no[/]"
        tools.add_row(
            mark, tool.name, tool.version, tool.purpose, _hint("" if tool.found else tool.install)
        )
    console.print(tools)
    console.print()
    inputs = Table("", "input", "targets that work", "what is missing", box=None, pad_edge=False)
    for entry in capabilities.inputs:
        mark = "[green]works[/]" if entry.targets else "[yellow]no[/]"
        inputs.add_row(mark, entry.name, " ".join(entry.targets), _hint(entry.missing))
    console.print(inputs)
    console.print()
    optional = Table("", "extra", "for", "install", box=None, pad_edge=False)
    for extra in extras():
        mark = "[yellow]no[/]" if extra.missing else "[green]yes[/]"
        optional.add_row(
            mark,
            extra.name,
            extra.purpose.replace("`", ""),
            _hint(install_hint(extra.name) if extra.missing else ""),
        )
    console.print(optional)


def _hint(text: str) -> Any:
    """What to install, whole: an address that is cut is of no use."""
    from rich.text import Text

    return Text(text, overflow="fold")
