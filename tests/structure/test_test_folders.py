"""Folders of tests are those of the package; others are named here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.structure.sources import ROOT

TESTS = ROOT.parent / "tests"
OTHERS = {
    "calibration": "the scripts beside the package",
    "documents/inputs": "files that the commands of its tests read",
    "fuzz": "damaged inputs",
    "libraries": "libraries compiled as programs use them",
    "oracle": "tables against LLVM",
    "release": "the distribution",
    "structure": "imports and words of the package",
}
"""Folders of tests about more than one folder of the package, or none."""


def unmatched(tests: Iterable[Path], package: Path, root: Path) -> list[str]:
    """The folders of tests under `root` that a package does not have, as a folder or a module."""
    names = sorted({path.parent.relative_to(root).as_posix() for path in tests} - {"."})
    return [
        name
        for name in names
        if not (package / name).is_dir() and not (package / f"{name}.py").is_file()
    ]


def test_folders_of_tests_are_those_of_the_package() -> None:
    assert set(unmatched(TESTS.rglob("test_*.py"), ROOT, TESTS)) == set(OTHERS)


def test_a_folder_that_the_package_does_not_have_is_found(tmp_path: Path) -> None:
    (tmp_path / "package" / "isa").mkdir(parents=True)
    tests = [tmp_path / "tests" / name / "test_a.py" for name in ("isa", "isa/parser", "")]
    assert unmatched(tests, tmp_path / "package", tmp_path / "tests") == ["isa/parser"]
