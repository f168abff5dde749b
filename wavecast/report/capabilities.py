"""What a machine supports: tables in the terminal, JSON."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wavecast.extras import extras, install_hint
from wavecast.json_objects import values
from wavecast.pipeline.capabilities import HostSupport
from wavecast.version import __version__

_INSTEAD: Final = {"cuda": "nvcc"}
"""Extra -> the tool that does the same where it is installed in another way."""


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
    tools = Table("", "tool", "version", "needed for", box=None, pad_edge=False)
    for tool in capabilities.tools:
        tools.add_row(_mark(tool.found), tool.name, tool.version, tool.purpose)
    console.print(tools)
    _print_hints(
        {tool.name: tool.install for tool in capabilities.tools if not tool.found}, console
    )
    console.print()
    inputs = Table("", "input", "targets that work", "what is missing", box=None, pad_edge=False)
    for entry in capabilities.inputs:
        mark = "[green]works[/]" if entry.targets else "[yellow]no[/]"
        inputs.add_row(mark, entry.name, " ".join(entry.targets), entry.missing)
    console.print(inputs)
    console.print()
    features = Table("", "host feature", "what the emulator does with it", box=None, pad_edge=False)
    for feature in capabilities.features:
        mark = "[green]used[/]" if feature.used else "[yellow]no[/]"
        features.add_row(mark, feature.name, feature.purpose)
    console.print(f"The emulator's code is made for {capabilities.processor}.")
    console.print(features)
    console.print()
    optional = Table("", "extra", "for", "instead of it", box=None, pad_edge=False)
    hints: dict[str, str] = {}
    versions = {tool.name: tool.version for tool in capabilities.tools if tool.found}
    for extra in extras():
        instead = versions.get(_INSTEAD.get(extra.name, ""), "") if extra.missing else ""
        if extra.missing and not instead:
            hints[extra.name] = install_hint(extra.name)
        optional.add_row(
            _mark(not extra.missing), extra.name, extra.purpose.replace("`", ""), instead
        )
    console.print(optional)
    _print_hints(hints, console)


def _mark(there: bool) -> str:
    return "[green]yes[/]" if there else "[yellow]no[/]"


def _print_hints(hints: Mapping[str, str], console: Console) -> None:
    """A line for each name with what to install, whole: a command that is cut is of no use."""
    for name, hint in hints.items():
        console.print(Text(f"{name}: {hint}"), soft_wrap=True)


__all__ = ["document", "render"]
