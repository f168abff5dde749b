"""The file that the workbench edits: its versions, and the permalink that has all of a session.

A copy of the file is edited, in the folder of the session; the file itself is never changed. With
`watch` the file itself is explained, and an editor elsewhere changes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from wavecast import files
from wavecast.errors import InputError, UsageError

SCHEMA: Final = "wavecast.workbench/1"
SUFFIXES: Final = (".py", ".hip", ".cpp", ".cu", ".s")
"""Files that the workbench can edit."""
LARGEST: Final = 2 * 2**20
"""Bytes of a source file, and of a permalink."""
_LONGEST_NAME: Final = 200
_TIMEOUT: Final = 60.0
"""Seconds that a script may run."""


@dataclass(frozen=True, slots=True)
class WorkbenchSession:
    """What the page shows: a source file's `name` and `text`, the GPUs `arch`, the script's
    `arguments`. `folder` is where it is written; `imports` the folder of the original file.
    `watched` is the file itself where an editor changes it."""

    name: str
    text: str
    arch: str
    arguments: tuple[str, ...]
    folder: Path
    imports: str = ""
    watched: Path | None = None

    @property
    def path(self) -> Path:
        """The file that is explained."""
        return self.watched or self.folder / self.name

    def with_changes(self, changes: Mapping[str, Any]) -> WorkbenchSession:
        """The session with another `text`, `arch` or `arguments`, as the page sends them.

        Raises UsageError for other values.
        """
        text = changes.get("text", self.text)
        arch = changes.get("arch", self.arch)
        arguments = changes.get("arguments", list(self.arguments))
        if not isinstance(text, str) or len(text.encode("utf-8", "replace")) > LARGEST:
            raise UsageError(f"the source is text of at most {LARGEST // 2**20} MiB")
        if not isinstance(arch, str) or not arch.strip():
            raise UsageError("arch names at least one GPU")
        if not isinstance(arguments, list) or not all(
            isinstance(argument, str) for argument in arguments
        ):
            raise UsageError("arguments is a list of texts")
        if self.watched is not None:
            text = files.read_text(self.watched)
        return replace(self, text=text, arch=arch, arguments=tuple(arguments))

    def write(self) -> Path:
        """Write the text to the folder of the session, unless a file is watched."""
        if self.watched is None:
            files.write_atomic(self.path, self.text)
        return self.path

    def question(self) -> dict[str, Any]:
        """What asks the engine to explain this version."""
        return {
            "question": "explain",
            "path": str(self.write()),
            "arch": self.arch,
            "arguments": list(self.arguments),
            "imports": self.imports,
            "timeout": _TIMEOUT,
        }

    def permalink(self) -> dict[str, Any]:
        """All of the session as JSON that `opened` reads, on another machine too."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "text": self.text,
            "arch": self.arch,
            "arguments": list(self.arguments),
        }


def of_file(path: Path, arch: str, arguments: tuple[str, ...], folder: Path) -> WorkbenchSession:
    """The session of a source file, or of a permalink (`.json`). Raises InputError where it is
    neither."""
    if path.suffix == ".json":
        return open_session(files.read_text(path), arch, folder)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: the workbench edits {', '.join(SUFFIXES)}")
    text = files.read_text(path)
    return WorkbenchSession(
        _checked_name(path.name), text, arch, arguments, folder, str(path.resolve().parent)
    )


def watching(path: Path, arch: str, arguments: tuple[str, ...], folder: Path) -> WorkbenchSession:
    """The session of a file that an editor changes. Raises InputError where it is none."""
    if path.suffix == ".json":
        raise InputError(f"{path} is a permalink, not a source file")
    session = of_file(path, arch, arguments, folder)
    return replace(session, watched=path.resolve(), imports="")


def open_session(text: str, arch: str, folder: Path) -> WorkbenchSession:
    """The session of a permalink; `arch` replaces its GPUs unless "". Raises InputError for other
    text."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("not a permalink of the workbench: no JSON") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(f"not a permalink of the workbench: no schema {SCHEMA}")
    name = document.get("name")
    if not isinstance(name, str):
        raise InputError("the permalink has no name")
    empty = WorkbenchSession(_checked_name(name), "", arch, (), folder)
    return empty.with_changes(
        {
            "text": document.get("text", ""),
            "arch": arch or document.get("arch", ""),
            "arguments": document.get("arguments", []),
        }
    )


def _checked_name(name: str) -> str:
    """A file name without folders. Raises InputError for another."""
    plain = name == Path(name).name and name.isprintable() and not name.startswith(".")
    if not plain or len(name) > _LONGEST_NAME or not name.endswith(SUFFIXES):
        raise InputError(f"not the name of a source file: {name[:80]!r}")
    return name


__all__ = [
    "SCHEMA",
    "WorkbenchSession",
    "of_file",
    "open_session",
    "watching",
]
