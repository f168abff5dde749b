"""`wavecast lsp`: findings and times in editors."""

from __future__ import annotations

import click

from wavecast.errors import MissingTool
from wavecast.extras import install_hint


@click.command("lsp", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-a", "--arch", default="gfx942", show_default=True, metavar="GPU[,GPU…]",
              help="GPUs to explain files for.")  # fmt: skip
@click.option("--stdio", is_flag=True, help="What editors pass; it is the only transport.")
def command(arch: str, stdio: bool) -> None:
    """Serve an editor over standard input and output (Language Server Protocol).

    A file with kernels is explained when it is opened and saved: findings are diagnostics, kernels
    have a line with their predicted time, and lines tell their share of it. A script runs for that.
    docs/editors.md describes how to add the server to editors.
    """
    del stdio
    from wavecast.pipeline import select

    try:
        from wavecast.servers import lsp
    except ModuleNotFoundError as error:
        raise MissingTool(
            f"the server needs the package pygls ({error})", hint=install_hint("lsp")
        ) from None
    select(arch.split(","))  # a GPU that nobody knows is an error now, not in the editor
    lsp.serve(arch)
