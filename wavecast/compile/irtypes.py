"""Sizes of LLVM IR types under the data layout of AMDGPU."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from wavecast.errors import ParseError

_NAMED = re.compile(r"^(?P<name>%\S+) = type (?P<type>.+)$")
_INTEGER = re.compile(r"i(\d+)$")
_COUNTED = re.compile(r"(\d+) x (.+)$")
_POINTER = re.compile(r"ptr(?: addrspace\((\d+)\))?$")
_FLOATS: Final = {"half": 2, "bfloat": 2, "float": 4, "double": 8}
_NARROW_POINTERS: Final = {"2", "3", "5", "6"}
"""Address spaces with pointers of 32 bits. Source: LLVM, AMDGPU usage, "Address Spaces"."""
_LARGEST_INTEGER: Final = 16
"""Alignment of the largest integers. Vectors are aligned to their size, rounded up."""


class TypeTable:
    """The named types of a module, and the layout of every type made from them."""

    def __init__(self, lines: Iterable[str]) -> None:
        matches = (_NAMED.match(line) for line in lines if line.startswith("%"))
        self._named = {match["name"]: match["type"] for match in matches if match is not None}

    def fields(self, text: str) -> list[tuple[int, int]]:
        """(offset, bytes) of each field of a structure. Raises ParseError for a type that is not
        known."""
        text = self._named.get(text, text)
        packed = text.startswith("<{")
        inner = text[2:-2] if packed else text[1:-1]
        extents, offset = [], 0
        for part in _split(inner):
            size, alignment = self.layout(part)
            if not packed:
                offset = -(-offset // alignment) * alignment
            extents.append((offset, size))
            offset += size
        return extents

    def layout(self, text: str) -> tuple[int, int]:
        """Bytes from one element of an array of a type to the next, and the type's alignment.
        Raises ParseError for a type that is not known."""
        text = self._named.get(text.strip(), text.strip())
        if text in _FLOATS:
            return _FLOATS[text], _FLOATS[text]
        integer = _INTEGER.match(text)
        if integer is not None:
            size, alignment = _power_of_two_ceil(-(-int(integer[1]) // 8))
            return size, min(alignment, _LARGEST_INTEGER)
        pointer = _POINTER.match(text)
        if pointer is not None:
            size = 4 if pointer[1] in _NARROW_POINTERS else 8
            return size, size
        if text.startswith(("{", "<{")):
            return self._structure(text)
        if text.startswith(("[", "<")):
            match = _COUNTED.match(text[1:-1])
            if match is not None:
                size, alignment = self.layout(match[2])
                total = int(match[1]) * size
                return (total, alignment) if text[0] == "[" else _power_of_two_ceil(total)
        raise ParseError(f"LLVM IR type {text!r} is not known")

    def _structure(self, text: str) -> tuple[int, int]:
        fields = self.fields(text)
        end = max((offset + size for offset, size in fields), default=0)
        if text.startswith("<{"):
            return end, 1
        alignment = max((self.layout(part)[1] for part in _split(text[1:-1])), default=1)
        return -(-end // alignment) * alignment, alignment


def _power_of_two_ceil(size: int) -> tuple[int, int]:
    """Both the next power of two."""
    power = 1
    while power < size:
        power *= 2
    return power, power


def _split(text: str) -> list[str]:
    """The parts between commas that are not in brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "[{<(":
            depth += 1
        elif letter in "]}>)":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


__all__ = ["TypeTable"]
