"""The store: one SQLite file in WAL mode.

Every record is one transaction that is synced to disk before `add` returns, so that a
process or machine that ends in the middle of one loses that one only. Many processes may write at
once; each waits for the lock. Triggers refuse to change or remove rows. A file of a newer schema is
refused, not guessed at.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wavecast.benchmarking.records import BenchRecord, BenchRun
from wavecast.benchmarking.store.base import Store
from wavecast.errors import StoreError

VERSION: Final = 1
"""The version of the schema, in the file's `user_version`."""
APPLICATION: Final = 0x57415645
"""`WAVE`, in the file's `application_id`: that it is ours."""
WAIT_SECONDS: Final = 60.0
"""How long a writer waits for others."""

_SCHEMA: Final = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY, started TEXT NOT NULL, label TEXT NOT NULL, command TEXT NOT NULL,
    commit_ TEXT NOT NULL, dirty INTEGER NOT NULL
) STRICT;
CREATE TABLE ends (run TEXT PRIMARY KEY REFERENCES runs(id), finished TEXT NOT NULL) STRICT;
CREATE TABLE records (
    number INTEGER PRIMARY KEY, run TEXT NOT NULL REFERENCES runs(id), subject TEXT NOT NULL,
    device TEXT NOT NULL, body TEXT NOT NULL
) STRICT;
CREATE INDEX records_of_runs ON records(run, number);
CREATE INDEX records_of_subjects ON records(subject, device);
"""
_APPEND_ONLY: Final = "\n".join(
    f"CREATE TRIGGER {table}_{what.lower()} BEFORE {what} ON {table} "
    "BEGIN SELECT RAISE(ABORT, 'measurements are never changed'); END;"
    for table in ("runs", "ends", "records")
    for what in ("UPDATE", "DELETE")
)


def open_store(path: str | Path, *, create: bool = True, wait: float = WAIT_SECONDS) -> Store:
    """Open a store, or make one where there is none and `create` says so.

    Raises StoreError for a missing or damaged file, one that is not a store, or of a newer version.
    """
    path = Path(path)
    if not path.exists():
        if not create:
            raise StoreError(f"no measurements at {path}", hint="create them with wavecast bench")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make {path.parent}: {error.strerror}") from None
    return SqliteStore(path, wait)


class SqliteStore(Store):
    """A store in a file. Use `open_store`."""

    def __init__(self, path: Path, wait: float) -> None:
        self._path = path
        with self._translate_errors("open"):
            self._database = sqlite3.connect(path, timeout=wait, isolation_level=None)
            self._prepare(wait)

    def begin(self, run: BenchRun) -> None:
        with self._translate_errors("write to"), self._writing():
            self._database.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)",
                (run.id, run.started, run.label, run.command, run.commit, int(run.dirty)),
            )
            if run.finished:
                self._database.execute("INSERT INTO ends VALUES (?, ?)", (run.id, run.finished))

    def add(self, run: str, record: BenchRecord) -> None:
        row = (run, record.subject.key, record.environment.device, record.to_json())
        with self._translate_errors("write to"), self._writing():
            self._database.execute(
                "INSERT INTO records (run, subject, device, body) VALUES (?, ?, ?, ?)", row
            )

    def finish(self, run: str, finished: str) -> None:
        with self._translate_errors("write to"), self._writing():
            self._database.execute("INSERT INTO ends VALUES (?, ?)", (run, finished))

    def runs(self) -> tuple[BenchRun, ...]:
        with self._translate_errors("read"):
            rows = self._database.execute(
                "SELECT id, started, label, command, commit_, dirty, coalesce(finished, '') "
                "FROM runs LEFT JOIN ends ON ends.run = runs.id ORDER BY started, runs.rowid"
            ).fetchall()
        return tuple(BenchRun(*row[:5], dirty=bool(row[5]), finished=row[6]) for row in rows)

    def records(self, run: str) -> Iterator[BenchRecord]:
        with self._translate_errors("read"):
            rows = self._database.execute(
                "SELECT number, body FROM records WHERE run = ? ORDER BY number", (run,)
            ).fetchall()
        for number, body in rows:
            try:
                yield BenchRecord.from_json(body)
            except (KeyError, TypeError, ValueError) as error:
                raise StoreError(
                    f"{self._path}: record {number} cannot be read: {error!r}",
                    hint="it was written by another version of wavecast",
                ) from None

    def close(self) -> None:
        self._database.close()

    def _prepare(self, wait: float) -> None:
        """Make the tables of a new file, or check those of an old one."""
        database = self._database
        if not self._has_tables():
            self._enable_wal(wait)
            with self._writing():
                if not self._has_tables():  # another process may have been quicker
                    for statement in _statements(_SCHEMA + _APPEND_ONLY):
                        database.execute(statement)
                    database.execute(f"PRAGMA application_id = {APPLICATION}")
                    database.execute(f"PRAGMA user_version = {VERSION}")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA foreign_keys = ON")

    def _enable_wal(self, wait: float) -> None:
        """Switch the file to WAL mode.

        SQLite does not wait for the lock where several connections switch at once: it says at once
        that the file is locked, since each holds what the others wait for.
        """
        deadline = time.monotonic() + wait
        while True:
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(0, 0.02))
            else:
                return

    def _has_tables(self) -> bool:
        """Whether the file has our tables. Raises StoreError when it has other ones, or newer."""
        tables, application, version = self._database.execute(
            "SELECT (SELECT count(*) FROM sqlite_master), application_id, user_version "
            "FROM pragma_application_id, pragma_user_version"
        ).fetchone()  # one statement: another process may be making them
        if tables and application != APPLICATION:
            raise StoreError(f"{self._path} is a database of something else")
        if version > VERSION:
            raise StoreError(
                f"{self._path} has schema {version}, this wavecast knows {VERSION}",
                hint="a newer wavecast wrote it, and reads it",
            )
        return bool(tables)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, which takes the lock at the beginning."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._database.in_transaction:  # SQLite itself ends it where the disk is full
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextlib.contextmanager
    def _translate_errors(self, what: str) -> Iterator[None]:
        """What SQLite says, as one clear line."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise StoreError(f"{self._path}: {error}") from None
        except sqlite3.DatabaseError as error:
            raise StoreError(f"cannot {what} {self._path}: {error}", hint=_hint(error)) from None


def _hint(error: sqlite3.DatabaseError) -> str:
    match getattr(error, "sqlite_errorname", "").split("_")[1:2]:
        case ["BUSY"] | ["LOCKED"]:
            return "another process holds it: wait, or end that one"
        case ["FULL"]:
            return "the disk is full: nothing measured before is lost"
        case ["CORRUPT"] | ["NOTADB"]:
            return "the file is damaged: restore a copy, or wavecast store export --salvage"
        case ["READONLY"] | ["CANTOPEN"] | ["PERM"]:
            return "is the folder there, and may you write to it?"
        case ["IOERR"]:
            return "the disk failed; a file system over the network may not do for WAL mode"
    return ""


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, also those that contain semicolons."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


__all__ = ["VERSION", "SqliteStore", "open_store"]
