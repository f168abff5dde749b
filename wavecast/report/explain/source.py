"""The text of source lines: the kernel's own from its code object, others from disk."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from wavecast.report.kit.terminal import safe

if TYPE_CHECKING:
    from wavecast.compile.codeobject import CodeObject

_SOURCE_SUFFIXES = frozenset(
    {".py", ".hip", ".cu", ".cuh", ".cl", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".s", ".S"}
)
"""Kinds of file read from disk. A code object may name any path, so nothing else is opened."""


def kernel_lines(code: CodeObject) -> dict[int, str]:
    """The source the compiler kept, by line number; {} when it kept none.

    Triton keeps the function, from `source_line` on; the other compilers the whole file.
    """
    if not code.source_text:
        return {}
    first = max(code.source_line, 1) if code.origin == "triton" else 1
    return dict(enumerate(code.source_text.splitlines(), first))


@lru_cache(maxsize=64)
def _file_lines(file: str) -> tuple[str, ...]:
    path = Path(file)
    if path.suffix not in _SOURCE_SUFFIXES:
        return ()
    try:
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()


def same_file(path: str, other: str) -> bool:
    """Whether two recorded paths mean one file; a compiler may keep only the name of one."""
    if path == other:
        return True
    first, second = Path(path), Path(other)
    if first.is_absolute() and second.is_absolute():
        return False
    return bool(path) and bool(other) and first.name == second.name


def line_text(code: CodeObject, file: str, line: int) -> str:
    """The text of a source line, "" when it cannot be had."""
    if same_file(file, code.source):
        lines = kernel_lines(code)
        if line in lines:
            return lines[line]
        file = code.source
    return file_line(file, line)


def file_line(file: str, line: int) -> str:
    """A line of a source file on disk, "" when it cannot be had."""
    lines = _file_lines(file)
    return lines[line - 1] if 0 < line <= len(lines) else ""


def numbered(file: str | None, line: int | None) -> str:
    """A line with its number, as a cell of a table; "no source line" for what has none."""
    if file is None or line is None:
        return "no source line"
    return safe(f"{line:>4}  {file_line(file, line).strip()}")


def model_lines(locations: Iterable[str]) -> list[str]:
    """Lines (`path:line`) of a compiled model with their text: `net.py:9  h = self.norm(x)`."""
    lines = []
    for where in locations:
        file, _, line = where.rpartition(":")
        text = file_line(file, int(line)).strip()
        lines.append(f"{Path(file).name}:{line}  {text}".rstrip())
    return lines
