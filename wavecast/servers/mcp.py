"""The MCP server: `tools` as tools of a coding agent, over standard input and output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from wavecast.errors import WavecastError
from wavecast.servers import tools
from wavecast.version import __version__

INSTRUCTIONS = """\
Wavecast predicts, executes and checks GPU kernels on a CPU machine with no GPU. After every change
of a kernel call `run` with check=true to know that it is still right, then `explain` or `diff` to
know what the change did to its time. Times are predictions with intervals."""


def server() -> MCPServer:
    """A server with all tools."""
    found = MCPServer("wavecast", instructions=INSTRUCTIONS, version=__version__)
    for function in tools.TOOLS:
        found.tool()(_with_one_line(function))
    return found


def serve() -> None:
    """Serve until standard input ends."""
    server().run("stdio")


def _with_one_line(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """`function` whose errors the agent gets as one line."""

    @functools.wraps(function)
    def tool(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return function(*args, **kwargs)
        except WavecastError as error:
            raise ToolError(str(error)) from None

    return tool
