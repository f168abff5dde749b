"""Exports come back as they were, whatever was measured; damage is told and the rest is saved."""

from __future__ import annotations

import csv
import json
import sqlite3
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.benchmarking.store.sample import measured
from tests.benchmarking.store.test_sqlite import RECORD, RUN
from wavecast.benchmarking.records import BenchRecord, BenchRun
from wavecast.benchmarking.store import rows
from wavecast.benchmarking.store.check import check, readable
from wavecast.benchmarking.store.export import FORMATS, export
from wavecast.benchmarking.store.importers import ImportLabels, read_file
from wavecast.benchmarking.store.keep import keep
from wavecast.benchmarking.store.sqlite import open_store
from wavecast.errors import InputError, StoreError, UnknownName, UsageError

pytest.importorskip("pyarrow")

ENDED = replace(RUN, finished="2026-01-01T00:01:00Z")
BARE = replace(RECORD, figures={}, refused="faster than the roofline floor")
MEASURED = [(ENDED, [RECORD, BARE, RECORD]), (BenchRun("b2", "2026-01-02"), [])]


@pytest.mark.parametrize("ending", FORMATS)
@settings(max_examples=40, deadline=None)
@given(runs=measured())
def test_every_format_comes_back(
    ending: str,
    runs: list[tuple[BenchRun, list[BenchRecord]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / f"export{ending}"
    export(path, runs)
    back = read_file(path, "wavecast").runs
    assert [(run, list(records)) for run, records in back] == runs


@pytest.mark.parametrize("ending", FORMATS)
def test_a_format_is_recognised(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"export{ending}"
    assert export(path, MEASURED) == 6
    found = read_file(path)
    assert found.format == "wavecast"
    assert [(run, list(records)) for run, records in found.runs] == MEASURED
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_every_field_has_a_column() -> None:
    counted = sum(len(fields(kind)) for kind in rows._PARTS.values()) - len(rows._WHOLE)
    assert len(rows.COLUMNS) == counted + len(("record", "kpi"))


def test_a_table_for_others(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    export(path, MEASURED)
    with path.open(newline="", encoding="utf-8") as file:
        first = next(csv.DictReader(file))
    assert first["subject_name"] == "rms_norm"
    assert json.loads(first["subject_axes"]) == {"rows": 8, "dtype": "bfloat16"}
    assert (first["kpi"], float(first["value"])) == ("predicted_seconds", 1.5e-5)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="xlsx"):
        export(tmp_path / "a.xlsx", MEASURED)
    long = replace(RECORD.figures["measured_seconds"], value=2**53 + 1)
    big = replace(RECORD, figures={"global_bytes": long})
    with pytest.raises(InputError, match="too long for Parquet"):
        export(tmp_path / "a.parquet", [(RUN, [big])])
    assert not list(tmp_path.iterdir())


def test_files_that_are_no_exports(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("run_id,kpi\nx,y\n")
    with pytest.raises(InputError, match="not a valid wavecast file"):
        read_file(path)
    good = tmp_path / "b.jsonl"
    export(good, MEASURED)
    good.write_text(good.read_text().replace('"subject_name": "rms_norm"', '"subject_name": null'))
    with pytest.raises(InputError, match="subject_name is empty"):
        read_file(good)
    good.write_text(good.read_text()[:-40])
    with pytest.raises(InputError, match=r"b\.jsonl:"):
        read_file(good)
    other = tmp_path / "c.parquet"
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"x": [1]}), other)
    with pytest.raises(InputError, match="something else"):
        read_file(other)
    other.write_bytes(other.read_bytes()[:-9])
    with pytest.raises(InputError, match="not a Parquet file"):
        read_file(other)
    export(good, MEASURED)
    with pytest.raises(UsageError, match="names what was measured"):
        read_file(good, labels=ImportLabels(label="x"))


def test_runs_are_kept_once_and_completed(tmp_path: Path) -> None:
    with open_store(tmp_path / "bench.sqlite") as store:
        first = keep(store, [(replace(ENDED, finished=""), [RECORD])], complete=False)
        assert [(kept.new, kept.known) for kept in first] == [(1, 0)]
        again = keep(store, MEASURED, complete=False)
        assert [(kept.new, kept.known) for kept in again] == [(2, 1), (0, 0)]
        assert [(run, list(store.records(run.id))) for run in store.runs()] == MEASURED
        with pytest.raises(StoreError, match="other records"):
            keep(store, [(ENDED, [BARE])], complete=False)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "bench.sqlite"
    with open_store(path) as store:
        keep(store, MEASURED, complete=False)
    database = sqlite3.connect(path)
    database.execute("INSERT INTO records (run, subject, device, body) VALUES ('a1','','','{}')")
    database.commit()
    database.close()
    return path


def test_check_reads_every_record(damaged: Path) -> None:
    found = check(damaged)
    assert (found.runs, found.records, found.interrupted) == (2, 3, ["b2"])
    assert len(found.problems) == 1
    assert "record 4 of run a1" in found.problems[0]


def test_pages_that_are_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "bench.sqlite"
    record = replace(RECORD, notes=("x" * 3000,))
    with open_store(path) as store:
        keep(store, [(ENDED, [record] * 40)], complete=False)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xee" * 4096
    path.write_bytes(content)
    found = check(path)
    assert found.problems
    assert 30 <= found.records < 40
    problems: list[str] = []
    assert all(one == record for one in readable(path, ENDED, problems))
    assert problems


def test_a_whole_store(tmp_path: Path) -> None:
    path = tmp_path / "bench.sqlite"
    with open_store(path) as store:
        keep(store, MEASURED, complete=True)
    found = check(path)
    assert (found.runs, found.records, found.problems) == (2, 3, [])
    with pytest.raises(StoreError, match="no measurements"):
        check(tmp_path / "none")
