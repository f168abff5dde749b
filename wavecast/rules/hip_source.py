"""Changes of HIP source that a rule can make by itself: dimensions of shared arrays."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wavecast.compile.codeobject import CodeObject

_SHARED = re.compile(
    r"__shared__\s+(?:__align__\s*\([^)]*\)\s*|alignas\s*\([^)]*\)\s*)?"
    r"(?P<type>(?:unsigned\s+|signed\s+|const\s+)?[\w:]+(?:<[^;{}]*>)?)\s+(?P<names>[^;]*);"
)
_ARRAY = re.compile(r"(?P<name>\w+)\s*(?P<sizes>(?:\[[^\[\]]*\]\s*)+)")
_DIMENSION = re.compile(r"\[([^\[\]]*)\]")
_INDEXED = re.compile(r"\b([A-Za-z_]\w*)\s*\[")


@dataclass(frozen=True, slots=True)
class SharedArray:
    """An array in `__shared__` memory as its source declares it: `start` and `end` enclose the
    text of its last dimension in the file."""

    name: str
    type: str
    rank: int
    start: int
    end: int


def shared_arrays(text: str) -> list[SharedArray]:
    """The arrays of a file in order; those of one dimension have `rank` 1."""
    arrays = []
    for declaration in _SHARED.finditer(text):
        offset = declaration.start("names")
        for array in _ARRAY.finditer(declaration["names"]):
            sizes = list(_DIMENSION.finditer(array["sizes"]))
            at = offset + array.start("sizes")
            arrays.append(
                SharedArray(
                    array["name"],
                    " ".join(declaration["type"].split()),
                    len(sizes),
                    at + sizes[-1].start(1),
                    at + sizes[-1].end(1),
                )
            )
    return arrays


def arrays_at(code: CodeObject, line: int) -> list[SharedArray]:
    """The shared arrays that a line of the source indexes."""
    if code.origin != "hip" or not code.source_text:
        return []
    lines = code.source_text.splitlines()
    if not 1 <= line <= len(lines):
        return []
    names = set(_INDEXED.findall(lines[line - 1]))
    return [array for array in shared_arrays(code.source_text) if array.name in names]


def pad_rows(text: str, array: SharedArray, elements: int) -> str:
    """The source with more elements in each row of an array."""
    size = text[array.start : array.end]
    return f"{text[: array.start]}{size} + {elements}{text[array.end :]}"


def body_of(text: str, line: int) -> tuple[int, int] | None:
    """Start and end of the body of the function that begins at a line, braces included."""
    lines = text.splitlines(keepends=True)
    if not 1 <= line <= len(lines):
        return None
    start = text.find("{", sum(map(len, lines[: line - 1])))
    depth = 0
    for position in range(max(0, start), len(text)):
        depth += (text[position] == "{") - (text[position] == "}")
        if start >= 0 and not depth:
            return start, position + 1
    return None


__all__ = ["SharedArray", "arrays_at", "body_of", "pad_rows", "shared_arrays"]
