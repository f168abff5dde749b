"""Whether a store is whole, and what of a damaged one can still be read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wavecast.benchmarking.records import BenchRecord, BenchRun
from wavecast.benchmarking.store.sqlite import open_store
from wavecast.errors import StoreError

_MOST: Final = 100
"""Lines of SQLite's own check."""


@dataclass(slots=True)
class Checked:
    """What is in a store. `interrupted` are runs that did not come to their end, which is no
    damage; `problems` say what is damaged, record by record."""

    runs: int = 0
    records: int = 0
    interrupted: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def check(path: Path) -> Checked:
    """Check the file's structure and read every record. Raises StoreError for a file that is no
    store at all."""
    report = Checked()
    with open_store(path, create=False) as store:
        try:
            runs = store.runs()
        except StoreError as error:
            report.problems.append(str(error))
            return report
    report.runs = len(runs)
    report.interrupted = [run.id for run in runs if not run.finished]
    with closing(_open(path)) as database:
        try:
            lines = database.execute(f"PRAGMA integrity_check({_MOST})").fetchall()
            report.problems += [str(line) for (line,) in lines if line != "ok"]
            lost = database.execute(
                "SELECT count(*) FROM records WHERE run NOT IN (SELECT id FROM runs)"
            ).fetchone()[0]
            if lost:
                report.problems.append(f"{lost} records of runs that are not there")
        except sqlite3.DatabaseError as error:
            report.problems.append(f"the file is damaged: {error}")
    for run in runs:
        report.records += sum(1 for _ in readable(path, run, report.problems))
    return report


def readable(path: Path, run: BenchRun, problems: list[str]) -> Iterator[BenchRecord]:
    """The records of a run that can be read, each by itself; why others cannot is appended to
    `problems`."""
    with closing(_open(path)) as database:
        for number in _numbers(database, run, problems):
            try:
                row = database.execute(
                    "SELECT run, body FROM records NOT INDEXED WHERE number = ?", (number,)
                ).fetchone()
                if row is not None and row[0] == run.id:
                    yield BenchRecord.from_json(row[1])
            except (KeyError, TypeError, ValueError, sqlite3.DatabaseError) as error:
                problems.append(f"record {number} of run {run.id} cannot be read: {error!r}")


def _numbers(database: sqlite3.Connection, run: BenchRun, problems: list[str]) -> list[int]:
    """By the index, or where that is damaged by counting through the table."""
    try:
        rows = database.execute(
            "SELECT number FROM records WHERE run = ? ORDER BY number", (run.id,)
        ).fetchall()
        return [number for (number,) in rows]
    except sqlite3.DatabaseError:
        pass
    try:
        last = database.execute("SELECT max(number) FROM records NOT INDEXED").fetchone()[0]
    except sqlite3.DatabaseError as error:
        problems.append(f"the records of run {run.id} cannot be found: {error}")
        return []
    return list(range(1, (last or 0) + 1))


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


__all__ = ["Checked", "check", "readable"]
