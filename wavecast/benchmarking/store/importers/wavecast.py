"""Our own exports (`wavecast.benchmarking.store.export`), which come back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wavecast import files
from wavecast.benchmarking.store.export import SCHEMA, arrow_modules
from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.benchmarking.store.rows import COLUMNS, Kind, Row, from_rows
from wavecast.errors import InputError, UsageError

_MARKS = frozenset({"run_id", "kpi"})
"""Columns that only our tables have both of."""


def recognise(source: ImportedFile) -> bool:
    """A table with our columns, or a document that names its schema."""
    if source.content.startswith(b"PAR1"):
        return True
    document = source.json
    if isinstance(document, dict):
        return document.get("schema") == SCHEMA or set(document) >= _MARKS
    return _first_line(source) or set(source.columns) >= _MARKS


def read(source: ImportedFile, labels: ImportLabels) -> Imported:
    """All runs, with their ids. Raises UsageError."""
    if labels != ImportLabels():
        raise UsageError(
            "an export names what was measured: --label, --device and --commit do not apply"
        )
    return Imported(
        "wavecast", tuple((run, tuple(records)) for run, records in from_rows(_rows(source)))
    )


def _rows(source: ImportedFile) -> Iterator[Row]:
    if source.content.startswith(b"PAR1"):
        return _parquet(source)
    if source.json is not None and source.json.get("schema") == SCHEMA:
        return iter(source.json["rows"])
    if source.content.lstrip()[:1] == b"{":
        return _lines(source)
    return _csv(source)


def _first_line(source: ImportedFile) -> bool:
    """Whether it is JSON lines, and the first one is a row of ours."""
    if source.content[:1] != b"{":
        return False
    try:
        first = files.parse_json(source.content.split(b"\n", 1)[0])
    except ValueError:
        return False
    return isinstance(first, dict) and set(first) >= _MARKS


def _lines(source: ImportedFile) -> Iterator[Row]:
    for number, line in enumerate(source.content.split(b"\n"), 1):
        if line.strip():
            try:
                yield files.parse_json(line)
            except ValueError as error:
                raise InputError(f"{source.path}:{number}: {error}") from None


def _csv(source: ImportedFile) -> Iterator[Row]:
    for row in source.table():
        yield {name: _cell(row[name], kind, name) for name, kind in COLUMNS.items()}


_MAY_BE_EMPTY = frozenset({"kpi"})


def _cell(text: str, kind: Kind, name: str) -> Any:
    if kind == "text":
        return None if not text and name in _MAY_BE_EMPTY else text
    return files.parse_json(text) if text else None


def _parquet(source: ImportedFile) -> Iterator[Row]:
    arrow, parquet = arrow_modules()
    try:
        file = parquet.ParquetFile(arrow.BufferReader(source.content))
        metadata = file.schema_arrow.metadata or {}
        if metadata.get(b"schema") != SCHEMA.encode():
            raise InputError(f"{source.path} is a Parquet file of something else")
        objects = [name for name, kind in COLUMNS.items() if kind == "object"]
        for batch in file.iter_batches():
            for row in batch.to_pylist():
                for name in objects:
                    row[name] = None if row[name] is None else files.parse_json(row[name])
                yield row
    except arrow.ArrowInvalid as error:
        raise InputError(f"{source.path} is not a Parquet file: {error}") from None


__all__ = ["read", "recognise"]
