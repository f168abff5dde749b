"""Kernel signatures as the HIP or CUDA source writes them: compiled code keeps no names.

A small reader of declarations, not of C++: what it cannot match to the compiled kernel (by name
and number of parameters) stays unnamed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from wavecast.compile.codeobject import CodeObject, Parameter

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_GLOBAL = re.compile(r"\b__global__\b|\b__attribute__\s*\(\(\s*global\s*\)\)")
_NAME_BEFORE_PARENTHESIS = re.compile(r"(\w+)\s*\(")
_ATTRIBUTE = re.compile(r"\b(?:__launch_bounds__|__attribute__|__declspec)\s*\(")
_PARAMETER = re.compile(
    r"^(?P<type>.*?[\s*&>])\s*(?P<name>\w+)\s*(?P<array>(?:\[[^\]]*\])*)$", re.S
)
_QUALIFIERS = re.compile(r"\b(?:__restrict__|__restrict|restrict|volatile|const)\b")

_LONGEST_HEAD = 4000
"""Characters a declaration is looked for in, after `__global__`."""


@dataclass(frozen=True, slots=True)
class SourceSignature:
    """One `__global__` function: name, (type, name) of each parameter, and its line (1-based)."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    line: int

    def matches(self, symbol: str, parameters: Sequence[Parameter]) -> bool:
        """True when `symbol`, plain or mangled, can be this function with these parameters."""
        if len(parameters) != len(self.parameters):
            return False
        mangled = symbol.startswith("_Z") and f"{len(self.name)}{self.name}" in symbol
        return symbol == self.name or mangled


@lru_cache(maxsize=8)
def signatures(text: str) -> Mapping[str, SourceSignature]:
    """Every `__global__` function of a source text, by name; the first of several with bodies."""
    plain = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    by_name: dict[str, SourceSignature] = {}
    for match in _GLOBAL.finditer(plain):
        signature = _read(plain, match.end())
        if signature is not None:
            by_name.setdefault(signature.name, signature)
    return by_name


def named_parameters(code: CodeObject, by_name: Mapping[str, SourceSignature]) -> CodeObject:
    """The code object with parameter names and types where the source shows them."""
    signature = next((s for s in by_name.values() if s.matches(code.kernel, code.parameters)), None)
    if signature is None:
        return code
    parameters = tuple(
        replace(parameter, name=name, type=kind)
        for parameter, (kind, name) in zip(code.parameters, signature.parameters, strict=True)
    )
    return replace(code, parameters=parameters, source_line=signature.line)


def _read(plain: str, start: int) -> SourceSignature | None:
    head = _without_attributes(plain[start : start + _LONGEST_HEAD])
    match = _NAME_BEFORE_PARENTHESIS.search(head)
    if match is None:
        return None
    close = _closing(head, match.end())
    if close < 0:
        return None
    parameters = []
    for part in _split(head[match.end() : close]):
        declared = _PARAMETER.match(part.split("=", 1)[0].strip())
        if declared is None:
            return None
        parameters.append((_type(declared["type"] + declared["array"]), declared["name"]))
    line = plain.count("\n", 0, start + match.start()) + 1
    return SourceSignature(match[1], tuple(parameters), line)


def _without_attributes(text: str) -> str:
    """The text with every attribute and its arguments blanked out."""
    match = _ATTRIBUTE.search(text)
    while match is not None:
        close = _closing(text, match.end())
        stop = close + 1 if close >= 0 else len(text)
        text = text[: match.start()] + " " * (stop - match.start()) + text[stop:]
        match = _ATTRIBUTE.search(text, stop)
    return text


def _closing(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return -1


def _split(text: str) -> list[str]:
    """The parts between commas outside brackets."""
    parts, depth, start = [], 0, 0
    for position, sign in enumerate(text):
        if sign in "(<[{":
            depth += 1
        elif sign in ")>]}":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part for part in parts if part.strip() and part.strip() != "void"]


def _type(text: str) -> str:
    """The type in one spelling, without qualifiers: `float*`, `int`."""
    words = " ".join(_QUALIFIERS.sub(" ", text).split())
    return re.sub(r"\s*([*&])\s*", r"\1", words)
