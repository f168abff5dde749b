"""Golden files are compared value by value, and rewritten only when asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden import GoldenFile, differences

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        ({"t": 1.0 + 1e-7, "n": 3, "k": ["a", 2.0]}, []),
        ({"t": 1.00001, "n": 3, "k": ["a", 2.0]}, ["x t: 1.00001, golden 1.0 (+0.001%)"]),
        ({"t": 1.0, "n": 4, "k": ["a", 2.0]}, ["x n: 4, golden 3"]),
        ({"t": 1.0, "n": 3, "k": ["b", 2.0]}, ["x k[0]: 'b', golden 'a'"]),
        ({"t": 1.0, "n": 3, "k": ["a"]}, ["x k: ['a'], golden ['a', 2.0]"]),
        ({"t": None, "n": 3, "m": 1, "k": ["a", 2.0]},
         ["x m: unexpected", "x t: None, golden 1.0"]),
        ({"t": 1, "n": 3, "k": ["a", 2.0]}, ["x t: 1, golden 1.0"]),
    ],
)  # fmt: skip
def test_differences_are_found(found: object, lines: list[str]) -> None:
    golden = {"t": 1.0, "n": 3, "k": ["a", 2.0]}
    assert list(differences(golden, found, 1e-6, "x")) == lines


def test_a_value_without_a_golden_one_fails(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = GoldenFile(tmp_path / "values.json", pytestconfig)
    monkeypatch.setattr(golden, "update", False)
    with pytest.raises(AssertionError, match="has no 'a'"):
        golden.check("a", 1, 0.0)
    monkeypatch.setattr(golden, "update", True)
    golden.check("a", (1.0, "b"), 0.0)
    assert json.loads(golden.path.read_text()) == {"a": [1.0, "b"]}
    monkeypatch.setattr(golden, "update", False)
    golden.check("a", (1.0, "b"), 0.0)
    with pytest.raises(AssertionError, match=r"a\[0\]: 2.0, golden 1.0"):
        golden.check("a", (2.0, "b"), 0.0)


def test_golden_files_are_not_rewritten_by_several_processes() -> None:
    command = [sys.executable, "-m", "pytest", "--update-golden", "-n", "2", "--co", "-q", __file__]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "without -n" in done.stderr
