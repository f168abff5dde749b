"""Random damage to texts and binaries. Everything follows from the generator passed in."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[\w.$@]+")
_LABEL = re.compile(r"\.L\w+")
_REGISTER = re.compile(r"\b[vsa](?:\d+|\[\d+:\d+\])")
_STRANGE = (
    "", "0", "-1", "4294967296", "18446744073709551616", "1e999", "nan", "0x", "v", "v256",
    "s[3:1]", "v[0:999999]", "[", "]", "(", ")", "((((((((",
    "|", "-|", '"', "'", "/*", "*/", "//", ";", ":",
    ",", ",,", "\\", "%", "{", "}", "\t", "\r", "\x00", "\x0c", "\u2028", "é", "名", "\ud800",
    ".set", ".text", ".section", ".section x", ".loc", ".loc 99999999999999999999 1 1", ".file",
    "s_endpgm", "s_branch .", "s_branch .L", "s_setpc_b64 s[0:1]", "s_cbranch_scc0 -1", "vcc",
    "exec", "null", "lit(0)", "neg(v0)", "off", "glc sc0 nt", "offset:",
    "offset:99999", "quad_perm:[9]",
)  # fmt: skip
"""Pieces put in the place of others: limits, brackets that do not close, foreign characters."""

Mutation = Callable[[random.Random, list[str]], None]


def text(rng: random.Random, original: str, *, strength: int = 4) -> str:
    """`original` with one to `strength` random changes to its lines."""
    lines = original.split("\n")
    for _ in range(rng.randint(1, strength)):
        if not lines:
            break
        rng.choice(_TEXT)(rng, lines)
    return "\n".join(lines)


def binary(rng: random.Random, original: bytes) -> bytes:
    """`original` cut, overwritten, or with parts moved; its head, where structure is, more."""
    data = bytearray(original)
    for _ in range(rng.randint(1, 5)):
        if not data:
            break
        near = rng.random() < 0.4
        at = rng.randrange(min(len(data), 512) if near else len(data))
        kind = rng.randrange(6)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            value = rng.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, len(data)))
            data[at : at + 4] = value.to_bytes(4, "little")
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            data[at : at + rng.randint(1, 64)] = b""
        else:
            other = rng.randrange(len(data))
            data[at : at + 64], data[other : other + 64] = (
                data[other : other + 64],
                data[at : at + 64],
            )
    return bytes(data)


def _delete(rng: random.Random, lines: list[str]) -> None:
    at = rng.randrange(len(lines))
    del lines[at : at + rng.choice((1, 1, 1, 5, 50))]


def _duplicate(rng: random.Random, lines: list[str]) -> None:
    at, size = rng.randrange(len(lines)), rng.choice((1, 1, 5, 40))
    lines[at:at] = lines[at : at + size]


def _move(rng: random.Random, lines: list[str]) -> None:
    at, size = rng.randrange(len(lines)), rng.choice((1, 3, 20))
    taken = lines[at : at + size]
    del lines[at : at + size]
    to = rng.randrange(len(lines) + 1)
    lines[to:to] = taken


def _swap(rng: random.Random, lines: list[str]) -> None:
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]


def _truncate(rng: random.Random, lines: list[str]) -> None:
    if rng.random() < 0.3:
        del lines[rng.randrange(len(lines)) :]
        return
    at = rng.randrange(len(lines))
    lines[at] = lines[at][: rng.randint(0, len(lines[at]))]


def _replacing(pattern: re.Pattern[str]) -> Mutation:
    """A mutation that replaces one match by another of the text, or by something strange."""

    def mutate(rng: random.Random, lines: list[str]) -> None:
        at = _line_with(rng, lines, pattern)
        found = list(pattern.finditer(lines[at])) if at is not None else []
        if at is None or not found:
            return
        match = rng.choice(found)
        other = _line_with(rng, lines, pattern)
        pieces = pattern.findall(lines[other]) if other is not None else []
        piece = rng.choice(pieces) if pieces and rng.random() < 0.6 else rng.choice(_STRANGE)
        lines[at] = lines[at][: match.start()] + piece + lines[at][match.end() :]

    return mutate


def _line_with(rng: random.Random, lines: Sequence[str], pattern: re.Pattern[str]) -> int | None:
    for _ in range(20):
        at = rng.randrange(len(lines))
        if pattern.search(lines[at]):
            return at
    return None


def _insert(rng: random.Random, lines: list[str]) -> None:
    at = rng.randrange(len(lines))
    column = rng.randint(0, len(lines[at]))
    lines[at] = lines[at][:column] + rng.choice(_STRANGE) + lines[at][column:]


def _character(rng: random.Random, lines: list[str]) -> None:
    at = rng.randrange(len(lines))
    if lines[at]:
        column = rng.randrange(len(lines[at]))
        lines[at] = lines[at][:column] + chr(rng.randrange(1, 0x250)) + lines[at][column + 1 :]


_TEXT: tuple[Mutation, ...] = (
    _delete,
    _duplicate,
    _move,
    _swap,
    _truncate,
    _insert,
    _character,
    *(_replacing(pattern) for pattern in (_NUMBER, _WORD, _LABEL, _REGISTER)),
)
