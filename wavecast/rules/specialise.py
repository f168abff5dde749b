"""TTIR with facts about arguments that the launch did not give: multiples of 16."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

DIVISOR = 16
"""The multiple that Triton specialises integers and addresses (in bytes) on."""
_ATTRIBUTE = f"tt.divisibility = {DIVISOR} : i32"


def declare_divisible(text: str, names: Iterable[str]) -> str:
    """The module with arguments declared as multiples of `DIVISOR`."""
    for name in names:
        declared = re.compile(
            rf"(?P<head>%{re.escape(name)}: !?[\w.]+(?:<[^{{}}]*?>)?)(?: \{{(?P<known>[^}}]*)\}})?"
            rf"(?= loc\(|,|\))"
        )
        text = declared.sub(_declare_divisibility, text, count=1)
    return text


def _declare_divisibility(match: re.Match[str]) -> str:
    known_attributes = match["known"] or ""
    if "tt.divisibility" in known_attributes:
        return match[0]
    attributes = ", ".join(part for part in (_ATTRIBUTE, known_attributes) if part)
    return f"{match['head']} {{{attributes}}}"


def with_constants(text: str, values: Mapping[str, int]) -> str:
    """The module with integer arguments replaced by constants in the function's body."""
    for name, value in values.items():
        header = re.search(rf"%{re.escape(name)}: (i\d+)[^\n]*\{{\n", text)
        if header is None:
            continue
        constant = f"%wavecast_{name}"
        body = re.sub(rf"%{re.escape(name)}(?![\w.#])", constant, text[header.end() :])
        definition = f"    {constant} = arith.constant {value} : {header[1]}\n"
        text = text[: header.end()] + definition + body
    return text


def multiple(value: int, of: int) -> int:
    """The next multiple from `value` on."""
    return -(-value // of) * of


__all__ = ["DIVISOR", "declare_divisible", "multiple", "with_constants"]
