"""From files to scores: formats, repeats, rows that cannot be predicted, sampling, intervals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.bench.accuracy.sample import Copy, outcome
from wavecast import arch
from wavecast.bench.accuracy import importers, predicting, residuals
from wavecast.bench.accuracy.cases import Case
from wavecast.bench.accuracy.validate import load, validate
from wavecast.errors import InputError, NothingAnalysed, UnknownName
from wavecast.model import intervals, ops

pytest.importorskip("pandas")

ROWS = """op,shape,dtype,device,time_us,group
copy,1000000,fp32,mi300x,1000,a
copy,1000000,fp32,MI300X,1200,a
copy,1000000,fp32,mi300x,1100,b
copy,2000000,bf16,mi300x,1000,b
copy,huge,bf16,mi300x,1000,b
copy,3000000,bf16,mi999,1000,b
copy,0,bf16,mi300x,1000,b
copy,4000000,bf16,mi300x,,b
"""


@pytest.fixture(autouse=True)
def copies(monkeypatch: pytest.MonkeyPatch) -> None:
    def op(kind: str) -> type[ops.Op]:
        if kind != "copy":
            raise UnknownName("operation", kind, ["copy"])
        return Copy

    monkeypatch.setattr(ops, "op", op)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    return path


def test_repeats_count_once_and_every_row_is_accounted_for(rows: Path) -> None:
    found = validate([rows])
    file = found.files[0]
    assert (file.dataset, file.rows, file.cases, file.problems, file.predicted) == (
        *("general", 8, 8, 3, 2),
    )
    assert sum(file.not_predicted.values()) == 4
    assert "nothing is known of empty copies" in file.not_predicted
    assert any("mi999" in reason for reason in file.not_predicted)
    first = found.outcomes[0]
    assert (first.repeats, first.measured) == (3, pytest.approx(1.1e-3))
    assert first.ratio == pytest.approx(1 / 1.1)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_other_formats_hold_the_same(rows: Path, form: str) -> None:
    import pandas as pd

    frame = pd.read_csv(rows)
    other = rows.with_suffix(f".{form}")
    if form == "parquet":
        frame.to_parquet(other)
    else:
        frame.to_json(other, orient="records", lines=True)
    first, second = validate([rows]), validate([other])
    assert first.scores == second.scores
    assert first.files[0].not_predicted == second.files[0].not_predicted


def test_a_sample_is_always_the_same_and_keeps_alternatives(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    lines = [f"copy,{1000 + n},mi300x,{n + 1},p{n // 2}" for n in range(200)]
    path.write_text("\n".join(["op,shape,device,time_us,problem", *lines]))
    known = importers.registered()
    chosen = load(path, known, 50).problems
    assert chosen == load(path, known, 50).problems
    assert 50 <= len(chosen) < 52
    assert len({problem.case.problem for problem in chosen}) * 2 == len(chosen)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("gone.csv", None, "no such file"),
        ("empty.csv", "op,shape\n", "no rows"),
        ("other.csv", "a,b\n1,2\n", "no importer reads the columns a, b"),
        ("broken.parquet", "not parquet", "cannot be read"),
        ("notes.docx", "x", "not a .parquet"),
    ],
)
def test_files_that_are_no_data_set(
    tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message):
        validate([path])


def test_nothing_predicted_is_said(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("op,shape,device,time_us\nsort,10,mi300x,3\n")
    with pytest.raises(NothingAnalysed, match="unknown operation 'sort'"):
        validate([path])


def test_a_broken_predictor_is_named_and_hides_nothing() -> None:
    answers = predicting.predict([(Copy(1), "mi300x"), (Copy(2), "mi300x")])
    assert answers[0].reason.startswith("a bug in wavecast: ZeroDivisionError")
    assert answers[1].prediction is not None


def test_processes_give_the_same_answers_in_order() -> None:
    problems = [(Copy(size), "mi300x") for size in range(2, 3000)]
    assert predicting.predict(problems, jobs=2) == predicting.predict(problems, jobs=1)


GOOD = {"op": "copy", "shape": "1000", "device": "mi300x", "time_us": 10.0}


@pytest.mark.parametrize(
    ("name", "bad", "reason"),
    [
        ("rows.csv", "copy,1000,mi300x,10,5,6", "6 cells in 4 columns"),
        ("rows.csv", "copy,1000,mi300x,soon", "not a positive number"),
        ("rows.csv", "copy,1000,,10", "no known device"),
        ("rows.csv", "copy,huge,mi300x,10", "not a number of bytes"),
        ("rows.csv", "copy,1,mi300x,10", "a bug in wavecast: ZeroDivisionError"),
        ("rows.jsonl", '{"op": "copy"', "not a JSON object"),
        ("rows.jsonl", "[1, 2]", "not a JSON object"),
        ("rows.jsonl", '{"op": ["copy"], "shape": {}, "device": 3}', "unknown operation"),
        ("rows.jsonl", '{"op": "copy", "shape": "9", "arch": "gfx942", "cu_count": "many"}',
         "unreadable cell: could not convert string to float"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("first", [True, False])
def test_a_bad_row_is_counted_and_hides_no_other(
    tmp_path: Path, name: str, bad: str, reason: str, first: bool
) -> None:
    import json

    path, csv = tmp_path / name, name.endswith("csv")
    good = ",".join(map(str, GOOD.values())) if csv else json.dumps(GOOD)
    rows = [bad, good] if first else [good, bad]
    path.write_text("\n".join([*([",".join(GOOD)] if csv else []), *rows]) + "\n")
    file = validate([path]).files[0]
    assert (file.rows, file.predicted, sum(file.not_predicted.values())) == (2, 1, 1)
    assert reason in next(iter(file.not_predicted))


def test_a_prediction_that_is_no_time_is_a_bug() -> None:
    (answer,) = predicting.predict([(Copy(-3), "mi300x")])
    assert answer.prediction is None
    assert answer.reason.startswith("a bug in wavecast: a predicted time of -3")


def test_intervals_hold_what_they_have_not_seen() -> None:
    random = np.random.default_rng(1)
    shifts = random.normal(0, 0.2, 20)
    outcomes = [
        outcome(math.exp(random.normal(shifts[n % 20], 0.1)), 1000 + n, group=f"g{n % 20}")
        for n in range(2000)
    ]
    (row,) = residuals.coverage(outcomes)
    assert row.by_problem is not None
    assert row.by_group is not None
    assert 0.8 <= row.by_group < 0.9
    assert row.level > 0.8  # groups differ more than problems of one group do
    assert row.by_problem == pytest.approx(row.level, abs=0.03)
    alike = [outcome(math.exp(random.normal(0.1, 0.3)), 1000 + n) for n in range(1500)]
    (row,) = residuals.coverage(alike)
    assert row.by_group is None
    assert row.by_problem == pytest.approx(0.8, abs=0.02)


def test_written_residuals_are_what_the_model_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    import tomllib

    known = [outcome(1.25 if n % 2 else 0.8, 1000 + n) for n in range(100)]
    left_out = [residuals.LeftOut("copy", -math.log(2)) for _ in range(100)]
    document = tomllib.loads(residuals.document(residuals.fit(known, left_out)))
    rows = [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]
    by_target = {row["target"]: row for row in rows if row["op"] == "copy"}
    assert by_target["gfx942"]["low"] == pytest.approx(-math.log(1.25), abs=1e-4)
    assert by_target[""]["low"] == pytest.approx(-math.log(2), abs=1e-4)
    assert by_target[""]["high"] == pytest.approx(math.log(1.25), abs=1e-4)
    monkeypatch.setattr(intervals, "table", lambda: residuals.fit(known, left_out))
    (mi300x, mi355x) = (outcome(1.0, device=name) for name in ("mi300x", "mi355x"))
    assert intervals.residuals(mi300x.prediction, "copy", arch.load("mi300x"))[1] == ()
    row, notes = intervals.residuals(mi355x.prediction, "copy", arch.load("mi355x"))
    assert row.low == pytest.approx(-math.log(2))
    assert notes == ("copy was not measured on gfx950",)


def test_the_general_format_reads_options_and_whole_numbers(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {"op": ["copy"], "shape": [4096], "seconds": [1e-3], "arch": ["gfx942"], "cu_count": [304]}
    )
    (found,) = importers.importer("general").cases(frame)
    assert isinstance(found, Case)
    assert (found.op, found.device, found.seconds) == (Copy(4096), "mi300x", 1e-3)
