"""A function of LLVM IR as text: its definitions, and its accesses by their source location.

Machine code and IR of one compilation have the same source locations, which is how an access of one
is found in the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from wavecast.isa.instruction import SourceLocation
from wavecast.isa.opcode import MemoryKind

_DEFINE = re.compile(r'^define .*@("?)(?P<name>[^"(]+)\1\(')
_DEFINITION = re.compile(r"^\s+(?P<result>%\S+) = (?P<what>.*)$")
_DEBUG = re.compile(r", !dbg !(\d+)")
_LOCATION = re.compile(
    r"^!(?P<number>\d+) = (?:distinct )?!DILocation\(line: (?P<line>\d+)"
    r"(?:, column: (?P<column>\d+))?, scope: !(?P<scope>\d+)(?:, inlinedAt: !(?P<at>\d+))?"
)
_SCOPE = re.compile(
    r"^!(?P<number>\d+) = (?:distinct )?!DI(?:Subprogram|LexicalBlock\w*)\(.*?"
    r"\bfile: !(?P<file>\d+)"
)
_FILE = re.compile(r'^!(?P<number>\d+) = !DIFile\(filename: "(?P<name>[^"]*)"')
_ATOMIC = ("atomicrmw ", "cmpxchg ")

Position = tuple[tuple[str, int, int], ...]
"""A source location: name of the file, line and column, then those of each call it is inlined at.
"""


@lru_cache(maxsize=4)
def module_lines(text: str) -> tuple[str, ...]:
    """The lines of a module. Each of its kernels reads them."""
    return tuple(text.split("\n"))


class IrFunction:
    """One function of a module, given as lines. `definitions`: result -> instruction."""

    def __init__(self, lines: Iterable[str], name: str) -> None:
        lines = tuple(lines)
        self._positions = positions(lines)
        self._body = tuple(t for t in labelled_body(lines, name) if t.startswith(" "))
        matches = (_DEFINITION.match(line) for line in self._body)
        self.definitions = {m["result"]: m["what"] for m in matches if m is not None}

    def located_instructions(self) -> Iterator[tuple[str, Position]]:
        """The instructions (without their result) that have a source location, with it."""
        for line in self._body:
            debug = _DEBUG.search(line)
            position = self._positions.get(int(debug[1])) if debug is not None else None
            if position is not None:
                definition = _DEFINITION.match(line)
                yield definition["what"] if definition is not None else line.strip(), position


def lines_of(lines: Sequence[str]) -> list[tuple[str, int] | None]:
    """The source of each line of a module: name of the file and line, of inlined code those of the
    outermost call; None where it has no location."""
    located = positions(tuple(lines))
    sources: list[tuple[str, int] | None] = []
    for line in lines:
        debug = _DEBUG.search(line)
        position = located.get(int(debug[1])) if debug is not None else None
        sources.append(position[-1][:2] if position else None)
    return sources


def kinds_of(what: str) -> tuple[MemoryKind, ...]:
    """What an instruction of the IR may become: one kind of access, or any for a call."""
    words = what.removeprefix("tail ").removeprefix("musttail ")
    if words.startswith("load "):
        return (MemoryKind.LOAD,)
    if words.startswith("store "):
        return (MemoryKind.STORE,)
    if words.startswith(_ATOMIC):
        return (MemoryKind.ATOMIC,)
    return (MemoryKind.LOAD, MemoryKind.STORE, MemoryKind.ATOMIC)


def labelled_body(lines: Iterable[str], name: str) -> Iterator[str]:
    """The lines of a function: labels, and instructions, which are indented."""
    started = False
    for line in lines:
        if started:
            if line == "}":
                return
            yield line
        elif line.startswith("define "):
            match = _DEFINE.match(line)
            started = match is not None and match["name"] == name


@lru_cache(maxsize=4)
def positions(lines: tuple[str, ...]) -> Mapping[int, Position]:
    """The locations of a module's metadata, by number."""
    files: dict[int, str] = {}
    scopes: dict[int, int] = {}
    locations: dict[int, re.Match[str]] = {}
    for line in lines:
        if not line.startswith("!"):
            continue
        if (file := _FILE.match(line)) is not None:
            files[int(file["number"])] = file["name"].rsplit("/", 1)[-1]
        elif (scope := _SCOPE.match(line)) is not None:
            scopes[int(scope["number"])] = int(scope["file"])
        elif (location := _LOCATION.match(line)) is not None:
            locations[int(location["number"])] = location
    by_number: dict[int, Position] = {}
    for number in locations:
        chain: list[tuple[str, int, int]] = []
        at: int | None = number
        while at is not None:
            part = locations[at]
            name = files.get(scopes.get(int(part["scope"]), -1), "")
            chain.append((name, int(part["line"]), int(part["column"] or 0)))
            at = int(part["at"]) if part["at"] else None
        by_number[number] = tuple(chain)
    return by_number


def position_of(location: SourceLocation) -> Position:
    """The position of a location that the machine code states."""
    chain: list[tuple[str, int, int]] = []
    at: SourceLocation | None = location
    while at is not None:
        chain.append((at.file.rsplit("/", 1)[-1], at.line, at.column))
        at = at.inlined_at
    return tuple(chain)


def without_columns(position: Position) -> Position:
    """The lines of a position."""
    return tuple((name, line, 0) for name, line, _ in position)


__all__ = [
    "IrFunction",
    "Position",
    "kinds_of",
    "labelled_body",
    "lines_of",
    "module_lines",
    "position_of",
    "positions",
    "without_columns",
]
