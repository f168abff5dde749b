"""A verb of the command line in another process, and the document that it writes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wavecast import processes
from wavecast.errors import InputError, UsageError, WavecastError
from wavecast.limits import ProcessLimits

SECONDS = 600.0
"""A verb may take so long."""
_MEMORY = 32 * 2**30
_PREFIX = "wavecast: "


class VerbFailed(WavecastError):
    """A verb that ended without a result; the message is what it printed."""

    exit_code = 2


def text(
    arguments: Sequence[str], *, seconds: float = SECONDS, accepted: Sequence[int] = (0, 1)
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `wavecast` with `arguments`.

    Raises UsageError for arguments that no process can get, VerbFailed where the exit code is not
    one of `accepted`, and where it takes longer than `seconds`.
    """
    if any("\0" in argument for argument in arguments):
        raise UsageError(f"wavecast {arguments[0]}: an argument contains a NUL character")
    command = [sys.executable, "-m", "wavecast", *arguments]
    process = processes.run(command, ProcessLimits(seconds, seconds, _MEMORY))
    if process.exceeded:
        raise VerbFailed(f"wavecast {arguments[0]} exceeded its limit of {process.exceeded}")
    if process.status not in accepted:
        raise VerbFailed(
            _message(process.log) or f"wavecast {arguments[0]}: exit code {process.status}"
        )
    return process.status, process.text, process.log


def document(
    arguments: Sequence[str], *, seconds: float = SECONDS, accepted: Sequence[int] = (0, 1)
) -> dict[str, Any]:
    """The JSON document that `wavecast` with `arguments` writes to standard output.

    Raises VerbFailed as `text`, and InputError where the output is not a document.
    """
    _, output, log = text(arguments, seconds=seconds, accepted=accepted)
    try:
        return json.loads(output)
    except ValueError:
        raise InputError(f"wavecast {arguments[0]} wrote no document: {_message(log)}") from None


def file(path: str) -> str:
    """`path`, which must be a file. Raises UsageError where it is none, or looks like an option."""
    try:
        is_file = Path(path).is_file()
    except (OSError, ValueError):  # a name too long
        is_file = False
    if not is_file:
        raise UsageError(f"no such file: {path}")
    return name(path)


def name(text: str) -> str:
    """`text`, which must not look like an option. Raises UsageError where it does."""
    if text.startswith("-"):
        raise UsageError(f"not a name, but an option: {text}")
    return text


def _message(log: str) -> str:
    """The lines that wavecast itself printed, without warnings."""
    lines = [line.removeprefix(_PREFIX) for line in log.splitlines() if line.startswith(_PREFIX)]
    return "; ".join(line for line in lines if not line.startswith("warning: "))
