"""`wavecast validate`: formats, output, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wavecast
from wavecast.cli.main import run

pytest.importorskip("pandas")

ROWS = """op,shape,dtype,device,time_us
gemm,1024x1024x1024,bf16,mi300x,10
gemm,2048x2048x2048,bf16,mi300x,40
gemm,4096x4096x4096,bf16,mi300x,250
gemm,4096x4096x4096,bf16,mi300x,260
gemm,4096x4096,bf16,mi300x,1
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    return path


def invoke(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        run(["validate", *map(str, arguments)])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_text(capsys: pytest.CaptureFixture[str], rows: Path) -> None:
    code, out, _ = invoke(capsys, rows)
    assert code == 0
    assert "rows.csv" in out
    assert "1 not predicted" in out
    assert "Worst cases" in out
    assert "Worst cases" not in invoke(capsys, rows, "--detail", "brief")[1]


def test_json_and_html_go_to_files(
    capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path
) -> None:
    code, out, _ = invoke(capsys, rows, "--format", "json", "--cases")
    assert code == 0
    document = json.loads(out)
    assert document["scores"][0]["n"] == 3
    assert len(document["cases"]) == 3
    page = tmp_path / "page.html"
    assert invoke(capsys, rows, "-f", "html", "-o", page)[:2] == (0, "")
    assert page.read_text().startswith("<!doctype html>")


def test_python_gives_the_document_of_the_command(
    capsys: pytest.CaptureFixture[str], rows: Path
) -> None:
    out = invoke(capsys, rows, "-f", "json", "--cases", "--limit", 2)[1]
    report = wavecast.validate(rows, cases=True, limit="2")
    assert out == report.json()
    assert "Worst cases" in str(report)


def test_cells_that_are_no_times_are_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "cells.csv"
    times = ("fast", "-3", "0", "nan", "inf", "", "20")
    rows = (f"gemm,1024x1024x1024,bf16,mi300x,{time}\n" for time in times)
    path.write_text("op,shape,dtype,device,time_us\n" + "".join(rows))
    code, out, _ = invoke(capsys, path, "-f", "json")
    assert code == 0
    (file,) = json.loads(out)["files"]
    assert file["problems"] == 1
    assert sum(file["not_predicted"].values()) == len(times) - 1


@pytest.mark.parametrize(
    "text",
    [
        "op,shape,dtype,device,time_us\ngemm,16x16x16,bf16,mi300x,20,1,2\n",
        "op,shape,dtype,device,time_us\n",
        "op,shape\n1,2\n",
        "",
    ],
)
def test_what_is_no_table_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    code, out, error = invoke(capsys, path)
    assert (code, out) == (2, "")
    assert error.startswith(f"wavecast: {path}")
    assert error.count("\n") == 1


def test_documents_are_written(
    capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path
) -> None:
    docs = tmp_path / "accuracy.md"
    code, _, _ = invoke(capsys, rows, "--write-docs", docs, "-j", 1)
    assert code == 0
    assert "## Errors by op" in docs.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "no files of measurements given"),
        (["gone.csv"], 2, "no such file"),
        (["--limit", "0", "x.csv"], 2, "'0' is not an integer, 1 or more"),
        (["--measure", "--cases"], 2, "--cases does not apply to --measure"),
        (["--results", "folder", "x.csv"], 2, "--results belongs to --measure"),
    ],
)
def test_what_is_wrong_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    found, _, err = invoke(capsys, *arguments)
    assert found == code
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_nothing_to_predict_is_exit_code_3(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("op,shape,device,time_us\nsort,1,mi300x,1\n")
    code, _, err = invoke(capsys, path)
    assert code == 3
    assert "unknown operation 'sort'" in err
