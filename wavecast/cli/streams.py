"""Standard output and files as verbs use them: any encoding, readers gone, a full disk."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NoReturn, cast

from wavecast.pipeline.execute.outcome import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST: Final = 800
"""Characters of a message."""
_BEFORE_GPU: Final = re.compile(r";? (?=GPU \d+ (?:\(|runs))")
"""What a message about several GPUs has before what it says of one."""
_PROGRESS_SECONDS: Final = 10.0
"""Between two lines of progress, without a terminal."""


def prepare() -> None:
    """Characters the terminal cannot show become `?`, warnings become one line on stderr.

    Raises UsageError when there is no standard output at all.
    """
    from wavecast.errors import UsageError

    if sys.stdout is None:
        raise UsageError("standard output is closed", hint="send it to a file or to /dev/null")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    warnings.showwarning = _show_warning


def as_document(stream: IO[str]) -> None:
    """Write JSON and HTML as UTF-8, which they are by definition, whatever the locale says."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="replace")


def console(
    width: int | None = None, stream: IO[str] | None = None, *, highlight: bool = True
) -> Console:
    """A rich console on `stream`, standard output by default; without padding if that is no
    terminal.

    A reader that goes away is a BrokenPipeError as elsewhere, not rich's exit with 1.
    """
    from rich.console import Console

    from wavecast.report.kit.terminal import UnpaddedFile

    class _Output(Console):
        def on_broken_pipe(self) -> None:
            raise  # rich calls this while it handles the BrokenPipeError

    file = stream or sys.stdout
    if not file.isatty():
        file = cast("IO[str]", UnpaddedFile(file))
    return _Output(file=file, width=width, highlight=highlight)


@contextlib.contextmanager
def stdout_as_stderr() -> Iterator[None]:
    """What is printed goes to standard error, also by programs that are started. Standard output is
    open afterwards, whatever a script did with it."""
    stream, own = sys.stdout, -1
    stream.flush()
    if _has_file(stream):
        own = os.dup(1)
        os.dup2(2, 1)
    else:
        sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = stream
        if own != -1:
            if not stream.closed:
                stream.flush()
            os.dup2(own, 1)
            os.close(own)
            if stream.closed:
                sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)


def _has_file(stream: IO[str]) -> bool:
    """Whether a stream is standard output of the process, not one that a program made."""
    try:
        return stream.fileno() == 1
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def writing(path: Path, mode: str = "w") -> Iterator[IO[str]]:
    """A file as UTF-8. Raises InputError where it cannot be written."""
    from wavecast.errors import InputError

    try:
        with path.open(mode, encoding="utf-8", errors="replace") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


@contextlib.contextmanager
def progress(*, lines: bool = False) -> Iterator[Callable[[str], None]]:
    """One status line on stderr while a terminal watches. Otherwise silent, or with `lines` a line
    of what happens, at most one in `_PROGRESS_SECONDS`."""
    from rich.console import Console

    stderr = Console(stderr=True)
    if not stderr.is_terminal:
        yield _every(stderr.file) if lines else lambda _: None
        return
    with stderr.status("starting") as status:
        yield status.update


def _every(stream: IO[str]) -> Callable[[str], None]:
    """Prints a line when enough time has passed since the last one."""
    last = time.monotonic()

    def show(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _PROGRESS_SECONDS:
            last = time.monotonic()
            print(text, file=stream, flush=True)

    return show


def flush() -> None:
    """Write what standard output has buffered; a script may have closed it."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def abandon() -> None:
    """Send what is still buffered nowhere, so that Python does not complain at its exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(*messages: str, code: int = 2) -> NoReturn:
    """Print each message in one line on stderr and exit. What a user gave may be of any length: of
    a long message the middle is left out. A long one about several GPUs has a line for each."""
    for message in messages:
        line = " ".join(message.split())
        for part in [line] if len(line) <= _LONGEST else _BEFORE_GPU.split(line):
            if len(part) > _LONGEST:
                part = f"{part[: _LONGEST // 2]} … {part[-_LONGEST // 2 :]}"
            if sys.stderr is not None:
                print(f"wavecast: {part}", file=sys.stderr)
    sys.exit(code)


def report_interrupt(*, leave: bool) -> NoReturn:
    """Say so on stderr and exit with 130. `leave` ends the process at once, after what is
    registered for its exit: Python would take seconds to unload PyTorch."""
    if not leave:
        fail("interrupted", code=INTERRUPTED)
    with contextlib.suppress(OSError, ValueError):
        print("wavecast: interrupted", file=sys.stderr, flush=True)
        atexit._run_exitfuncs()
        flush()
    os._exit(INTERRUPTED)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object
) -> None:
    del category, filename, lineno
    if sys.stderr is not None:
        print(f"wavecast: warning: {' '.join(str(message).split())}", file=sys.stderr)
