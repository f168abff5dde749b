"""`wavecast serve`: the workbench in a browser."""

from __future__ import annotations

import secrets
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from wavecast.errors import MissingTool, UsageError
from wavecast.extras import install_hint


@click.command(
    "serve",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Examples:

    wavecast serve matmul.py --arch gfx942,gfx1201,sm_90

    wavecast serve --watch attention.py --open

    wavecast serve matmul.py.json
    """,
)
@click.argument("path", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("script_args", nargs=-1, type=click.UNPROCESSED)
@click.option("-a", "--arch", default="", metavar="GPU[,GPU…]",
              help="GPUs by name (mi300x) or target (gfx942).  [default: gfx942, or those of a "
              "saved file]")  # fmt: skip
@click.option("--watch", is_flag=True,
              help="Show PATH itself, and explain it whenever an editor has saved it.")  # fmt: skip
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False),
              help="Where edited copies are kept.  [default: a temporary folder]")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="PORT",
              help="Port to listen on.  [default: a free one]")  # fmt: skip
@click.option("--open", "open_", is_flag=True, help="Open the page in the browser.")
def command(
    path: Path,
    script_args: tuple[str, ...],
    arch: str,
    watch: bool,
    folder: Path | None,
    port: int,
    open_: bool,
) -> None:
    """Edit the kernel in PATH in a browser and see its code, time and findings on each GPU.

    PATH is a script, a HIP file or assembly, or a file that the page saved. A copy of it is edited:
    PATH itself does not change. The server listens on 127.0.0.1 only, and its address has a token
    that each request needs. Who has the address runs code on this machine: scripts are executed.
    """
    try:
        from wavecast.servers.workbench import app, engine, session
    except ModuleNotFoundError as error:
        raise MissingTool(
            f"the workbench needs starlette and uvicorn ({error})",
            hint=install_hint("serve"),
        ) from None
    from wavecast.pipeline import DEFAULT, select

    if arch:
        select(arch.split(","))  # refuses unknown GPUs before anything starts
    with ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wavecast-")))
        folder = folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        chosen = arch or ("" if path.suffix == ".json" else DEFAULT)
        make = session.watching if watch else session.of_file
        found = make(path, chosen, script_args, folder)
        token = secrets.token_urlsafe(24)
        started = engine.WorkbenchEngine(engine.private_cache(folder))
        stack.callback(started.close)

        def announce(address: str) -> None:
            click.echo(address)
            if open_:
                click.launch(address)

        try:
            with suppress(KeyboardInterrupt):  # how it is ended
                app.serve(found, started, token, port, announce)
        except OSError as error:
            raise UsageError(f"cannot listen on port {port}: {error.strerror}") from None
