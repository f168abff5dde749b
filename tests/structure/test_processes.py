"""Only `wavecast.processes` forks or starts Python processes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.structure.sources import ROOT, files, nodes

ONLY = ROOT / "processes.py"
CALLS = {"fork", "forkpty", "posix_spawn", "get_context", "Process", "ProcessPoolExecutor"}


def made(path: Path) -> list[str]:
    """The places where a file makes processes, as messages."""
    found = []
    for node in nodes(path, ast.Attribute):
        of = node.value.id if isinstance(node.value, ast.Name) else ""
        if node.attr in CALLS and of in ("os", "multiprocessing"):
            found.append(f"{path}:{node.lineno}: {of}.{node.attr}")
    for node in nodes(path, ast.ImportFrom):
        if node.module != "wavecast.processes":
            names = sorted({alias.name for alias in node.names} & CALLS)
            found += [f"{path}:{node.lineno}: imports {name}" for name in names]
    return found


def test_one_module_makes_processes() -> None:
    assert [message for path in files() if path != ONLY for message in made(path)] == []


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.fork()",
        "from multiprocessing import Process",
        "multiprocessing.get_context()",
    ],
)
def test_a_process_made_elsewhere_is_found(text: str, tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(text)
    (message,) = made(path)
    assert message.startswith(f"{path}:")
