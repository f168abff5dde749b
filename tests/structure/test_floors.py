"""Imports only go down the floors, function-level ones included, and optional libraries stay where
they are needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "wavecast"

FLOORS = {
    "errors": 0,
    "version": 0,
    "arch": 1,
    "isa": 2,
    "compile": 3,
    "analyze": 4,
    "model": 5,
    "kernels": 6,
    "rules": 6,
    "emulate": 7,
    "predict": 8,
    "integrations": 9,
    "pipeline": 10,
    "tune": 11,
    "bench": 12,
    "report": 13,
    "cli": 14,
    "api": 14,
    "ops": 14,
    "testing": 14,
}
TOP = {"__init__": 99, "__main__": 99}

OPTIONAL = {
    "torch": {"kernels", "integrations"},
    "triton": {"compile", "kernels", "integrations"},
    "llvmlite": {"emulate"},
    "numba": {"model"},
    "pandas": {"bench"},
    "pyarrow": {"bench"},
    "duckdb": {"bench"},
    "ray": {"tune"},
    "scipy": {"bench"},
    "ziglang": {"compile"},
    "jinja2": {"report"},
    "rich": {"report", "cli", "api"},
    "click": {"cli"},
    "pytest": {"integrations"},
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def floor(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


def imports(path: Path) -> list[tuple[int, str]]:
    """Line and dotted name of every import in a file, at any depth."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            module = node.module or ""
            if module == "wavecast":
                found += [(node.lineno, f"wavecast.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, module))
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_go_down(path: Path) -> None:
    here = floor(path)
    level = FLOORS.get(here, TOP.get(here))
    assert level is not None, f"{path}: no floor called {here!r}"
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] != "wavecast" or len(parts) < 2:
            continue
        target = FLOORS.get(parts[1])
        if target is None:
            continue  # a name of the package itself, such as __version__
        assert target <= level, f"{path}:{line}: {here} imports {name}, which stands above it"
        assert target < level or parts[1] == here, f"{path}:{line}: {here} imports {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_optional_libraries_stay_on_their_floors(path: Path) -> None:
    for line, name in imports(path):
        allowed = OPTIONAL.get(name.split(".")[0])
        if allowed is not None:
            assert floor(path) in allowed, f"{path}:{line}: imports {name}"


def test_no_circular_imports_within_a_floor() -> None:
    graph: dict[str, set[str]] = {}
    names = {
        ".".join(("wavecast", *p.relative_to(ROOT).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): p
        for p in modules()
    }
    for name, path in names.items():
        graph[name] = set()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    graph[name].add(submodule if submodule in names else node.module or "")
    state: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert state.get(name) != 1, " -> ".join((*trail, name))
        if state.get(name) == 2:
            return
        state[name] = 1
        for following in graph.get(name, ()):
            visit(following, (*trail, name))
        state[name] = 2

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize(
    "module", ["wavecast", "wavecast.cli.main", "wavecast.isa", "wavecast.arch"]
)
def test_import_is_light(module: str) -> None:
    """Heavy libraries are imported when they are used, not before."""
    heavy = ("torch", "triton", "llvmlite", "numpy", "jinja2", "rich", "pandas")
    code = f"import {module}, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
