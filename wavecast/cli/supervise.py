"""A script in a child process: if it crashes, its output is complete and the crash is named."""

from __future__ import annotations

import atexit
import faulthandler
import io
import mmap
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wavecast.pipeline.execute.outcome import RunOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from wavecast.processes import Ended

PROGRAM = "program"
"""Key of `click.Context.obj`: whether this process is the command, not a program that calls it."""


_written: mmap.mmap | None = None
"""A byte that both processes have: whether the document is written, or none is needed."""


def script_exit(script: Path, write_end: Callable[[RunOutcome], None] | None = None) -> int | None:
    """Continue as the process that runs `script`, for which this returns None. In the process that
    was started, this waits for it and returns the exit code: that of the script, or 128 and the
    number of the signal that ended it, which is reported on stderr. `write_end` is called with the
    end of a process that was to write a document and has not.

    Does nothing where the command was called by a program, or the system does not fork.
    """
    from wavecast import processes

    context = click.get_current_context().find_root()
    if not (context.obj or {}).get(PROGRAM) or not processes.can_fork():
        return None
    dump = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - the child's until its end
    written = mmap.mmap(-1, 1)
    ended = processes.continue_in_child()
    if ended is None:
        faulthandler.enable(dump)
        _write_at_once()
        _expect_document(written)
        return None
    dump.seek(0)
    outcome = _outcome(script, ended, dump.read())
    if ended.signal:
        click.echo(f"wavecast: {script} {outcome.reason}", err=True)
    if write_end is not None and not written[0]:
        write_end(outcome)
    return outcome.code


def _outcome(script: Path, ended: Ended, dump: str) -> RunOutcome:
    from wavecast.runtimes.triton.program import crash_line

    if not ended.signal:
        return RunOutcome("exited", ended.code, f"os._exit({ended.code})")
    where = crash_line(dump, script)
    reason = f"ended by {ended.signal_name}" + (f" ({where})" if where else "")
    return RunOutcome("signal", 128 + ended.signal, reason)


def _expect_document(written: mmap.mmap) -> None:
    """From now on this process has to write the document, unless it ends as Python does."""
    global _written
    _written, process = written, os.getpid()
    atexit.register(lambda: os.getpid() == process and document_written())


def document_written() -> None:
    """Tell the process that waits that it need not write the document."""
    if _written is not None:
        _written[0] = 1


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


__all__ = ["PROGRAM", "document_written", "script_exit"]
