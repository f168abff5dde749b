"""`wavecast compare` over a store with known runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("scipy", reason="needs SciPy")

import wavecast
from tests.benchmarking.compare.test_compare import record
from tests.documents.support import validated
from wavecast.benchmarking.records import BenchRun
from wavecast.benchmarking.store.sqlite import open_store
from wavecast.cli.compare import command
from wavecast.errors import NothingAnalysed, StoreError, UnknownName


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("COLUMNS", raising=False)
    path = tmp_path / "bench.sqlite"
    sides = {"main": (1e-4, 0.0), "same": (1e-4, 0.0), "slow": (1.2e-4, 8.0)}
    with open_store(path) as kept:
        for number, (label, (seconds, spills)) in enumerate(sides.items()):
            kept.begin(BenchRun(f"run{number}", f"2026-01-0{number + 1}", label=label))
            one = record(seconds=seconds, seed=number, exact={"spills": spills})
            kept.add(f"run{number}", replace(one, digest=label))
        kept.begin(BenchRun("run9", "2026-01-09", label="empty"))
    return path


def run(store: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments, "--store", str(store)], standalone_mode=False)


def test_what_became_worse(store: Path) -> None:
    found = run(store, "main", "slow", "--fail")
    assert "SLOWER" in found.output
    assert "WORSE" in found.output
    assert "other-code" in found.output
    assert found.return_value == 1
    assert run(store, "main", "slow").return_value == 0


def test_nothing_changed(store: Path) -> None:
    found = run(store, "main", "same", "--fail")
    assert found.return_value == 0
    assert found.output.splitlines()[-1] == "2 SAME"
    assert "matmul" in run(store, "main", "same", "--all").output
    markdown = run(store, "main", "same", "--format", "markdown").output
    assert markdown.endswith("\n\nNo figure changed.\n")


def test_the_runs_are_named(store: Path) -> None:
    before, after = run(store, "main", "last~1").output.splitlines()[:2]
    assert before == "before: main · run run0 · 2026-01-01"
    assert after == "after: slow · run run2 · 2026-01-03"
    lines = run(store, "main", "same,slow", "--format", "markdown").output.splitlines()
    assert lines[1] == "- after: same, slow · 2 runs run1, run2 · 2026-01-02 to 2026-01-03"


def test_json(store: Path) -> None:
    found = run(store, "main", "slow", "--format", "json", "--kpi", "spills")
    document = validated(json.loads(found.output), "wavecast.compare/1")
    (one,) = document["compared"]
    assert (one["kpi"], one["verdict"], one["before"], one["after"]) == ("spills", "WORSE", 0, 8)


def test_python_gives_the_document_of_the_command(store: Path) -> None:
    printed = json.loads(run(store, "main", "slow", "--format", "json").output)
    report = wavecast.compare("main", "slow", store=store, fail=True)
    assert printed == report.to_dict()
    assert report.exit_code() == 1
    assert str(report) == run(store, "main", "slow").output
    assert "matmul" in str(wavecast.compare("main", "same", store=store, everything=True))


def test_markdown(store: Path) -> None:
    text = run(store, "main", "slow", "--format", "markdown").output
    assert "| **SLOWER** |" in text
    assert "\n| subject | device |" in text


def test_what_is_not_there(store: Path, tmp_path: Path) -> None:
    assert isinstance(run(store, "main", "nope").exception, UnknownName)
    assert isinstance(run(store, "main", "slow", "--kpi", "spils").exception, UnknownName)
    assert isinstance(run(store, "main", "empty").exception, NothingAnalysed)
    assert isinstance(run(tmp_path / "none", "a", "b").exception, StoreError)
