"""`wavecast gate` as a command: exit codes, files, annotations, scripts, stores, processes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

import wavecast
from tests.benchmarking.gate.project import Project, project
from wavecast.benchmarking.store.sqlite import open_store

SCRIPT = """\
import torch
from planted import inputs, right, softmax

torch.manual_seed(0)
got = softmax(2)()
torch.manual_seed(0)
assert torch.allclose(got.double(), right(2)(), atol=1e-6), "not close"
print("fine")
"""


@pytest.fixture
def fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    """Nothing is executed."""
    found = project(tmp_path, monkeypatch, capsys)
    settings = tmp_path / "pyproject.toml"
    settings.write_text(settings.read_text().replace("= true", "= false"))
    return found


@pytest.fixture
def slower(fast: Project) -> Project:
    """A project with a regression."""
    assert fast.gate("--update") == 0
    fast.edit(("range(1)", "range(8)"))
    return fast


def test_no_baseline(fast: Project) -> None:
    assert fast.gate() == 2
    assert "create it with wavecast gate --update" in fast.err
    assert len(fast.err.strip().splitlines()) == 1


def test_what_is_kept_and_told(fast: Project) -> None:
    assert fast.gate("--update", "--store", "kept.sqlite", "--label", "main") == 0
    assert "callable planted:softmax rows=2 on mi300x: NEW" in fast.out
    with open_store(fast.root / "kept.sqlite", create=False) as store:
        (run,) = store.runs()
        assert run.label == "main"
        assert run.finished
        assert [record.subject.name for record in store.records(run.id)] == ["planted:softmax"]
    assert fast.gate("--run", "main", "--store", "kept.sqlite") == 0
    assert fast.gate("--run", "main", "--store", "none.sqlite") == 2
    assert fast.gate("--run", "main") == 2
    assert "--run belongs to --store" in fast.err


def test_a_table_of_what_broke(slower: Project) -> None:
    assert slower.gate() == 1
    (line,) = [line for line in slower.out.splitlines() if " predicted_seconds " in line]
    assert line.startswith("callable planted:softmax rows=2  mi300x")
    assert "WORSE" in line
    assert "::error" not in slower.out


def test_python_gives_the_document_of_the_command(slower: Project) -> None:
    assert slower.gate("--format", "json") == 1
    report = wavecast.gate(jobs=1)
    assert json.loads(slower.out) == report.to_dict()
    assert report.exit_code() == 1
    assert " predicted_seconds " in str(report)
    assert slower.gate("-o", "gate.md") == 1
    assert (slower.root / "gate.md").read_text() == report.markdown()


def test_reports(slower: Project) -> None:
    arguments = ("--junit", "a.xml", "--sarif", "a.sarif", "--summary", "a.md", "--annotations")
    assert slower.gate(*arguments) == 1
    root = ElementTree.parse(slower.root / "a.xml").getroot()
    failed = [case for case in root.iter("testcase") if case.find("failure") is not None]
    assert int(root.get("failures", "0")) == len(failed) > 0
    assert "predicted_seconds" in {case.get("name") for case in failed}
    assert {case.get("file") for case in failed} == {"planted.py"}
    log = json.loads((slower.root / "a.sarif").read_text())
    assert log["version"] == "2.1.0"
    results = {result["ruleId"]: result for result in log["runs"][0]["results"]}
    where = results["gate-predicted-seconds"]["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "planted.py"
    assert where["region"]["startLine"] == 8
    assert "| predicted_seconds |" in (slower.root / "a.md").read_text()
    assert "::error file=planted.py,title=wavecast gate%3A predicted_seconds,line=8::" in slower.out


def test_reports_of_a_gate_that_cannot_judge(slower: Project) -> None:
    """The same files, with the reason: a build shows it where it shows verdicts."""
    (slower.root / "wavecast-baseline.json").unlink()
    files = ("--junit", "a.xml", "--sarif", "a.sarif", "--summary", "a.md")
    assert slower.gate(*files, "--annotations") == 2
    root = ElementTree.parse(slower.root / "a.xml").getroot()
    (error,) = root.iter("error")
    assert "baseline" in error.get("message", "")
    assert root.findall("testsuite")[0].get("errors") == "1"
    (result,) = json.loads((slower.root / "a.sarif").read_text())["runs"][0]["results"]
    assert result["level"] == "error"
    assert result["message"]["text"] == error.text
    assert error.text in (slower.root / "a.md").read_text()
    place = "file=pyproject.toml,title=wavecast gate,line=1"
    assert f"::error {place}::{error.text}" in slower.err
    assert slower.gate() == 2
    assert "::error" not in slower.err


def test_on_github(slower: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    assert slower.gate() == 1
    assert "::error file=planted.py" in slower.out
    assert (slower.root / "summary.md").read_text().startswith("### ❌ gate: ")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(slower.root.parent))
    assert slower.gate("--sarif", "a.sarif", "--update") == 0
    uri = f'"uri": "{slower.root.name}/planted.py"'
    assert uri in (slower.root / "a.sarif").read_text()


def test_a_script(fast: Project) -> None:
    (fast.root / "bench.py").write_text(SCRIPT)
    settings = fast.root / "pyproject.toml"
    text = settings.read_text().replace("execute = false", "execute = true")
    start, end = text.index("subjects"), text.index("[tool.wavecast.gate.thresholds]")
    settings.write_text(text[:start] + 'subjects = ["bench.py"]\n' + text[end:])
    assert fast.gate("--update") == 0
    key = "kernel bench.py:softmax_kernel x=2x1024:float32 y=2x1024:float32"
    kept = json.loads((fast.root / "wavecast-baseline.json").read_text())["subjects"]
    assert kept[key]["mi300x"]["figures"]["instructions"] > 0
    assert "fine" not in fast.out
    fast.edit(("tl.sum(values, 0)", "(tl.sum(values, 0) + 1)"))
    assert fast.gate("bench.py") == 1
    assert "wrong result: AssertionError: not close" in fast.out


def test_in_processes(fast: Project) -> None:
    settings = fast.root / "pyproject.toml"
    settings.write_text(settings.read_text().replace("rows = 2", "rows = [2, 3]"))
    assert fast.gate("--update", "--jobs", "2", "--store", "kept.sqlite") == 0
    assert fast.gate() == 0
    with open_store(fast.root / "kept.sqlite", create=False) as store:
        assert len(list(store.records(store.runs()[0].id))) == 2


def test_names(fast: Project) -> None:
    assert fast.gate("--update") == 0
    assert fast.gate("planted:*", "--arch", "mi300x") == 0
    assert fast.gate("planted:soft") == 2
    assert "planted:softmax" in fast.err
    assert fast.gate("--arch", "gfx1100") == 2
    assert "it is about mi300x" in fast.err


def test_a_wrong_setting(fast: Project) -> None:
    settings = fast.root / "pyproject.toml"
    settings.write_text(settings.read_text().replace("execute", "exekute"))
    assert fast.gate() == 2
    assert "nearest known: execute" in fast.err
