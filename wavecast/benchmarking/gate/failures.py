"""Where what a gate could not measure is written, by its error."""

from __future__ import annotations

import contextlib
import re
import traceback
from pathlib import Path
from typing import Final

from wavecast.benchmarking.gate.guards import NOWHERE, Guard, KernelLocation

_WRITTEN: Final = re.compile(r"\(([^()]+):(\d+)\)")
"""How messages name a line: `no such function (kernels.py:12)`."""


def below(path: str, root: Path) -> str:
    """A path relative to the project's folder where it lies there."""
    file = Path(path)
    with contextlib.suppress(ValueError):
        file = file.resolve().relative_to(root.resolve())
    return file.as_posix()


def failure_location(error: BaseException | str, guard: Guard, root: Path) -> KernelLocation:
    """The line that a message names, or the last line of the project that an error went through;
    of a script or a profile at least its file."""
    for path, line in reversed(_WRITTEN.findall(str(error))):
        candidates = [root / path]
        if guard.kind == "kernel":
            candidates.append((root / guard.name).parent / path)
        for file in candidates:
            if file.is_file():
                return KernelLocation(below(str(file), root), int(line))
    while isinstance(error, BaseException):
        location = _of_exception(error, root)
        if location != NOWHERE:
            return location
        error = error.__cause__ or ""
    return KernelLocation(guard.name) if guard.kind == "kernel" else NOWHERE


def _of_exception(error: BaseException, root: Path) -> KernelLocation:
    if isinstance(error, SyntaxError) and error.filename:
        return KernelLocation(below(error.filename, root), error.lineno or 0)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(root.resolve()) and frame.lineno:
            return KernelLocation(below(frame.filename, root), frame.lineno)
    return NOWHERE


__all__ = ["below", "failure_location"]
