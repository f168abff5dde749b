"""Baselines and settings as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.documents.support import validated
from wavecast.benchmarking.gate import baseline, settings
from wavecast.benchmarking.gate.baseline import Baseline, BaselineEntry
from wavecast.benchmarking.kpis import KPIS, Kpi
from wavecast.errors import InputError, UnknownName, UsageError, WavecastError

ENTRIES = {
    ("operator b rows=4", "mi300x"): BaselineEntry(
        {"vgprs": 20.0, "predicted_seconds": 1.5e-6}, "c", "t"
    ),
    ("operator a rows=4", "rx7900xtx"): BaselineEntry({"spills": 0.0}),
}
GATE = '[tool.wavecast.gate]\narch = "gfx942"\n'


def test_a_baseline_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    baseline.write(Baseline(ENTRIES), path)
    assert baseline.read(path) == Baseline(ENTRIES)
    text = path.read_text()
    validated(json.loads(text), "wavecast.baseline/1")
    assert text.index('"operator a') < text.index('"operator b')
    assert '"vgprs": 20\n' in text
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no baseline at .*--update, and commit it"),
        ("", "is empty .*--update"),
        ('{"schema": "wavecast.baseline/1", "subjects": {}}', "has no subjects .*--update"),
        ('{"schema": "wavecast.baseline/2", "subjects": {}}', "version 2.*newer wavecast: upgrade"),
        ('{"schema": "wavecast.compare/1"}', "not a baseline of wavecast gate"),
        ("[]", "not a baseline of wavecast gate"),
        ('{\n<<<<<<< HEAD\n "a": 1}', "baseline.json:2.*conflict markers"),
        ('{"schema": "wavecast.baseline/1", "subjects": {"a": {"b": 3}}}', "is not a baseline: "),
        ('{"schema": "wavecast.baseline/1", "subjects": {"a": {}}}', "'a' lacks the kind and name"),
        (
            '{"schema": "wavecast.baseline/1", "subjects": {"f a": {"b": {"figures": {"c": 3}}}}}',
            "unknown KPI 'c'",
        ),
    ],
)
def test_a_baseline_that_cannot_be_used(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "baseline.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=said):
        baseline.read(path)


def read(folder: Path, text: str) -> settings.GateSettings:
    (folder / "pyproject.toml").write_text(text)
    return settings.read(folder)


def test_subjects(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text("")
    found = read(
        tmp_path,
        GATE
        + "execute = true\n"
        + 'subjects = ["softmax", "kernels:f", "bench.py",\n'
        + '  { operator = "rms_norm", axes = { rows = "2^2..2^4", dtype = ["bf16"] }, '
        + 'arch = ["gfx1100"], execute = false, thresholds = { vgprs = 4 } }]\n'
        + "[tool.wavecast.gate.thresholds]\nspills = 2\n",
    )
    kinds = [(guard.kind, guard.name) for guard in found.guards]
    assert kinds[:3] == [("operator", "softmax"), ("callable", "kernels:f"), ("kernel", "bench.py")]
    points = [dict(guard.axes) for guard in found.guards[3:]]
    assert points == [{"rows": rows, "dtype": "bfloat16"} for rows in (4, 8, 16)]
    first, last = found.guards[0], found.guards[-1]
    assert (first.devices, first.execute) == (("mi300x",), True)
    assert (last.devices, last.execute) == (("rx7900xtx",), False)
    for guard in (first, last):
        spills = guard.thresholds.of("spills")
        assert spills is not None
        assert spills.change == 2
    assert [guard.name for guard in found.select(["soft*"])] == ["softmax"]
    with pytest.raises(UnknownName, match="softmax"):
        found.select(["softmaxx"])
    assert found.baseline == tmp_path / settings.BASELINE


def test_arch_of_all_verbs(tmp_path: Path) -> None:
    text = '[tool.wavecast]\narch = "gfx1100"\n[tool.wavecast.gate]\nsubjects = ["softmax"]\n'
    assert read(tmp_path, text).guards[0].devices == ("rx7900xtx",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[project]\nname = 'a'\n", "has no .tool.wavecast.gate."),
        (GATE, "names no subjects"),
        (GATE + "subjects = []\n", "names no subjects"),
        (GATE + 'subject = ["softmax"]\n', "'subject' .*nearest known: subjects"),
        (GATE + "subjects = [3]\n", "a subject is a text or a table, not 3"),
        (GATE + 'subjects = ["k.hip"]\n', "k.hip cannot be a subject"),
        (GATE + "subjects = [{ axes = {} }]\n", "one operator, function, script or profile"),
        (GATE + 'subjects = [{ operator = "a", axis = {} }]\n', "'axis' .*nearest known: axes"),
        (GATE + 'subjects = [{ script = "no.py" }]\n', "no such script"),
        (GATE + 'subjects = [{ operator = "a", axes = { n = [] } }]\n', "axis n has no values"),
        (GATE + 'subjects = ["a", "a"]\n', "names a on mi300x twice"),
        (GATE + 'strict = 1\nsubjects = ["a"]\n', "strict is true or false"),
        (GATE + 'subjects = ["a"]\nthresholds = { vgpr = 3 }\n', "nearest known: .*vgprs"),
        ('[tool.wavecast.gate]\nsubjects = ["a"]\n', "no arch is named"),
        (GATE.replace("gfx942", "gfx9") + 'subjects = ["a"]\n', "gfx9"),
        ("[tool.wavecast.gate\n", "pyproject.toml"),
    ],
)
def test_settings_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(WavecastError, match=said):
        read(tmp_path, text)


def test_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    with pytest.raises(InputError, match=r"no pyproject\.toml"):
        settings.read(tmp_path)


def test_a_subject_that_is_a_mistake_is_told_with_its_table(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a function is named module:function"):
        read(tmp_path, GATE + 'subjects = [{ function = "kernels" }]\n')


@pytest.mark.parametrize("kpi", KPIS.values(), ids=lambda kpi: kpi.name)
def test_the_table_of_thresholds_in_the_docs(kpi: Kpi) -> None:
    text = (Path(__file__).parents[3] / "docs" / "ci.md").read_text(encoding="utf-8")
    usual = f"{kpi.threshold:.0%}" if kpi.threshold else "0"
    assert f"| `{kpi.name}` | {usual} | {kpi.meaning} |" in text
