"""TTIR whose 64-bit integers are 32-bit ones."""

from __future__ import annotations

import re

_EXTENDED = re.compile(
    r"^\s*(?P<new>%[\w.]+) = arith\.ext[su]i (?P<old>%[\w.#]+) : \S*i32>? to \S*i64>?.*\n", re.M
)
_HEADER = re.compile(r"tt\.func [^\n]*\{\n")
_WIDE = re.compile(r"(?<![\w.])i64\b|xi64>")
_CONSTANT = re.compile(r"arith\.constant (?:dense<)?(-?\d+)>? : (?:tensor<[\dx]+x)?i64")


def narrow_integers(text: str) -> str | None:
    """The module with every 64-bit integer as a 32-bit one; None where an argument, a constant or
    a memory element is one that does not fit."""
    header = _HEADER.search(text)
    if header is None or "i64" in header[0]:
        return None
    head, body = text[: header.end()], text[header.end() :]
    if any(abs(int(match[1])) >= 2**31 for match in _CONSTANT.finditer(body)):
        return None
    if "ptr<i64>" in text or "bitcast" in body:
        return None
    names = {match["new"]: match["old"] for match in _EXTENDED.finditer(body)}
    body = _EXTENDED.sub("", body)
    body = re.sub(r"%[\w.]+", lambda match: _last(names, match[0]), body)
    return head + _WIDE.sub(lambda match: match[0].replace("i64", "i32"), body)


def _last(names: dict[str, str], name: str) -> str:
    while name in names:
        name = names[name]
    return name


__all__ = ["narrow_integers"]
