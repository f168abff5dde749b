"""Running compilers and binary tools."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wavecast.errors import CompileError

TIMEOUT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program printed and its exit status."""

    status: int
    output: bytes
    log: str

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")


def run(command: Sequence[str | Path], *, stdin: bytes | None = None) -> Finished:
    """Run a program to its end. Raises CompileError when it cannot start or does not finish."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError as error:
        raise CompileError(f"cannot run {words[0]}: {error.strerror or error}") from error
    except subprocess.TimeoutExpired as error:
        raise CompileError(f"{words[0]} did not finish in {TIMEOUT_SECONDS:.0f} s") from error
    return Finished(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def find_program(names: Iterable[str], *, variable: str = "", folders: Iterable[str] = ()) -> str:
    """The first program found: `$variable`, then `names` in PATH, then in `folders`; "" if none."""
    if variable and os.environ.get(variable):
        return shutil.which(os.environ[variable]) or ""
    names = tuple(names)
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    for folder in folders:
        for name in names:
            found = shutil.which(name, path=folder)
            if found:
                return found
    return ""
