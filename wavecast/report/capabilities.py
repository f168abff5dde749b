"""What a machine supports: tables in the terminal, JSON."""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wavecast.extras import extras, install_hint
from wavecast.json_objects import values
from wavecast.pipeline.capabilities import HostSupport
from wavecast.version import __version__


def document(capabilities: HostSupport) -> dict[str, Any]:
    """Versions, tools, inputs and extras as JSON-ready values."""
    document = {
        "wavecast": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "tools": [tool.to_dict() for tool in capabilities.tools],
        "inputs": [entry.to_dict() for entry in capabilities.inputs],
        "processor": capabilities.processor,
        "features": [asdict(feature) for feature in capabilities.features],
        "extras": [asdict(extra) for extra in extras()],
    }
    return values(document)


def render(capabilities: HostSupport, console: Console) -> None:
    """Print tools, inputs, features of the processor and extras: what is there, and what to install
    for the others."""
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
    features = Table("", "host feature", "what the emulator does with it", box=None, pad_edge=False)
    for feature in capabilities.features:
        mark = "[green]used[/]" if feature.used else "[yellow]no[/]"
        features.add_row(mark, feature.name, feature.purpose)
    console.print(f"The emulator's code is made for {capabilities.processor}.")
    console.print(features)
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


def _hint(text: str) -> Text:
    """What to install, whole: an address that is cut is of no use."""
    return Text(text, overflow="fold")


__all__ = ["document", "render"]
