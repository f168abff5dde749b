"""A file that is imported, and the runs in it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from wavecast import files
from wavecast.benchmarking.records import BenchRecord, BenchRun
from wavecast.errors import InputError

_HEAD: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ImportLabels:
    """What the user says of a file: the label of its run, the device (a name `wavecast.arch` knows)
    of measurements that name none, the commit that was measured."""

    label: str = ""
    device: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Imported:
    """What was in a file. `notes` say what of it was left out."""

    format: str
    runs: tuple[tuple[BenchRun, tuple[BenchRecord, ...]], ...]
    notes: tuple[str, ...] = field(default=())


class ImportedFile:
    """A file, read once. Files packed by gzip or bzip2 are unpacked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.not_json = ""
        """Why a file that begins like JSON is none."""

    @cached_property
    def content(self) -> bytes:
        """All of it. Raises InputError for a file that is missing or damaged."""
        return files.read_packed(self.path)

    @cached_property
    def text(self) -> str:
        """All of it as UTF-8. Raises InputError."""
        try:
            return self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path} is not text: {error.reason}") from None

    @cached_property
    def json(self) -> Any:
        """The JSON value in it, None where it is none (`not_json` says why)."""
        if self.content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
            return None
        try:
            return files.parse_json(self.text)
        except ValueError as error:
            self.not_json = f"it begins like JSON, but {error}"
            return None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, 64 hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a CSV file: its first line that is neither a message of a tool
        (`==PROF== …`) nor a comment; of other files, anything."""
        head = self.content[:_HEAD].decode("utf-8-sig", errors="replace")
        try:
            return tuple(next(files.csv_rows(_lines(head)), ()))
        except ValueError:
            return ()

    def table(self) -> Iterator[dict[str, str]]:
        """The rows of a CSV file by column, "" for cells that are missing."""
        lines = files.csv_rows(_lines(self.text))
        columns = next(lines, [])
        for line in lines:
            if line:
                cells = [*line, *[""] * (len(columns) - len(line))]
                yield dict(zip(columns, cells, strict=False))


def _lines(text: str) -> Iterator[str]:
    """Lines from the first that holds data."""
    started = False
    for line in io.StringIO(text, newline=""):
        if line.startswith("==") or (not started and (line.startswith("#") or not line.strip())):
            continue
        started = True
        yield line


__all__ = ["ImportLabels", "Imported", "ImportedFile"]
