"""Words that the project does not use, and what to write instead.

An everyday word where the field has a term, a word with several meanings in the project, and turns
of phrase that hide who does what. A pattern has no false positives in ordinary technical English:
`inside` is a good preposition and a bad name for a mask.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.structure.sources import ROOT, files, nodes

REPOSITORY = ROOT.parent


@dataclass(frozen=True)
class Banned:
    """A word and its replacement. `name` matches a whole part of an identifier (`held` in
    `held_rows`), `prose` text of comments, docstrings, messages and documents; "" matches nothing.
    Files below `allowed` may use it."""

    instead: str
    name: str = ""
    prose: str = ""
    allowed: tuple[str, ...] = ()


BANNED: dict[str, Banned] = {
    "standing": Banned("search state", "standing", r"standing"),
    "stand": Banned("be, have, represent", "", r"stands?\b(?! for)"),
    "way": Banned(
        "strategy, variant, associativity (of a cache)",
        "ways?",
        r"(?:two|three|several|both|other|its|the) ways",
        ("wavecast/perfmodel/cache/", "wavecast/arch/"),
    ),
    "gain": Banned("speedup", "gains?", r"gains?"),
    "turn": Banned(
        "pass, iteration, rotation",
        "turns?",
        r"(?<!in )turns?\b(?! (?:on|off|out|into|around|it|them|a|an|the)\b)",
    ),
    "held": Banned("live, resident, cached, stored", "held", r"held(?!-out)"),
    "beside": Banned("next to, and, in addition to", "beside", r"beside"),
    "slope": Banned("grad", "slopes?", r"slopes?"),
    "rest": Banned("one_minus_beta1, remainder, tail", "rest[12]"),
    "inside": Banned("mask", "inside"),
    "place": Banned("offs, index, slot, location", "places?"),
    "eight": Banned("fp8, descale factors", "eight"),
    "front": Banned("reuse, frontier", "front"),
    "spread": Banned("distribute, parallel map, range, scatter", "spread"),
    "is said": Banned("is reported, is printed, is documented", "", r"(?:is|are|was) said"),
    "is meant": Banned("name what it is", "", r"(?:is|are) meant"),
    "of its own": Banned("its own …", "", r"of (?:its|their) own"),
    "is no …": Banned(
        "is not a …",
        "",
        r"(?<!there )(?:is|are) no (?!longer|more|less|different|faster|slower)\w+",
    ),
    "as far as": Banned("where, if, up to", "", r"as far as"),
    "go on": Banned("continue", "", r"(?:goes|went|going|go) on\b"),
    "anew": Banned("again", "", r"anew"),
}


def _bounded(pattern: str) -> str:
    return rf"{pattern}\b" if pattern[-1].isalpha() else pattern


TERMS = ("in_place", "conflict_ways")
"""Terms of the field with a banned word: PyTorch's in-place operations, n-way bank conflicts."""

_GROUPS = {f"w{number}": word for number, word in enumerate(BANNED)}
_ALTERNATIVES = (
    f"(?P<{group}>{_bounded(BANNED[word].prose)})"
    for group, word in _GROUPS.items()
    if BANNED[word].prose
)
_PROSE = re.compile(rf"\b(?:{'|'.join(_ALTERNATIVES)})")
_NAMES = {word: re.compile(banned.name) for word, banned in BANNED.items() if banned.name}
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+[0-9]*|[0-9]+")
_QUOTED = re.compile(r"``?[^`\n]*``?")
_COMMENT = re.compile(r"(?:^\s*|  )# (.*)$", re.MULTILINE)
_FENCED = re.compile(r"```.*?```", re.DOTALL)


@cache
def in_name(identifier: str) -> tuple[str, ...]:
    """The banned words among the parts of an identifier."""
    for term in TERMS:
        identifier = identifier.replace(term, "")
    parts = [part.lower() for part in _PART.findall(identifier)]
    return tuple(
        word for word, pattern in _NAMES.items() for part in parts if pattern.fullmatch(part)
    )


def in_prose(text: str) -> list[str]:
    """The banned words in a text, without what is in backquotes."""
    plain = _QUOTED.sub(" ", text).lower()
    return [_GROUPS[match.lastgroup or ""] for match in _PROSE.finditer(plain)]


def names_and_texts(path: Path) -> tuple[set[str], list[str]]:
    """The identifiers that a Python file defines, and its comments, docstrings and messages."""
    names, texts = {path.stem}, _COMMENT.findall(path.read_text(encoding="utf-8"))
    for node in nodes(path, ast.Constant):
        if isinstance(node.value, str) and " " in node.value:
            texts.append(node.value)
    names |= {one.id for one in nodes(path, ast.Name) if isinstance(one.ctx, ast.Store)}
    names |= {one.attr for one in nodes(path, ast.Attribute) if isinstance(one.ctx, ast.Store)}
    names |= {one.arg for one in nodes(path, ast.arg)}
    names |= {one.name for one in nodes(path, ast.ClassDef)}
    names |= {one.name for one in nodes(path, ast.FunctionDef)}
    names |= {one.name for one in nodes(path, ast.AsyncFunctionDef)}
    return names, texts


def used(path: Path, repository: Path = REPOSITORY) -> Counter[str]:
    """How often a file uses each banned word."""
    if path.suffix == ".md":
        found = in_prose(_FENCED.sub(" ", path.read_text(encoding="utf-8")))
    else:
        names, texts = names_and_texts(path)
        found = [word for name in names for word in in_name(name)]
        found += in_prose("\n".join(texts))
    name = path.relative_to(repository).as_posix()
    return Counter(word for word in found if not name.startswith(BANNED[word].allowed or ("\0",)))


def package(path: Path, repository: Path = REPOSITORY) -> str:
    """What a file is counted under: a package of wavecast, or `docs`."""
    parts = path.relative_to(repository).parts
    if parts[0] == "wavecast":
        return f"wavecast/{parts[1]}"
    return "docs/decisions" if "decisions" in parts else "docs"


def documents(repository: Path = REPOSITORY) -> list[Path]:
    """The documents of the repository."""
    return sorted([*repository.glob("*.md"), *(repository / "docs").rglob("*.md")])


def counted(repository: Path = REPOSITORY) -> dict[str, int]:
    """`package: banned word` -> how often it is used."""
    found: Counter[str] = Counter()
    for path in [*files(repository / "wavecast"), *documents(repository)]:
        where = package(path, repository)
        found.update({f"{where}: {word}": count for word, count in used(path, repository).items()})
    return dict(found)


VAGUE = frozenset(
    [
        "found",
        "one",
        "known",
        "given",
        "own",
        "made",
        "taken",
        "asked",
        "named",
        "chosen",
        "wanted",
        "kept",
        "seen",
        "moved",
        "told",
        "said",
        "touched",
        "drawn",
        "tried",
        "gone",
        "spent",
        "noted",
        "used",
        "needed",
        "done",
        "ended",
        "reached",
        "passed",
        "listed",
        "added",
    ]
)
"""Participles and pronouns that say nothing about what a variable holds."""
MOST_VAGUE = 0.005
"""The share of stores and parameters that may have such a name."""


def vague_share(root: Path = ROOT) -> float:
    """The share of variables, by stores and parameters, whose name is one of `VAGUE`."""
    names = [
        *(name.id for path in files(root) for name in nodes(path, ast.Name) if _is_stored(name)),
        *(parameter.arg for path in files(root) for parameter in nodes(path, ast.arg)),
    ]
    return sum(name.strip("_") in VAGUE for name in names) / len(names)


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)
