"""A regression is planted in a kernel; the gate becomes red for the right reason, and stays green
for a comment."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

from tests.benchmarking.gate.project import Project, project


@pytest.fixture
def guarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    found = project(tmp_path, monkeypatch, capsys)
    assert found.gate("--update") == 0
    return found


def test_the_same_kernel_is_green(guarded: Project) -> None:
    assert guarded.gate() == 0
    assert "gate: ok" in guarded.out


def test_a_comment_is_green(guarded: Project) -> None:
    before = (guarded.root / "wavecast-baseline.json").read_text()
    guarded.edit(("    row = tl.p", "    # The row of this program.\n\n    row = tl.p"))
    assert guarded.gate() == 0
    assert guarded.gate("--update") == 0
    assert (guarded.root / "wavecast-baseline.json").read_text() == before


def test_spills(guarded: Project) -> None:
    settings = guarded.root / "pyproject.toml"  # what spills this much is slow to watch
    settings.write_text(settings.read_text().replace("= true", "= false"))
    assert guarded.gate("--update") == 0
    guarded.edit(("BLOCK=1024, num_warps=4", "BLOCK=4096, num_warps=1, waves_per_eu=8"))
    broken = guarded.broken()
    assert broken["spills"]["before"] == broken["spills"]["limit"] == 0
    assert broken["spills"]["after"] > 0
    assert {"vgprs", "scratch_bytes", "predicted_seconds"} <= set(broken)


def test_an_extra_barrier(guarded: Project) -> None:
    guarded.edit(("    for number", "    tl.debug_barrier()\n    for number"))
    broken = guarded.broken()
    assert set(broken) == {"barriers"}
    assert broken["barriers"]["after"] == broken["barriers"]["before"] + 8  # two rows, four waves


def test_a_lost_vectorisation(guarded: Project) -> None:
    guarded.edit(("@triton.jit", '@triton.jit(do_not_specialize=["step"])'))
    broken = guarded.broken()
    memory = broken["memory_instructions"]
    assert memory["after"] == 4 * memory["before"]
    assert "global_bytes" not in broken
    assert "barriers" not in broken


def test_a_wrong_result(guarded: Project) -> None:
    guarded.edit(("tl.sum(values, 0)", "(tl.sum(values, 0) + 0.01)"))
    broken = guarded.broken()
    assert set(broken) == {"WRONG"}
    assert "of 2048 beyond tolerance" in broken["WRONG"]["reason"]
    assert broken["WRONG"]["place"] == {"file": "planted.py", "line": 8}


def test_a_slower_loop(guarded: Project) -> None:
    guarded.edit(("range(1)", "range(4)"))
    broken = guarded.broken()
    assert {"predicted_seconds", "instructions", "global_bytes"} <= set(broken)
    assert "+" in broken["predicted_seconds"]["reason"]
    assert not {"spills", "numerical_error", "check_reports"} & set(broken)


def test_a_race(guarded: Project) -> None:
    shared = "    tl.store(y + tl.num_programs(0) * columns, row * 1.0)\n"
    guarded.edit(
        ("    for number", shared + "    for number"),
        ("torch.empty_like(x)", 'torch.empty(rows + 1, COLUMNS, device="cuda")'),
        ("return y\n", "return y[:rows]\n"),
    )
    broken = guarded.broken()
    assert broken["check_reports"]["after"] > 0
    assert "check: workgroup-race" in broken["check_reports"]["reason"]


def test_an_update_never_takes_in_a_wrong_result(guarded: Project) -> None:
    before = (guarded.root / "wavecast-baseline.json").read_text()
    guarded.edit(("tl.sum(values, 0)", "(tl.sum(values, 0) + 0.01)"))
    assert guarded.gate("--update") == 1
    assert "WRONG" in guarded.out
    assert (guarded.root / "wavecast-baseline.json").read_text() == before


def test_a_kernel_that_does_not_compile(guarded: Project) -> None:
    guarded.edit(("tl.exp", "tl.no_such_function"))
    line = 1 + next(
        number
        for number, text in enumerate((guarded.root / "planted.py").read_text().splitlines())
        if "no_such_function" in text
    )
    before = (guarded.root / "wavecast-baseline.json").read_text()
    reports = ("--junit", "j.xml", "--sarif", "s.sarif", "--summary", "s.md", "--annotations")
    assert guarded.gate(*reports) == 1  # there was nothing else
    assert f"::error file=planted.py,title=wavecast gate%3A FAILED,line={line}::" in guarded.out
    (case,) = ElementTree.parse(guarded.root / "j.xml").getroot().iter("testcase")
    assert (case.get("file"), case.get("line")) == ("planted.py", str(line))
    assert case.find("failure") is not None
    (result,) = json.loads((guarded.root / "s.sarif").read_text())["runs"][0]["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "planted.py"
    assert physical["region"]["startLine"] == line
    assert "no_such_function" in (guarded.root / "s.md").read_text()
    assert guarded.gate("--update") == 1
    assert "nothing was measured: the baseline stays as it is" in guarded.out
    assert (guarded.root / "wavecast-baseline.json").read_text() == before


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("    x = inputs(rows)\n\n    def", "    raise ValueError('no')\n\n    def", 25),
        ("COLUMNS = 1024", "COLUMNS = = 1024", 5),
        ("COLUMNS = 1024", "COLUMNS = missing", 5),
    ],
)
def test_a_function_that_raises_is_at_its_line(
    guarded: Project, old: str, new: str, line: int
) -> None:
    guarded.edit((old, new))
    (failed,) = guarded.broken().values()
    assert failed["status"] == "FAILED"
    assert failed["place"] == {"file": "planted.py", "line": line}


def test_a_script_that_launches_nothing_fails_at_its_line(guarded: Project) -> None:
    (guarded.root / "script.py").write_text("import planted\n\nraise ValueError('no')\n")
    settings = guarded.root / "pyproject.toml"
    settings.write_text('[tool.wavecast.gate]\narch = "gfx942"\nsubjects = ["script.py"]\n')
    broken = guarded.broken()
    assert set(broken) == {"FAILED", "GONE"}
    assert broken["FAILED"]["place"] == {"file": "script.py", "line": 3}


def test_a_mistake_of_wavecast_fails_and_is_reported(
    guarded: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("mistake")

    monkeypatch.setattr("wavecast.benchmarking.gate.session.measure", broken)
    assert guarded.gate("--junit", "j.xml") == 1
    assert "a bug in wavecast: KeyError: 'mistake'" in (guarded.root / "j.xml").read_text()


def test_reports_are_written_where_one_cannot_be(guarded: Project) -> None:
    assert guarded.gate("--summary", "no/s.md", "--junit", "j.xml", "--sarif", "s.sarif") == 2
    assert "cannot write no/s.md" in guarded.err
    assert "gate: ok" in guarded.out
    assert (guarded.root / "j.xml").is_file()
    assert (guarded.root / "s.sarif").is_file()


@pytest.mark.thorough
def test_a_kernel_the_compiler_aborts_on(guarded: Project) -> None:
    broken = 'tl.inline_asm_elementwise("", "=v,5", [values], tl.float32, True, 1)'
    guarded.edit(("tl.exp(values - tl.max(values, 0))", broken))
    settings = guarded.root / "pyproject.toml"
    text = settings.read_text()
    settings.write_text(text.replace("subjects = [", 'subjects = [{ operator = "silu_mul" },'))
    assert guarded.gate("--update") == 1
    said = "softmax_kernel for gfx942: the compiler crashed (SIGABRT)"
    assert said in guarded.out + guarded.err, guarded
    assert "silu_mul" in (guarded.root / "wavecast-baseline.json").read_text()


def test_a_renamed_kernel(guarded: Project) -> None:
    guarded.edit(("softmax(rows)", "other(rows)"))
    settings = guarded.root / "pyproject.toml"
    settings.write_text(settings.read_text().replace("planted:softmax", "planted:other"))
    broken = guarded.broken()
    assert set(broken) == {"GONE"}
    assert "callable planted:other rows=2 has the same machine code" in broken["GONE"]["reason"]
    assert guarded.gate("--update") == 0
    assert guarded.gate("--strict") == 0
