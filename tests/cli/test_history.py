"""`wavecast history` and `wavecast store`: output, files, exit codes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

import wavecast
from tests.benchmarking.history.sample import fill, nightly
from tests.documents.support import validated
from wavecast.api.store import check, export, import_files, stored_runs
from wavecast.benchmarking.store.sqlite import open_store
from wavecast.cli.main import run
from wavecast.errors import UnknownName, UsageError


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bench.sqlite"
    with open_store(path) as opened:
        fill(opened, nightly([""] * 20))
    monkeypatch.setenv("WAVECAST_STORE", str(path))
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)
    return path


def invoke(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        run([*map(str, arguments)])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_text(capsys: pytest.CaptureFixture[str], store: Path) -> None:
    code, out, _ = invoke(capsys, "history", "softmax")
    assert code == 0
    assert "slower  measured_seconds 30" in out
    assert "worse  spills 0 → 14" in out
    assert "triton 3.8.0 → 3.9.0, other machine code" in out
    assert "2 of 3 figures changed over 20 runs." in out
    assert "▁▁▁▁▁▁▁▁████████▁▁▁▁" in out
    assert "\x1b" not in out
    _, out, _ = invoke(capsys, "history", "--kpi", "spills")
    assert "1 that did not are not shown (--all)" in out
    _, out, _ = invoke(capsys, "history", "--kpi", "spills", "--all")
    assert "not shown" not in out
    assert "operator copy" in out


def test_json(capsys: pytest.CaptureFixture[str], store: Path) -> None:
    code, out, _ = invoke(capsys, "history", "softmax", "--format", "json")
    document = validated(json.loads(out), "wavecast.history/1")
    assert code == 0
    (times,) = [one for one in document["series"] if one["kpi"] == "measured_seconds"]
    assert [change["run"] for change in times["changes"]] == ["run08", "run16"]
    assert len(times["points"]) == 20


def test_python_gives_the_document_of_the_command(
    capsys: pytest.CaptureFixture[str], store: Path
) -> None:
    _, out, _ = invoke(capsys, "history", "softmax", "--kpi", "spills", "--format", "json")
    assert json.loads(out) == wavecast.history("softmax", kpis="spills").to_dict()
    _, out, _ = invoke(capsys, "history", "--all")
    assert out == str(wavecast.history(everything=True))
    with pytest.raises(UsageError, match="--minimum: -1 is not a number, 0 or more"):
        wavecast.history(minimum=-1)


def test_files(capsys: pytest.CaptureFixture[str], store: Path, tmp_path: Path) -> None:
    assert invoke(capsys, "history", "-o", "h.html") == (0, "", "")
    assert (tmp_path / "h.html").read_text().startswith("<!doctype html>")
    assert invoke(capsys, "history", "-o", "h.json")[0] == 0
    assert json.loads((tmp_path / "h.json").read_text())["series"]
    assert invoke(capsys, "history", "-o", "h.txt")[0] == 0
    assert "figures changed" in (tmp_path / "h.txt").read_text()


def test_what_is_wrong(capsys: pytest.CaptureFixture[str], store: Path, tmp_path: Path) -> None:
    assert invoke(capsys, "history", "nothing")[0] == 3
    assert invoke(capsys, "history", "(")[0] == 2
    code, _, err = invoke(capsys, "history", "--kpi", "spils")
    assert (code, "nearest known: spills" in err) == (2, True)
    assert invoke(capsys, "history", "--store", tmp_path / "none")[0] == 2


def test_export_and_import(capsys: pytest.CaptureFixture[str], store: Path, tmp_path: Path) -> None:
    code, out, _ = invoke(capsys, "store", "export", "a.jsonl", "--runs", "run03,last")
    assert (code, out) == (0, "12 rows of 2 runs in a.jsonl\n")
    code, out, _ = invoke(capsys, "store", "import", "a.jsonl", "--store", "other.sqlite")
    assert (code, out.count("2 records")) == (0, 2)
    code, out, _ = invoke(capsys, "store", "import", "a.jsonl")
    assert (code, out.count("0 records, 2 were there")) == (0, 2)
    code, out, _ = invoke(capsys, "store", "list", "--store", "other.sqlite", "--format", "json")
    assert [one["id"] for one in json.loads(out)] == ["run03", "run19"]
    assert json.loads(out) == stored_runs(store="other.sqlite").to_dict()
    _, out, _ = invoke(capsys, "store", "list")
    assert "interrupted" in out
    assert "nightly" in out
    code, _, err = invoke(capsys, "store", "import", store)
    assert (code, "no known format" in err) == (2, True)
    assert invoke(capsys, "store", "import")[0] == 2
    assert invoke(capsys, "store", "export", "missing/a.csv")[0] == 2
    assert "rocprofv3" in invoke(capsys, "store", "import", "--formats")[1]
    with pytest.raises(UnknownName, match="rocprof"):
        import_files("a.jsonl", format="rocprof")
    assert import_files("a.jsonl", store="third.sqlite").to_dict()[0]["format"] == "wavecast"
    assert str(export("b.csv", runs="last")) == "6 rows of 1 run in b.csv\n"


def test_check_and_salvage(capsys: pytest.CaptureFixture[str], store: Path) -> None:
    code, out, _ = invoke(capsys, "store", "check")
    assert (code, "nothing is damaged" in out) == (0, True)
    database = sqlite3.connect(store)
    database.execute("INSERT INTO records (run, subject, device, body) VALUES ('run01','','','')")
    database.commit()
    database.close()
    code, out, _ = invoke(capsys, "store", "check")
    assert (code, "damaged: record 41 of run run01" in out) == (1, True)
    assert invoke(capsys, "store", "export", "a.csv")[0] == 2
    assert check().exit_code() == 1
    code, out, err = invoke(capsys, "store", "export", "a.csv", "--salvage")
    assert (code, "left out: record 41" in err) == (1, True)
    assert "120 rows of 20 runs" in out
