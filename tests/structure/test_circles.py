"""No circles between modules: every kind of import counts, also lazy and TYPE_CHECKING ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.structure.sources import circles, described, folders, import_graph


def test_no_circular_imports() -> None:
    graph = import_graph()
    found = circles(graph)
    assert not found, "\n\n".join(described(circle, graph) for circle in found)


PLANTED = {
    "at the top of modules": {
        "a.py": "from pack import b",
        "b.py": "import pack.c",
        "c.py": "from pack.a import thing",
    },
    "in a function": {"a.py": "import pack.b", "b.py": "def f():\n    from pack import a"},
    "for types only": {
        "a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack.b import B",
        "b.py": "from pack.a import A",
    },
    "by name": {
        "a.py": "import pack.b",
        "b.py": "from importlib import import_module\nimport_module('pack.a')",
    },
    "through a package that re-exports": {
        "sub/__init__.py": "from pack.sub.x import X",
        "sub/x.py": "from pack.a import A",
        "a.py": "from pack.sub import X",
    },
    "through the package that an import runs": {
        "sub/__init__.py": "from pack.sub.x import X",
        "sub/x.py": "import pack.a",
        "sub/y.py": "",
        "a.py": "from pack.sub.y import Y",
    },
    "through the whole package": {"__init__.py": "from pack.a import A", "a.py": "import pack"},
}


def _write(folder: Path, modules: dict[str, str]) -> Path:
    root = folder / "pack"
    for name, text in {"__init__.py": "", **modules}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.mark.parametrize("where", PLANTED)
def test_a_planted_circle_is_found(where: str, tmp_path: Path) -> None:
    graph = import_graph(_write(tmp_path, PLANTED[where]))
    (circle,) = circles(graph)
    assert "pack.a" in circle
    assert "pack.a:" in described(circle, graph)


def test_packages_that_re_export_their_modules_are_no_circle(tmp_path: Path) -> None:
    modules = {
        "sub/__init__.py": "from pack.sub.x import X\nfrom pack.sub.y import Y",
        "sub/x.py": "from pack.sub.y import Y",
        "sub/y.py": "import pack.low",
        "low.py": "",
        "top.py": "from pack.sub import X\nfrom pack.sub.y import Y",
    }
    assert circles(import_graph(_write(tmp_path, modules))) == set()


def test_no_circles_between_the_children_of_a_folder() -> None:
    graph = import_graph()
    messages = [
        f"{folder}: {sorted(circle)}"
        for folder, children in folders(graph).items()
        for circle in circles(children)
    ]
    assert messages == []


def test_a_circle_between_two_folders_is_found(tmp_path: Path) -> None:
    modules = {
        "one/__init__.py": "",
        "one/a.py": "from pack.two.b import B",
        "one/c.py": "",
        "two/__init__.py": "",
        "two/b.py": "from pack.one.c import C",
    }
    graph = import_graph(_write(tmp_path, modules))
    assert circles(graph) == set()
    assert circles(folders(graph)["pack"]) == {frozenset({"pack.one", "pack.two"})}
