"""`--open`: a command's page in the browser."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from wavecast.errors import UsageError


def opening(command: Callable[..., Any]) -> Any:
    """Add `--open` to a command that has `--html FILE`, or `-f html` with `-o FILE`.

    The page is the file that the command line names, or a new one in a temporary folder.
    """

    @click.option("--open", "open_", is_flag=True, help="Write HTML and open it in the browser.")
    @functools.wraps(command)
    def opened(*args: Any, open_: bool, **given: Any) -> Any:
        if not open_:
            return command(*args, **given)
        page = _page(given)
        code = command(*args, **given)
        if page.exists():
            click.echo(f"page: {page}", err=True)
            if click.launch(str(page)):
                click.echo("no browser could be started: open the page in one", err=True)
        return code

    return opened


def _page(given: dict[str, Any]) -> Path:
    """The file that the command writes its page to; `given` is changed so that it does. Raises
    UsageError where another format was asked for."""
    if "html" in given:
        given["html"] = given["html"] or _new_file()
        return given["html"]
    name = next(one for one in ("format_", "form") if one in given)
    source = click.get_current_context().get_parameter_source(name)
    if source is ParameterSource.COMMANDLINE and given[name] != "html":
        raise UsageError(f"--open shows HTML, not {given[name]}")
    given[name] = "html"
    given["output"] = given["output"] or _new_file()
    return given["output"]


def _new_file() -> Path:
    return Path(tempfile.mkdtemp(prefix="wavecast-")) / "report.html"


__all__ = ["opening"]
