"""From files to scores: formats, repeats, rows that cannot be predicted, sampling, intervals."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.benchmarking.accuracy.sample import Copy, outcome
from wavecast.arch import Device
from wavecast.benchmarking.accuracy import coverage, importers, predicting
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.validate import ValidateOptions, load, validate
from wavecast.errors import InputError, NothingAnalysed, UnknownName
from wavecast.perfmodel import ops
from wavecast.perfmodel.prediction import IntervalBasis, Prediction

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
    known = importers.all_importers()
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


def test_coverage_is_counted_by_distance_from_what_was_measured() -> None:
    basis = IntervalBasis("chip not measured", 90, 9, "copies, chips left out", "")
    near = [outcome(1.0, 1000 + n) for n in range(4)]
    far = [
        replace(one, prediction=replace(one.prediction, basis=basis, low=5e-4, high=2e-3))
        for one in (outcome(1.0), outcome(2.5))
    ]
    first, second = coverage.coverage([*near, *far])
    assert (first.op, first.distance, first.n, first.coverage) == (
        *("copy", "chip not measured", 2, 0.5),
    )
    assert first.width == pytest.approx(math.log(4))
    assert (second.distance, second.n) == ("unknown", 4)


@dataclass(frozen=True, slots=True)
class Executed(Copy):
    """A copy that executes code, here of Python: it allocates `megabytes` and keeps them."""

    executes_code: ClassVar[bool] = True
    megabytes: int = 0
    dies: bool = False

    def predict(self, device: Device) -> Prediction:
        if self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        KEPT.append(b"1" * (self.megabytes << 20))
        return replace(outcome(1.0).prediction, seconds=float(len(KEPT)))


KEPT: list[bytes] = []


def test_what_executes_code_leaves_nothing_in_this_process() -> None:
    asked = [(Executed(n + 1, megabytes=1), "mi300x") for n in range(2 * predicting.RECYCLED)]
    counts: list[int] = []
    answers = predicting.predict(asked, progress=counts.append)
    seconds = [answer.prediction.seconds for answer in answers if answer.prediction]
    assert seconds == 2 * [n + 1.0 for n in range(predicting.RECYCLED)]
    assert not KEPT
    assert counts == [predicting.RECYCLED, 2 * predicting.RECYCLED]


def test_a_problem_whose_process_dies_is_counted_and_takes_no_other_with_it() -> None:
    asked = [(Executed(n + 1, dies=n == 1), "mi300x") for n in range(3)]
    answers = predicting.predict(asked)
    assert [answer.prediction is not None for answer in answers] == [True, False, True]
    assert answers[1].reason == "the process that predicted it died (SIGKILL)"


class Fragile(importers.Importer):
    """An importer that raises where it should give a case with the reason."""

    name: ClassVar[str] = "fragile"
    columns: ClassVar = (frozenset({"count", "fragile"}),)

    def cases(self, frame: Any) -> Iterator[Case]:
        for count in frame["count"]:
            if count < 1:
                raise RuntimeError(f"sizes must be positive, not ({count},)")
            yield Case(kind="copy", op=Copy(int(count)), device="mi300x", seconds=1e-3)


def test_an_importer_that_raises_loses_one_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("count,fragile\n" + "".join(f"{n},1\n" for n in (5, 6, 0, 7, 8)))
    file = validate([path], ValidateOptions(importers=(Fragile(),))).files[0]
    assert (file.rows, file.problems, file.predicted) == (5, 4, 4)
    assert file.not_predicted == {"unreadable cell: sizes must be positive, not (0,)": 1}


def test_the_general_format_reads_options_and_whole_numbers(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {"op": ["copy"], "shape": [4096], "seconds": [1e-3], "arch": ["gfx942"], "cu_count": [304]}
    )
    (found,) = importers.importer("general").cases(frame)
    assert isinstance(found, Case)
    assert (found.op, found.device, found.seconds) == (Copy(4096), "mi300x", 1e-3)
