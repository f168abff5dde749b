"""The matrix of versions runs tests that exist, on the versions that the package supports."""

from __future__ import annotations

import ast
import re
import tomllib

from tests.structure.sources import ROOT

REPOSITORY = ROOT.parent
TEXT = (REPOSITORY / "noxfile.py").read_text(encoding="utf-8")
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def constant(name: str) -> tuple[str, ...]:
    for node in ast.parse(TEXT).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise KeyError(name)


def test_its_folders_of_tests_exist() -> None:
    folders = re.findall(r'"(tests/[^"]+)"', TEXT)
    assert folders
    assert [folder for folder in folders if not (REPOSITORY / folder).is_dir()] == []


def test_it_has_every_supported_python_but_that_of_ci() -> None:
    prefix = "Programming Language :: Python :: "
    classifiers = [name.removeprefix(prefix) for name in PROJECT["classifiers"] if prefix in name]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert sorted({*constant("PYTHONS"), oldest}) == [v for v in classifiers if "." in v]


def test_it_has_every_supported_triton_but_that_of_ci() -> None:
    (required,) = (name for name in PROJECT["dependencies"] if name.startswith("triton"))
    bounds = re.match(r"triton>=3\.(\d+),<3\.(\d+);", required)
    assert bounds is not None
    oldest, above = map(int, bounds.groups())
    assert constant("TRITONS") == tuple(f"3.{minor}" for minor in range(oldest, above - 1))
