"""Only `wavecast.processes` forks or starts Python processes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.structure.sources import ROOT, files

ONLY = ROOT / "processes.py"
CALLS = {"fork", "forkpty", "posix_spawn", "get_context", "Process", "ProcessPoolExecutor"}


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_one_module_makes_processes(path: Path) -> None:
    if path == ONLY:
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            made = node.value.id in ("os", "multiprocessing") and node.attr in CALLS
            assert not made, f"{path}:{node.lineno}: {node.value.id}.{node.attr}"
        if isinstance(node, ast.ImportFrom) and node.module != "wavecast.processes":
            names = {alias.name for alias in node.names} & CALLS
            assert not names, f"{path}:{node.lineno}: imports {names}"
