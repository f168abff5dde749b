"""`.file` and `.loc` directives: from an assembly text to source locations with inlining."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wavecast.isa.instruction import SourceLocation

_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?")
_POSITION = re.compile(r"([^\s@\[\]:][^@\[\]]*?|):(\d+)(?::(\d+))?")


class SourceTable:
    """File numbers of one assembly text, and the location of each `.loc` line. Files of `moved`
    have the path it maps to. `text_file` is the text's file where its lines are the locations."""

    def __init__(self, path_map: Mapping[str, str], text_file: str = "") -> None:
        self.text_file = text_file
        self._moved = path_map
        self._files: dict[int, str] = {}
        self._by_name: dict[str, str] = {}
        self._locations: dict[str, SourceLocation | None] = {}

    def file(self, line: str) -> None:
        """Read a `.file` directive that numbers a file; others are ignored."""
        match = _FILE.search(line)
        if match is None:
            return
        number, first, second = match.groups()
        path = f"{first}/{second}" if second and not second.startswith("/") else second or first
        whole, path = path, self._moved.get(path, path)
        self._by_name.setdefault(whole, path)
        self._files[int(number)] = path
        self._by_name.setdefault((second or first).rsplit("/", 1)[-1], path)
        self._by_name.setdefault(second or first, path)

    def location(self, line: str) -> SourceLocation | None:
        """The location of a `.loc` directive; None for line 0, which stands for no source line.

        LLVM keeps the inlining chain only in the comment: `; a.py:4:8 @[ b.py:5:1 ]`.
        """
        if line not in self._locations:
            self._locations[line] = self._parse(line)
        return self._locations[line]

    def _parse(self, line: str) -> SourceLocation | None:
        match = _LOC.search(line)
        if match is None or match[2] == "0":
            return None
        number, row, column = int(match[1]), int(match[2]), int(match[3] or 0)
        file = self._files.get(number, f"<file {number}>")
        inlined_at = None
        comment = line.partition(";")[2]
        if "@[" in comment:
            for text in reversed(comment.split("@[")[1:]):
                inlined_at = self._position(text, inlined_at)
        return SourceLocation(file, row, column, inlined_at)

    def _position(self, text: str, inlined_at: SourceLocation | None) -> SourceLocation | None:
        match = _POSITION.search(text.strip())
        if match is None or match[2] == "0":
            return inlined_at
        name = match[1].strip()
        file = self._by_name.get(name) or self._by_name.get(name.rsplit("/", 1)[-1]) or name
        return SourceLocation(file, int(match[2]), int(match[3] or 0), inlined_at)
