"""Kernel symbols as a reader knows them: `_ZN3gpu9sumKernelIfEEvPKT_` is `gpu::sumKernel<…>`.

Only the name of Itanium-mangled symbols is read, not parameters or template arguments: reports
need a heading and programs a name to ask for; the symbol itself is printed next to it.
"""

from __future__ import annotations

import re

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
