"""Which library a kernel is of, and what it computes, by its name."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

OTHER: Final = "other"


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
    """A name without return type, arguments and template arguments."""
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


@cache
def _rules() -> tuple[tuple[re.Pattern[str], KernelName], ...]:
    text = Path(__file__).with_name("kernel_names.toml").read_text(encoding="utf-8")
    return tuple(
        (re.compile(rule["pattern"]), KernelName(rule["library"], rule["category"]))
        for rule in tomllib.loads(text)["rule"]
    )


__all__ = ["OTHER", "KernelName", "recognise", "short"]
