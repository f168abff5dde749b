"""Nothing measured is lost: parallel writers, killed ones, locked, damaged and foreign files."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from wavecast.benchmarking.records import (
    BenchRecord,
    BenchRun,
    BenchSubject,
    Conditions,
    Environment,
    Figure,
)
from wavecast.benchmarking.store.select import records_of, select_runs
from wavecast.benchmarking.store.sqlite import VERSION, open_store
from wavecast.errors import StoreError, UnknownName, UsageError

RECORD = BenchRecord(
    BenchSubject("operator", "rms_norm", {"rows": 8, "dtype": "bfloat16"}),
    Environment("mi300x", "gfx942", emulated=True, commit="0123456789abc"),
    Conditions(timing="predicted"),
    {
        "predicted_seconds": Figure(1.5e-5, "predicted", low=1.2e-5, high=2e-5),
        "measured_seconds": Figure(1.6e-5, "measured", samples=(1.5e-5, 1.6e-5, 1.7e-5)),
    },
    digest="abc",
    notes=("ein Wörtchen",),
    sensors={"clock_mhz": 2100.0},
)
RUN = BenchRun("a1", "2026-01-01T00:00:00Z", label="main", commit="0123456789abc")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "bench.sqlite"


def test_what_was_kept_comes_back(path: Path) -> None:
    with open_store(path) as store:
        store.begin(RUN)
        store.add("a1", RECORD)
        store.finish("a1", "2026-01-01T00:01:00Z")
    with open_store(path, create=False) as store:
        assert store.runs() == (replace(RUN, finished="2026-01-01T00:01:00Z"),)
        assert list(store.records("a1")) == [RECORD]
        assert records_of(store, store.runs()) == {"a1": [RECORD]}


def test_an_interrupted_run_counts(path: Path) -> None:
    with open_store(path) as store:
        store.begin(RUN)
        store.add("a1", RECORD)
    with open_store(path) as store:
        assert store.runs()[0].finished == ""
        assert len(list(store.records("a1"))) == 1


def test_nothing_is_ever_changed(path: Path) -> None:
    with open_store(path) as store:
        store.begin(RUN)
        store.add("a1", RECORD)
        with pytest.raises(StoreError, match="UNIQUE"):
            store.begin(RUN)
        with pytest.raises(StoreError, match="FOREIGN KEY"):
            store.add("unknown", RECORD)
    database = sqlite3.connect(path)
    for statement in ("DELETE FROM records", "UPDATE records SET body = ''", "DELETE FROM runs"):
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            database.execute(statement)
    database.close()


def _write(path: str, number: int, count: int) -> None:
    with open_store(path) as store:
        store.begin(replace(RUN, id=f"run{number}"))
        for _ in range(count):
            store.add(f"run{number}", RECORD)


def test_parallel_writers(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(str(path), n, 25)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    with open_store(path) as store:
        assert [len(list(store.records(run.id))) for run in store.runs()] == [25] * 4


def _create(paths: list[Path], start: Barrier) -> None:
    for path in paths:
        start.wait(60)
        open_store(path).close()


def test_parallel_creators(tmp_path: Path) -> None:
    """SQLite does not wait where several connections switch a new file to WAL mode at once."""
    paths = [tmp_path / f"{n}.sqlite" for n in range(30)]
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(6)
    creators = [context.Process(target=_create, args=(paths, start)) for _ in range(6)]
    for creator in creators:
        creator.start()
    for creator in creators:
        creator.join()
    assert [creator.exitcode for creator in creators] == [0] * 6


_ENDLESS = """
import sys
from tests.benchmarking.store.test_sqlite import RECORD, RUN
from wavecast.benchmarking.store.sqlite import open_store
store = open_store(sys.argv[1])
store.begin(RUN)
while True:
    store.add("a1", RECORD)
    print("kept", flush=True)
"""


def test_a_killed_writer_loses_nothing_it_was_told_is_kept(path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", _ENDLESS, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for _ in range(20):
        assert writer.stdout.readline() == "kept\n"
    os.kill(writer.pid, signal.SIGKILL)
    told = 20 + writer.stdout.read().count("kept\n")
    writer.wait()
    writer.stdout.close()
    with open_store(path) as store:
        kept = list(store.records("a1"))
        assert len(kept) in (told, told + 1)
        assert all(record == RECORD for record in kept)
        store.add("a1", RECORD)


def test_a_locked_store(path: Path) -> None:
    with open_store(path) as store:
        store.begin(RUN)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    with open_store(path, wait=0.1) as store, pytest.raises(StoreError, match="another process"):
        store.add("a1", RECORD)
    assert time.monotonic() - started < 30
    holder.execute("ROLLBACK")
    holder.close()


def test_a_full_disk(path: Path) -> None:
    with open_store(path) as store:
        store.begin(RUN)
        store.add("a1", RECORD)
        pages = store._database.execute("PRAGMA page_count").fetchone()[0]
        store._database.execute(f"PRAGMA max_page_count = {pages}")
        big = replace(RECORD, notes=("x" * 100_000,))
        with pytest.raises(StoreError, match=r"full.*nothing measured before is lost"):
            store.add("a1", big)
        assert list(store.records("a1")) == [RECORD]


def test_files_that_are_no_stores(tmp_path: Path, path: Path) -> None:
    with pytest.raises(StoreError, match="no measurements"):
        open_store(path, create=False)
    junk = tmp_path / "junk"
    junk.write_bytes(b"not a database " * 100)
    with pytest.raises(StoreError, match="damaged"):
        open_store(junk)
    other = tmp_path / "other"
    database = sqlite3.connect(other)
    database.execute("CREATE TABLE t (x)")
    database.close()
    with pytest.raises(StoreError, match="something else"):
        open_store(other)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot"):
        open_store(tmp_path / "file" / "bench.sqlite")


def test_a_newer_schema_is_refused(path: Path) -> None:
    with open_store(path):
        pass
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {VERSION + 1}")
    database.close()
    with pytest.raises(StoreError, match=rf"schema {VERSION + 1}.*a newer wavecast"):
        open_store(path)


def test_a_record_that_cannot_be_read_is_named(path: Path) -> None:
    with open_store(path) as store:
        store.begin(RUN)
    database = sqlite3.connect(path)
    database.execute("INSERT INTO records (run, subject, device, body) VALUES ('a1','','','{}')")
    database.commit()
    database.close()
    with open_store(path) as store, pytest.raises(StoreError, match="record 1"):
        list(store.records("a1"))


RUNS = (
    BenchRun("aa1", "2026-01-01", label="main", commit="1111111aaaa"),
    BenchRun("aa2", "2026-01-02", label="main", commit="2222222bbbb"),
    BenchRun("ab3", "2026-01-03", commit="2222222bbbb"),
)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("last", ["ab3"]),
        ("last~2", ["aa1"]),
        ("main", ["aa1", "aa2"]),
        ("2222222", ["aa2", "ab3"]),
        ("ab", ["ab3"]),
        ("aa1, last", ["aa1", "ab3"]),
    ],
)
def test_runs_by_name(text: str, ids: list[str]) -> None:
    assert [run.id for run in select_runs(RUNS, text)] == ids


def test_runs_that_are_not_there() -> None:
    with pytest.raises(UnknownName, match="nearest known: main"):
        select_runs(RUNS, "mian")
    with pytest.raises(UsageError, match="2 runs begin"):
        select_runs(RUNS, "aa")
    with pytest.raises(UsageError, match="one before them"):
        select_runs(RUNS, "last~3")
    with pytest.raises(UnknownName):
        select_runs((), "")
