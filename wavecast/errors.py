"""Every error wavecast raises on purpose.

    WavecastError                 exit code 2; one line for the user, a hint about what to do
    ├── UsageError                an option, name or setting the user gave is wrong
    │   ├── ArgumentError         arguments that an operator does not take; a ValueError, too
    │   └── UnknownName           a name that is not in a registry; carries the nearest known ones
    ├── InputError                a file that is missing, truncated or of another format
    │   └── ParseError            text that does not parse; carries file and line
    │       └── UnknownOpcode     a mnemonic the opcode table has no row for
    ├── MissingTool               a program or optional package that is not installed
    ├── CompileError              the compiler refused a kernel
    ├── AllFailed                 nothing of an input could be explained; a line per failure
    ├── CaptureError              a script could not be run far enough to capture a launch
    ├── LaunchError               arguments that do not match the kernel
    ├── MissingFact               a fact about a device without a published value
    ├── StoreError                measurements that cannot be stored or read: locked, full, damaged
    ├── Unpredictable             a launch whose time depends on unknown values, which it names
    └── NothingAnalysed           exit code 3; the run succeeded, but there was nothing to analyse

Anything else that reaches the user is a bug.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class WavecastError(Exception):
    """Base of the tree. `str(error)` is one line; `hint` is what the user can do; `partial` is the
    result of a verb until the error, where it has one."""

    exit_code = 2
    partial: Any = None

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Errors come from other processes: pickled by what they have, not by how they are made."""
        return _unpickle, (type(self), self.args, self.__dict__)


def _unpickle(
    kind: type[WavecastError], args: tuple[object, ...], values: dict[str, object]
) -> WavecastError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(values)
    return error


class UsageError(WavecastError):
    """An option, name, or setting is wrong."""


class ArgumentError(UsageError, ValueError):
    """An operator was called with arguments it does not take."""


class UnknownName(UsageError):
    """`name` is not among `known`; the message lists the nearest known names."""

    def __init__(self, kind: str, name: str, candidates: Iterable[str]) -> None:
        choices = sorted(set(candidates))
        self.name = name
        self.nearest = tuple(nearest_names(name, choices))
        if self.nearest:
            hint = "nearest known: " + ", ".join(self.nearest)
        else:
            hint = "known: " + ", ".join(choices[:12]) if choices else "none is known"
            hint += ", …" if len(choices) > 12 else ""
        super().__init__(f"unknown {kind} {name!r}", hint=hint)


class InputError(WavecastError):
    """A file is missing, truncated, or of another format."""


class ParseError(InputError):
    """Text that does not parse, at `line` (1-based) of `file`."""

    def __init__(
        self,
        message: str,
        *,
        file: str | Path = "",
        line: int = 0,
        kernel: str = "",
        hint: str = "",
    ) -> None:
        self.file, self.line, self.kernel = str(file), line, kernel
        where = f"{file}:{line}: " if file and line else f"line {line}: " if line else ""
        kernel_note = f" (in kernel {kernel})" if kernel else ""
        super().__init__(f"{where}{message}{kernel_note}", hint=hint)


class UnknownOpcode(ParseError):
    """A mnemonic without a row in the opcode table for the target."""


class MissingTool(WavecastError):
    """A program or optional Python package is not installed; the hint is how to install it."""


class CompileError(WavecastError):
    """The compiler refused a kernel. `log` is its output."""

    def __init__(self, message: str, *, log: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.log = log


class AllFailed(WavecastError):
    """Nothing could be explained: `lines` say why, one per failure."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(dict.fromkeys(" ".join(line.split()) for line in lines))
        super().__init__("; ".join(self.lines))


class CaptureError(WavecastError):
    """A script could not be run far enough to capture a kernel launch."""


class LaunchError(WavecastError):
    """Arguments, grid, or block do not match the kernel."""


class MissingFact(WavecastError):
    """A fact about a device has no known value."""


class StoreError(WavecastError):
    """A store of measurements is locked, full, damaged, or of a newer version."""


class Unpredictable(WavecastError):
    """The time of a launch depends on an unknown value."""


class NothingAnalysed(WavecastError):
    """The run succeeded but there was nothing to analyse."""

    exit_code = 3


def nearest_names(name: str, names: Iterable[str], count: int = 4) -> list[str]:
    """The known names most similar to `name`, best first. Ignores case and punctuation."""

    def plain(text: str) -> str:
        return "".join(ch for ch in text.lower() if ch.isalnum())

    by_plain: dict[str, str] = {}
    for candidate in names:
        by_plain.setdefault(plain(candidate), candidate)
    matches = difflib.get_close_matches(plain(name), by_plain, n=count, cutoff=0.55)
    return [by_plain[key] for key in matches]
