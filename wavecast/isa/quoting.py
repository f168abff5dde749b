"""Symbol names in assembly text. LLVM quotes a name with other characters than letters, digits and
`_.$@`, as in `"f<i32, i32>"@rel32@lo+4` (`MCSymbol::print`)."""

from __future__ import annotations

import re

QUOTED = r'"(?:[^"\\\n]|\\.)*"'
"""A quoted name, as a regular expression."""
SYMBOL = rf"(?:{QUOTED}|[^\s,;]+)"
"""A symbol as a directive names it, as a regular expression."""

_PLAIN = re.compile(r"[\w.$@]+", re.ASCII)
_ESCAPE = re.compile(r"\\(.)")
_SPACE = re.compile(rf"({QUOTED})|[ \t]+")
_COMMENT = re.compile(r"\s*(?:;|//).*$")
_QUOTED_OR_COMMENT = re.compile(rf"({QUOTED})|{_COMMENT.pattern}")
_TOKEN = re.compile(rf'{QUOTED}|"|[^"]')


def unquote(symbol: str) -> str:
    """The name of a symbol."""
    if not symbol.startswith('"'):
        return symbol
    return _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], symbol[1:-1])


def quote(name: str) -> str:
    """A name as LLVM prints it: in quotes where it has other characters than plain names."""
    if _PLAIN.fullmatch(name):
        return name
    return '"' + name.replace("\n", "\\n").replace('"', '\\"') + '"'


def single_spaced(text: str) -> str:
    """`text` with one space for each run of blanks outside quotes."""
    if '"' not in text:
        return " ".join(text.split())
    return _SPACE.sub(lambda match: match[1] or " ", text)


def without_comment(text: str) -> str:
    """`text` without a comment behind `;` or `//`."""
    if '"' not in text:
        return _COMMENT.sub("", text)
    return _QUOTED_OR_COMMENT.sub(lambda match: match[1] or "", text)


def split(text: str, separator: str) -> list[str]:
    """The parts of `text` between separators outside quotes and brackets."""
    parts, depth, part = [], 0, ""
    for token in _TOKEN.findall(text):
        if token == separator and depth == 0:
            parts.append(part)
            part = ""
            continue
        depth += (token in "([") - (token in ")]")
        part += token
    return [*parts, part]


__all__ = ["QUOTED", "SYMBOL", "quote", "single_spaced", "split", "unquote", "without_comment"]
