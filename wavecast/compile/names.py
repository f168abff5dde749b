"""Kernel symbols as a reader knows them: `_ZN3gpu9sumKernelIfEEvPKT_` is `gpu::sumKernel<…>`.

Only the name of Itanium-mangled symbols is read, not parameters or template arguments: reports
need a heading and programs a name to ask for; the symbol itself is printed next to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_PART = re.compile(r"(\d+)")


def readable(symbol: str) -> str:
    """The qualified name in a mangled symbol; any other symbol as it is."""
    if not symbol.startswith("_Z"):
        return symbol
    nested = symbol.startswith("_ZN")
    rest = symbol[3:] if nested else symbol[2:]
    parts: list[str] = []
    while match := _PART.match(rest):
        length = int(match[1])
        name = rest[match.end() : match.end() + length]
        if len(name) < length:
            return symbol
        parts.append("(anonymous)" if name.startswith("_GLOBAL__N") else name)
        rest = rest[match.end() + length :]
        if not nested:
            break
    if not parts:
        return symbol
    return "::".join(parts) + ("<…>" if rest.startswith("I") else "")


def distinct_names(symbols: Iterable[str]) -> dict[str, str]:
    """The readable names of symbols; those of instances of one template with the part of the symbol
    in which they differ: `scale<…IfEv…>`."""
    different = [*dict.fromkeys(symbols)]
    groups: dict[str, list[str]] = {}
    for symbol in different:
        groups.setdefault(readable(symbol), []).append(symbol)
    names = {}
    for name, group in groups.items():
        start = _common(group)
        stop = _common([symbol[start:][::-1] for symbol in group])
        for symbol in group:
            part = symbol[start : len(symbol) - stop]
            names[symbol] = name if len(group) == 1 else f"{name.removesuffix('<…>')}<…{part}…>"
    return {symbol: names[symbol] for symbol in different}


def _common(texts: Sequence[str]) -> int:
    """How many characters all texts begin with."""
    pairs = zip(min(texts), max(texts), strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), len(min(texts)))
