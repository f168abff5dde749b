"""Running compilers and binary tools."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from wavecast import limits, processes
from wavecast.errors import CompileError
from wavecast.processes import Finished

DRIVEN: Final = "WAVECAST_DRIVEN"
"""Set for the compilers that wavecast calls: a hipcc that calls wavecast again sees it."""
_VERSION = re.compile(r"LLVM version (\d+)")


def run(command: Sequence[str | Path], *, stdin: bytes | None = None) -> Finished:
    """Run a program to its end. Raises CompileError when it cannot start, or exceeds a limit of
    compilers (`wavecast.limits`)."""
    words = [str(word) for word in command]
    try:
        process = processes.run(
            words,
            limits.of_compilers(),
            stdin=stdin,
            environment={**os.environ, "LC_ALL": "C", DRIVEN: "1"},
        )
    except OSError as error:
        raise CompileError(f"cannot run {words[0]}: {error.strerror or error}") from error
    except ValueError as error:  # a NUL in an option
        raise CompileError(f"cannot run {words[0]}: {error}") from error
    if process.exceeded:
        raise CompileError(
            f"{Path(words[0]).name} was stopped: {process.exceeded}",
            log=process.log,
            hint=f"{limits.SECONDS} and {limits.GIB} change its limits",
        )
    return process


def find_program(names: Iterable[str], *, variable: str = "", folders: Iterable[str] = ()) -> str:
    """The first program found: `$variable`, then `names` in PATH, then in `folders`; "" if none."""
    if variable and os.environ.get(variable):
        return shutil.which(os.environ[variable]) or ""
    names = tuple(names)
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    for folder in folders:
        for name in names:
            path = shutil.which(name, path=folder)
            if path:
                return path
    return ""


def newest(names: Iterable[str]) -> str:
    """The program of the newest LLVM among those with these names in PATH; "" if none."""
    programs = [program for name in names if (program := find_program([name]))]
    return max(programs, key=_llvm, default="") if len(programs) != 1 else programs[0]


def _llvm(program: str) -> int:
    """The major version of an LLVM program, 0 where it says none."""
    match = _VERSION.search(run([program, "--version"]).text)
    return int(match[1]) if match is not None else 0


__all__ = ["Finished", "find_program", "run"]
