"""The search of one launch: results, the journal, and the settings that programs load."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import structs

import wavecast.lab
from tests.lab.conftest import Captured
from wavecast.cli.lab import command
from wavecast.errors import InputError
from wavecast.json_objects import values
from wavecast.lab import search as module
from wavecast.lab.axes import axes
from wavecast.lab.comparing import ExecutionResult
from wavecast.lab.figures import CodeFigures
from wavecast.lab.journal import LabJournal, LabProblem, LabResult, read
from wavecast.lab.run import LabTuning, save_settings
from wavecast.lab.search import LabSearch
from wavecast.lab.setting import Setting
from wavecast.lab.table import entries
from wavecast.report.lab import alternatives as report

PROBLEM = LabProblem("k", "gfx942", "mi300x", "triton 3.9.0", "d", (4, 1, 1), "n=1000")
FIGURES = CodeFigures(
    "base", 10, 8, 0, 10, 0, 0, 0, 8, 8.0, 1, 1, 0.0, 1e-5, 0.9e-5, 1.1e-5, "memory", "static"
)


BEST = {"num_stages": 1, "disable-lsr": True}


def result(setting: dict, stage: str, seconds: float, **fields) -> LabResult:
    figures = structs.replace(FIGURES, digest=repr(setting), seconds=seconds)
    return LabResult(Setting.of(setting), stage, figures, **fields)


def found() -> list[LabResult]:
    """A search: one setting is fast and wrong, one is fast and right, one is refused."""
    return [
        result({}, "base", 1.0e-5),
        result({"num_stages": 1}, "alone", 0.9e-5),
        result({"disable-lsr": True}, "alone", 0.95e-5),
        result(BEST, "together", 0.8e-5, options={"num_stages": 1}),
        result({"num_stages": 3}, "alone", 0.7e-5),
        LabResult(Setting.of({"disable-cgp": True}), "alone", refused="it crashed"),
        result({"num_stages": 3}, "verified", 0.7e-5, execution=ExecutionResult(("a",), "wrong")),
                result(BEST, "verified", 0.8e-5, execution=ExecutionResult(("a",), "")),
    ]  # fmt: skip


def test_the_best_is_fast_and_right() -> None:
    (entry,) = entries((PROBLEM, one) for one in found())
    assert entry.best is not None
    assert str(entry.best.result.setting) == "num_stages=1, disable-lsr"
    statuses = {str(row.result.setting): entry.status(row) for row in entry.rows}
    assert statuses["num_stages=3"] == "differs: wrong"
    assert statuses["disable-cgp"] == "refused: it crashed"
    assert entry.rows[-1].result.refused, "refused settings are last"
    without = entry.without(entry.best, "disable-lsr")
    assert without is not None
    assert str(without.result.setting) == "num_stages=1"


def test_new_faults_are_faulty() -> None:
    bad = result({"num_stages": 1}, "alone", 0.5e-5)
    figures = bad.figures
    assert figures is not None
    bad = replace(bad, figures=structs.replace(figures, faults=("missing-wait: v_mov",)))
    (entry,) = entries([(PROBLEM, result({}, "base", 1e-5)), (PROBLEM, bad)])
    assert entry.status(entry.rows[0]) == "faulty: missing-wait: v_mov"
    assert entry.best is None


def test_the_journal_keeps_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = LabJournal(path)
    for one in found():
        journal.add(PROBLEM, one)
    assert [one for _, one in read(path)] == found()
    with path.open("a") as file:
        file.write('{"problem": ')
    LabJournal(path).add(PROBLEM, found()[0])
    assert [one for _, one in read(path)] == [*found(), found()[0]]
    path.write_text("{}\n")
    with pytest.raises(InputError, match="not a journal"):
        list(read(path))


def test_settings_are_saved_and_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISABLE_LLVM_OPT", raising=False)
    path = tmp_path / "settings.json"
    assert save_settings(entries((PROBLEM, one) for one in found()), path) == 1
    saved = wavecast.lab.load(path).find("k", "gfx942")
    assert saved is not None
    assert saved.options == {"num_stages": 1}
    with saved.compiling() as options:
        assert os.environ["DISABLE_LLVM_OPT"] == "disable-lsr"
        assert options == {"num_stages": 1}
    assert "DISABLE_LLVM_OPT" not in os.environ
    assert wavecast.lab.load(path).find("k", "gfx1100") is None
    path.write_text("{}")
    with pytest.raises(InputError, match="not a settings file"):
        wavecast.lab.load(path)


def test_document_and_text() -> None:
    tuning = LabTuning(tuple(entries((PROBLEM, one) for one in found())), (), ("a note",))
    document = values(report.document(tuning))
    assert document["entries"][0]["best"] == {"num_stages": 1, "disable-lsr": True}
    json.dumps(document, allow_nan=False)
    from wavecast.report.kit.terminal import plain

    text = plain(lambda console: report.render(tuning, console), width=160)
    assert "num_stages=1, disable-lsr" in text
    assert "+20.0%" in text
    assert "saved by sample" in text
    assert "differs: wrong" in text


def test_a_search_evaluates_verifies_and_resumes(
    captured: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few values, on a small kernel: every stage runs, and known results are not computed again."""
    few = [(axes()["amdgpu-sched-strategy"], "max-ilp"), (axes()["disable-post-ra"], True)]
    monkeypatch.setattr(module, "applicable", lambda _: iter(few))
    monkeypatch.setattr(module, "WORTH", -1.0)  # verify whatever there is
    monkeypatch.setattr(module, "LEAST", -1.0)
    kept: list[tuple[LabResult, ...]] = []
    search = LabSearch(captured.subject, 1, 1, kept.append)
    search.run()
    stages = [results[0].stage for results in kept]
    assert stages[:3] == ["base", "alone", "alone"]
    assert "verified" in stages
    assert all(not results[0].refused for results in kept)
    verified = next(results[0] for results in kept if results[0].stage == "verified")
    assert verified.execution is not None
    assert verified.execution.same
    known = {(results[0].setting, results[0].stage): results for results in kept}
    again: list[tuple[LabResult, ...]] = []
    LabSearch(captured.subject, 1, 1, again.append, known).run()
    assert again == []


def test_resume_needs_the_output() -> None:
    done = CliRunner().invoke(command, ["tune", "script.py", "--resume"])
    assert done.exit_code != 0
    assert "--resume belongs to --output" in str(done.exception)
