"""Symbols of assembly text that are other names of a function.

LLVM gives a function that no other library can replace (`dso_local`) a second label,
`.Lname$local`, with another `.type`; an alias of LLVM IR is `.set alias, name`. Both are the
function. Source: LLVM, `AsmPrinter::emitFunctionEntryLabel`, `AsmPrinter::emitGlobalAlias`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from wavecast.isa.quoting import QUOTED, SYMBOL, quote, unquote

_TYPE = re.compile(rf"^\s*\.type\s+({SYMBOL})\s*,\s*[@%]function", re.MULTILINE)
_KERNEL = re.compile(rf"^\s*\.amdhsa_kernel\s+({SYMBOL})", re.MULTILINE)
_LABEL = re.compile(rf"^\s*({QUOTED}|[A-Za-z_.$][\w.$@]*):")
_BETWEEN = re.compile(r"\s*(?:$|;|//|#|\.(?:type|globa?l|weak|hidden|protected|local|p2align)\b)")
"""What may be between two labels of a function."""
_SET = re.compile(
    rf"^[ \t]*(?:\.(?:set|equ)\s+({SYMBOL})\s*,|({SYMBOL})\s*=)\s*({SYMBOL})[ \t]*(?:[;#/].*)?$",
    re.MULTILINE,
)
_WORD = re.compile(rf"{QUOTED}|[A-Za-z_.$][\w.$]*")


def function_names(text: str) -> frozenset[str]:
    """The symbols that a text says are functions or kernels."""
    return frozenset(unquote(name) for name in (*_TYPE.findall(text), *_KERNEL.findall(text)))


def without_aliases(text: str) -> str:
    """`text` with one name for each function; its lines keep their numbers."""
    if text.count(".type") < 2:
        return text
    return _without_aliases(text)


@lru_cache(maxsize=4)
def _without_aliases(text: str) -> str:
    names = function_names(text)
    second = {**_labels_in_a_row(text, names), **_assigned(text, names)}
    if not second:
        return text
    name_of = {alias: _last(second, alias) for alias in second}
    lines = text.split("\n")
    return "\n".join(_renamed(line, name_of) for line in lines)


def _labels_in_a_row(text: str, names: frozenset[str]) -> dict[str, str]:
    """Second labels of the place where a function begins -> its name: the kernel's, else the
    first that is not local to the file, else the first."""
    kernels = {unquote(name) for name in _KERNEL.findall(text)}
    return {
        other: name
        for row in _rows(text, names)
        if (name := min(row, key=lambda name: (name not in kernels, name.startswith(".L"))))
        for other in row
        if other != name
    }


def _rows(text: str, names: frozenset[str]) -> Iterator[list[str]]:
    row: list[str] = []
    for line in text.split("\n"):
        label = _LABEL.match(line) if ":" in line else None
        name = unquote(label[1]) if label is not None else ""
        rest = line[label.end() :] if label is not None else line
        if name in names:
            row.append(name)
        if row and (name.startswith(".Lfunc_end") or not _BETWEEN.match(rest)):
            if len(row) > 1:
                yield row
            row = []
    if len(row) > 1:
        yield row


def _assigned(text: str, names: frozenset[str]) -> dict[str, str]:
    """Symbols that a directive sets to a function -> its name."""
    pairs = ((unquote(item[1] or item[2]), unquote(item[3])) for item in _SET.finditer(text))
    return {alias: name for alias, name in pairs if name in names and alias != name}


def _last(second: Mapping[str, str], name: str) -> str:
    """The name at the end of a chain of aliases. Directives may set symbols in a circle."""
    seen = {name}
    while name in second and second[name] not in seen:
        name = second[name]
        seen.add(name)
    return name


def _renamed(line: str, name_of: Mapping[str, str]) -> str:
    """A line without labels and types of aliases, and with functions' names for them elsewhere."""
    label = _LABEL.match(line) if ":" in line else None
    if label is not None and unquote(label[1]) in name_of:
        line = line[label.end() :]
    if (typed := _TYPE.match(line) or _SET.match(line)) is not None:
        alias = unquote(typed[1] or typed[2])
        return "" if alias in name_of else line

    def name(match: re.Match[str]) -> str:
        function = name_of.get(unquote(match[0]))
        return match[0] if function is None else quote(function)

    return _WORD.sub(name, line)


__all__ = ["function_names", "without_aliases"]
