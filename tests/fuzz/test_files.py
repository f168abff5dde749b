"""A short, fixed slice of `python -m tests.fuzz.files`: damaged files that verbs read."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.fuzz import damage, files
from tests.fuzz.file_inputs import ENTRY, INPUTS
from tests.fuzz.kinds import Seeds
from tests.lab import test_search
from wavecast.errors import InputError
from wavecast.lab import journal
from wavecast.lab.table import entries
from wavecast.tuning import records
from wavecast.tuning.table import TuningTable

CASES = {
    "explain-metadata": 5, "explain-object": 6, "run-code": 5, "run-check": 3,
    "run-metadata": 4, "run-object": 4, "run-args": 6, "run-arg": 5, "store": 16,
    "store-import": 12, "gate": 12, "search-state": 5, "profile": 12, "profile-folder": 6,
}  # fmt: skip
COMPILED = {"explain-hip": 3, "run-hip": 3}
THOROUGH = 15
"""How many times as many cases `make test-all` has."""
NEEDS_LLVM = ("explain-object", "run-object")


def _check(name: str, count: int, tmp_path: Path) -> None:
    if name in NEEDS_LLVM and not Seeds().objects():
        pytest.skip("llvm-mc 22 or newer is not installed (apt install llvm-22)")
    files.prepare(name)
    codes = set()
    for seed in range(1, count + 1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        arguments, end = files.attempt(INPUTS[name], seed, folder)
        assert files.fault(end) == "", (seed, arguments)
        codes.add(end.code)
    assert codes & {0, 2}


@pytest.mark.parametrize("name", CASES)
def test_damaged_files_end_in_one_line(name: str, tmp_path: Path) -> None:
    _check(name, CASES[name], tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_more_damaged_files_end_in_one_line(name: str, tmp_path: Path) -> None:
    _check(name, THOROUGH * CASES[name], tmp_path)


@pytest.mark.hip
@pytest.mark.parametrize("name", COMPILED)
def test_damaged_sources_end_in_one_line(name: str, tmp_path: Path) -> None:
    _check(name, COMPILED[name], tmp_path)


@pytest.mark.torch
def test_damaged_journals_of_tune_end_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="needs Triton")
    _check("tune-journal", 4, tmp_path)


def _tuned(path: Path) -> object:
    return TuningTable.of(records.read(path)).to_json()


def _compared(path: Path) -> object:
    return [(entry.best, entry.problem) for entry in entries(journal.read(path))]


def test_journals_have_values_of_their_types_or_are_refused(tmp_path: Path) -> None:
    result = test_search.found()[0].to_json()
    lab_entry = {"problem": asdict(test_search.PROBLEM), "result": result}
    for use, usual in ((_tuned, ENTRY), (_compared, lab_entry)):
        path, refused = tmp_path / "journal", 0
        path.write_text(f"{json.dumps(usual)}\n")
        assert use(path)
        for seed in range(200):
            text = damage.document(random.Random(seed), usual)
            path.write_bytes(text.replace(b"\n", b" ") + b"\n")
            try:
                use(path)
            except InputError:
                refused += 1
        assert 100 < refused < 200


def test_every_input_has_a_test() -> None:
    assert INPUTS.keys() == {*CASES, *COMPILED, "tune-journal"}


def test_a_locked_store_is_one_line(tmp_path: Path) -> None:
    arguments = INPUTS["store"].make(None, tmp_path)
    with closing(sqlite3.connect(tmp_path / "s.sqlite")) as database:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")
        end = files.run(arguments, tmp_path)
    assert (end.code, files.fault(end)) == (2, "")
    assert "another process holds it: wait, or end that one" in end.err
