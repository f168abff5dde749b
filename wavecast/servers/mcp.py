"""The MCP server: `tools` as tools of a coding agent, over standard input and output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server

from wavecast.errors import WavecastError
from wavecast.servers import tools
from wavecast.servers.mcp_streams import Incoming, Outgoing, UnansweredRequests
from wavecast.version import __version__

INSTRUCTIONS = """\
Wavecast predicts, executes and checks GPU kernels on a CPU machine with no GPU. After every change
of a kernel call `run` with check=true to know that it is still right, then `explain` or `diff` to
know what the change did to its time. Times are predictions with intervals."""


def server() -> MCPServer:
    """A server with all tools."""
    instance = MCPServer("wavecast", instructions=INSTRUCTIONS, version=__version__)
    for function in tools.TOOLS:
        instance.tool()(_with_one_line(function))
    return instance


def serve() -> None:
    """Serve until standard input ends and its requests are answered."""
    anyio.run(_serve)


async def _serve() -> None:
    library = server()._lowlevel_server  # its `run` reads until the input ends, and no longer
    unanswered = UnansweredRequests()
    async with stdio_server() as (incoming, outgoing):
        await library.run(
            Incoming(incoming, unanswered),
            Outgoing(outgoing, unanswered),
            library.create_initialization_options(),
        )


def _with_one_line(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """`function` whose errors the agent gets as one line."""

    @functools.wraps(function)
    def tool(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return function(*args, **kwargs)
        except WavecastError as error:
            raise ToolError(str(error)) from None

    return tool
