"""`wavecast mcp`: tools for coding agents."""

from __future__ import annotations

import click

from wavecast.errors import MissingTool
from wavecast.extras import install_hint


@click.command("mcp", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Serve the tools of a coding agent over standard input and output (Model Context Protocol).

    The tools are explain, run, predict, diff, tune, model and arch; docs/editors.md describes how
    to add the server to an agent.
    """
    try:
        from wavecast.servers import mcp
    except ModuleNotFoundError as error:
        raise MissingTool(
            f"the server needs the package mcp ({error})", hint=install_hint("mcp")
        ) from None
    mcp.serve()
