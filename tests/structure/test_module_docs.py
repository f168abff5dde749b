"""Modules and files that `docs/system.md` and `docs/emulator.md` name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.structure.sources import ROOT

REPOSITORY = ROOT.parent
DOCUMENTS = ("docs/system.md", "docs/emulator.md")

_SECTION = re.compile(r"^\*\*(\w+)\*\* \(", re.MULTILINE)
_FENCED = re.compile(r"```.*?```", re.DOTALL)
_QUOTED = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"\w[\w.]*(?:/[\w.*]+)+/?|\w+/|[\w*]+\.(?:py|tbl|csv|toml|ll|md|json)")
_NAME = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z_]\w*)?")


def named(text: str) -> Iterator[tuple[str, str]]:
    """(folder of the section, "" before the first; path or name in backquotes)."""
    text = _FENCED.sub("", text)
    starts = [(0, ""), *((match.start(), match[1]) for match in _SECTION.finditer(text))]
    for (start, folder), (stop, _) in zip(starts, [*starts[1:], (len(text), "")], strict=True):
        for token in _QUOTED.findall(text[start:stop]):
            if _PATH.fullmatch(token) or _NAME.fullmatch(token):
                yield folder, token


def exists(folder: str, token: str) -> bool:
    """Whether a path is below the section's folder, the package or `calibration`, or from the
    repository's root; whether a name is that of a module, or is written in the code of the folder
    or of `arch`."""
    if _PATH.fullmatch(token):
        bases = (ROOT / folder, ROOT, REPOSITORY / "calibration")
        return (REPOSITORY / token).exists() or any(
            _found(base, token) for base in bases if base.is_dir()
        )
    words = _words(folder) | _words("arch")
    return token.partition(".")[0] in _modules() or set(token.split(".")) <= words


@cache
def _found(base: Path, token: str) -> bool:
    pattern = token.rstrip("/")
    return any(base.glob(pattern)) or any(base.glob(f"{pattern}.py")) or any(base.rglob(pattern))


@cache
def _modules() -> frozenset[str]:
    return frozenset(path.stem for path in (*ROOT.rglob("*.py"), *ROOT.rglob("*/")))


@cache
def _words(folder: str) -> frozenset[str]:
    base = ROOT / folder
    files = base.rglob("*.py") if base.is_dir() else iter([base.with_suffix(".py")])
    return frozenset(word for file in files for word in re.findall(r"\w+", file.read_text()))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_module_that_a_document_names_exists(document: str) -> None:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    missing = {token for folder, token in named(text) if not exists(folder, token)}
    assert not missing


def test_a_missing_module_is_found() -> None:
    text = (
        "`docs/no.md`\n**perfmodel** (5). `cu/`, `cu/never.py`, `roofline`, `no_such_thing`, `Work`"
    )
    found = {token: exists(folder, token) for folder, token in named(text)}
    assert found == {
        "docs/no.md": False,
        "cu/": True,
        "cu/never.py": False,
        "roofline": True,
        "no_such_thing": False,
    }
