"""docs/index.md lists every page of the documentation, and pages that texts name exist."""

from __future__ import annotations

import re

from tests.structure.sources import ROOT

DOCS = ROOT.parent / "docs"
_NAMED = re.compile(r"`(docs/[\w./-]+\.md)`")


def test_the_index_lists_every_page_once() -> None:
    listed = re.findall(r"^([\w/-]+)$", (DOCS / "index.md").read_text("utf-8"), re.M)
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    assert sorted(page for page in listed if "/" not in page) == sorted(pages)


def test_every_page_begins_with_a_sentence() -> None:
    """Code and headings come after what the page is for."""
    first = {
        path.name: path.read_text("utf-8").partition("\n")[2].lstrip("\n")[:4]
        for path in DOCS.glob("*.md")
    }
    assert [name for name, text in first.items() if text.startswith(("`" * 3, "    ", "#"))] == []


def test_pages_that_texts_name_exist() -> None:
    texts = [*DOCS.rglob("*.md"), ROOT.parent / "README.md", ROOT.parent / "CHANGELOG.md"]
    missing = {
        f"{path.name}: {name}"
        for path in texts
        for name in _NAMED.findall(path.read_text("utf-8"))
        if not (ROOT.parent / name).is_file()
    }
    assert not missing
