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


def test_pages_that_texts_name_exist() -> None:
    texts = [*DOCS.rglob("*.md"), ROOT.parent / "README.md", ROOT.parent / "CHANGELOG.md"]
    missing = {
        f"{path.name}: {name}"
        for path in texts
        for name in _NAMED.findall(path.read_text("utf-8"))
        if not (ROOT.parent / name).is_file()
    }
    assert not missing
