"""Files that must be whole are written by `files.atomic`: nobody else renames one into place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.structure.sources import ROOT, files, nodes

FOLDERS = {"runtimes/hip_host/library.py"}
"""What renames a folder that it has filled."""


def renames(path: Path) -> list[int]:
    """Lines that rename a file: `os.replace`, `os.rename`, and the methods of `Path`."""
    found = []
    for call in nodes(path, ast.Call):
        if not isinstance(call.func, ast.Attribute):
            continue
        owner = call.func.value
        module = owner.id if isinstance(owner, ast.Name) else ""
        method = call.func.attr
        if method == "rename" or (
            method == "replace" and (module == "os" or (len(call.args) == 1 and not call.keywords))
        ):
            found.append(call.lineno)
    return found


def test_only_files_renames_a_file() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in files() if renames(path)}
    assert found == {"files.py", *FOLDERS}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("os.replace(temporary, path)", [1]),
        ("partial.replace(path)", [1]),
        ("temporary.rename(path)", [1]),
        ("text.replace('a', 'b')", []),
        ("replace(self, text=text)", []),
        ("dataclasses.replace(self, text=text)", []),
    ],
)
def test_a_planted_rename_is_found(text: str, lines: list[int], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"{text}\n")
    assert renames(tmp_path / "a.py") == lines
