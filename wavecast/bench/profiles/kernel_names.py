"""Which library a kernel is of, and what it computes, by its name."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

OTHER: Final = "other"
_TENSILE: Final = re.compile(r".*?Cijk_.*?_MT\d+x\d+x\d+")
_LENGTH: Final = re.compile(r"(?<!Li)[1-9]\d*(?=[A-Za-z_])")
_MOST_PARTS: Final = 3
"""Identifiers of a mangled name that are shown: more are template arguments of arguments."""


@dataclass(frozen=True, slots=True)
class KernelName:
    """`library` is empty where no rule holds; `category` is `OTHER` then."""

    library: str
    category: str


@cache
def recognise(name: str) -> KernelName:
    """The library and the category of the kernel with this demangled name."""
    for pattern, found in _rules():
        if pattern.search(name):
            return found
    return KernelName("", OTHER)


@cache
def short(name: str) -> str:
    """A name without return type, arguments, template arguments, and Tensile's parameters after
    the tile. Of a mangled name, the parts before its arguments."""
    tensile = _TENSILE.match(name)
    if tensile:
        return tensile[0]
    if name.startswith("_Z"):
        return "::".join(_mangled(name)) or name
    plain, depth = [], 0
    text = name.replace("(anonymous namespace)::", "").removeprefix("void ")
    for character in text:
        if character == "<":
            depth += 1
        elif character == ">":
            depth = max(0, depth - 1)
        elif character == "(" and not depth:
            break
        elif not depth:
            plain.append(character)
    return "".join(plain).strip() or name


def _mangled(name: str) -> list[str]:
    """The first identifiers of a name in the Itanium C++ ABI: each follows its length."""
    found: list[str] = []
    at = 0
    while len(found) < _MOST_PARTS and (length := _LENGTH.search(name, at)):
        end = length.end() + int(length[0])
        part = name[length.end() : end]
        if not part.isidentifier():
            break
        found.append(part)
        at = end
    return found


def categories() -> tuple[str, ...]:
    """What kernels can compute, in the order of the rules."""
    return tuple(dict.fromkeys([*(found.category for _, found in _rules()), OTHER]))


@cache
def _rules() -> tuple[tuple[re.Pattern[str], KernelName], ...]:
    text = Path(__file__).with_name("kernel_names.toml").read_text(encoding="utf-8")
    return tuple(
        (re.compile(rule["pattern"]), KernelName(rule["library"], rule["category"]))
        for rule in tomllib.loads(text)["rule"]
    )


__all__ = ["OTHER", "KernelName", "categories", "recognise", "short"]
