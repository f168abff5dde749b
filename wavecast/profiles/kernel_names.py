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
_ANONYMOUS: Final = "(anonymous namespace)::"
_GENERIC: Final = re.compile(
    r"at::native::(\w*elementwise_kernel\w*|reduce_kernel|multi_tensor_apply_kernel)$"
)
_FUNCTOR: Final = re.compile(r"\b([A-Za-z_]\w*)(?=[<(,>)]|::operator)")
_WRAPPERS: Final = re.compile(
    r"gpu_kernel_impl(_nocast)?|opmath_\w+|[AB]?(Unary|Binary)Functor|ReduceOp|func_wrapper_t"
    r"|\w*Metadata|TensorIterator(Base)?|OpaqueType|[Aa]rray|std|c10|at|lambda|operator|const"
    r"|float|double|bool|int|long|char|short|unsigned|void|signed|BFloat16|Half|complex|Float8\w+"
)
"""Names in the template arguments of PyTorch's kernels that do not say what they compute."""
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
    for pattern, kernel_name in _rules():
        if pattern.search(name):
            return kernel_name
    return KernelName("", OTHER)


@cache
def short(name: str) -> str:
    """A name without return type, arguments, template arguments, and Tensile's parameters after
    the tile. Of a mangled name, the parts before its arguments."""
    tensile = _TENSILE.match(name)
    if tensile:
        return tensile[0]
    if name.startswith("_Z"):
        return "::".join(_mangled_identifiers(name)) or name
    plain, depth = [], 0
    text = name.replace(_ANONYMOUS, "").removeprefix("void ")
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
def functor(name: str) -> str:
    """What one of PyTorch's generic kernels computes (`MulFunctor`), by its template arguments;
    empty for other kernels."""
    text = name.replace(_ANONYMOUS, "")
    start = text.find("<")
    if start < 0 or not _GENERIC.search(text[:start]):
        return ""
    for match in _FUNCTOR.finditer(text, start, _closing(text, start)):
        if not _WRAPPERS.fullmatch(match[1]):
            return match[1]
    return ""


def _closing(name: str, start: int) -> int:
    """Where the template arguments that begin at `start` end."""
    depth = 0
    for at in range(start, len(name)):
        depth += (name[at] == "<") - (name[at] == ">" and name[at - 1] != "-")
        if not depth:
            return at + 1
    return len(name)


@cache
def display_name(name: str) -> str:
    """The short name, with the functor where kernels differ in it alone."""
    functor_name = functor(name)
    return f"{short(name)}<{functor_name}>" if functor_name else short(name)


def _mangled_identifiers(name: str) -> list[str]:
    """The first identifiers of a name in the Itanium C++ ABI: each follows its length."""
    parts: list[str] = []
    at = 0
    while len(parts) < _MOST_PARTS and (length := _LENGTH.search(name, at)):
        end = length.end() + int(length[0])
        part = name[length.end() : end]
        if not part.isidentifier():
            break
        parts.append(part)
        at = end
    return parts


def categories() -> tuple[str, ...]:
    """What kernels can compute, in the order of the rules."""
    return tuple(dict.fromkeys([*(kernel_name.category for _, kernel_name in _rules()), OTHER]))


@cache
def _rules() -> tuple[tuple[re.Pattern[str], KernelName], ...]:
    text = Path(__file__).with_name("kernel_names.toml").read_text(encoding="utf-8")
    return tuple(
        (re.compile(rule["pattern"]), KernelName(rule["library"], rule["category"]))
        for rule in tomllib.loads(text)["rule"]
    )


__all__ = ["OTHER", "KernelName", "categories", "display_name", "functor", "recognise", "short"]
