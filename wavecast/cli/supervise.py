"""A script in a child process: if it crashes, its output is complete and the crash is named."""

from __future__ import annotations

import faulthandler
import io
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from wavecast.processes import Ended

PROGRAM = "program"
"""Key of `click.Context.obj`: whether this process is the command, not a program that calls it."""


def script_exit(script: Path) -> int | None:
    """Continue as the process that runs `script`, for which this returns None. In the process that
    was started, this waits for it and returns the exit code: that of the script, or 128 and the
    number of the signal that ended it, which is reported on stderr.

    Does nothing where the command was called by a program, or the system does not fork.
    """
    from wavecast import processes

    context = click.get_current_context().find_root()
    if not (context.obj or {}).get(PROGRAM) or not processes.can_fork():
        return None
    dump = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - the child's until its end
    ended = processes.continue_in_child()
    if ended is None:
        faulthandler.enable(dump)
        _write_at_once()
        return None
    if ended.signal:
        dump.seek(0)
        click.echo(f"wavecast: {_crash(script, ended, dump.read())}", err=True)
        return 128 + ended.signal
    return ended.code


def _crash(script: Path, ended: Ended, dump: str) -> str:
    from wavecast.runtimes.triton.program import crash_line

    where = crash_line(dump, script)
    return f"{script} ended by {ended.signal_name}" + (f" ({where})" if where else "")


def _write_at_once() -> None:
    """Buffer no output: a crash would lose it."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            buffer = _Unbuffered(io.FileIO(stream.fileno(), "w", closefd=False))
            options = {"encoding": stream.encoding, "errors": stream.errors}
            setattr(sys, name, io.TextIOWrapper(buffer, write_through=True, **options))


class _Unbuffered(io.BufferedWriter):
    """Writes all of what it is given: `FileIO.write` may write a part."""

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]
        written = super().write(data)
        self.flush()
        return written


__all__ = ["PROGRAM", "script_exit"]
