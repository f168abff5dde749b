"""The name of a public class is unique in the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.structure import remaining
from tests.structure.sources import ROOT, files, nodes


def repeated_names(root: Path) -> dict[str, list[str]]:
    """Name -> files of every public class whose name is not unique."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in files(root):
        for node in nodes(path, ast.ClassDef):
            if not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(root)))
    return {name: where for name, where in sorted(found.items()) if len(where) > 1}


def test_class_names_are_unique() -> None:
    """A name that fails here needs another one."""
    found = {name: len(where) for name, where in repeated_names(ROOT).items()}
    remaining.check("classes of one name", found)


def test_a_repeated_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Entry: ...\nclass _Own: ...\n")
    (tmp_path / "b.py").write_text("if True:\n    class Entry: ...\nclass _Own: ...\n")
    assert repeated_names(tmp_path) == {"Entry": ["a.py", "b.py"]}
