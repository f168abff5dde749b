"""Measurements as files for other tools: CSV, JSON, JSON lines, Parquet.

One row per figure (`rows.COLUMNS`). Cells that are lists or objects are JSON text in CSV; in
Parquet samples and notes are lists. Each format comes back as it was
(`importers.read_file`).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

from wavecast import files
from wavecast.benchmarking.store.rows import COLUMNS, Kind, Measured, Row, rows
from wavecast.errors import InputError, MissingTool, UnknownName
from wavecast.extras import install_hint

SCHEMA: Final = "wavecast.measurements/1"
_BATCH: Final = 10_000


def export(path: Path, measured: Measured) -> int:
    """Write a file in the format its name ends with; returns the number of rows. The file appears
    whole or not at all.

    Raises UnknownName for another ending, MissingTool without pyarrow, InputError for a number that
    Parquet cannot hold, OSError.
    """
    write = FORMATS.get(path.suffix.lower())
    if write is None:
        raise UnknownName("format of exports", path.suffix or path.name, FORMATS)
    with files.atomic(path, durable=True) as temporary:
        return write(temporary, rows(measured))


def cell(value: Any, kind: Kind) -> str:
    """A cell of a CSV file; `rows` come back by `importers.wavecast`."""
    if value is None:
        return ""
    return value if kind == "text" else _json(value)


def _write_csv(path: Path, table_rows: Iterator[Row]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in table_rows:
            writer.writerow([cell(row[name], kind) for name, kind in COLUMNS.items()])
            count += 1
    return count


def _write_lines(path: Path, table_rows: Iterator[Row]) -> int:
    with path.open("w", encoding="utf-8") as file:
        return _lines(file, table_rows, "\n")


def _write_json(path: Path, table_rows: Iterator[Row]) -> int:
    with path.open("w", encoding="utf-8") as file:
        file.write(f'{{"schema": "{SCHEMA}", "rows": [\n')
        count = _lines(file, table_rows, ",\n", last="\n")
        file.write("]}\n")
    return count


def _lines(file: IO[str], table_rows: Iterator[Row], between: str, last: str = "") -> int:
    count = 0
    for row in table_rows:
        file.write((between if count else "") + _json(row))
        count += 1
    file.write(last if count and last else "\n" if count else "")
    return count


def _write_parquet(path: Path, table_rows: Iterator[Row]) -> int:
    arrow, parquet = arrow_modules()
    types: Mapping[Kind, Any] = {
        "text": arrow.string(),
        "flag": arrow.bool_(),
        "whole": arrow.int64(),
        "number": arrow.float64(),
        "object": arrow.string(),
        "texts": arrow.list_(arrow.string()),
        "numbers": arrow.list_(arrow.float64()),
    }
    schema = arrow.schema(
        [(name, types[kind]) for name, kind in COLUMNS.items()], metadata={"schema": SCHEMA}
    )
    count = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(islice(table_rows, _BATCH)):
            columns = [
                arrow.array([_cell(row[name], kind) for row in batch], type=types[kind])
                for name, kind in COLUMNS.items()
            ]
            writer.write_table(arrow.table(columns, schema=schema))
            count += len(batch)
    return count


def _cell(value: Any, kind: Kind) -> Any:
    """A cell as Parquet holds it."""
    if value is None:
        return None
    match kind:
        case "object":
            return _json(value)
        case "number":
            return _exact(value)
        case "numbers":
            return [_exact(number) for number in value]
    return value


def _exact(value: float) -> float:
    if float(value) != value:
        raise InputError(f"{value} is too long for Parquet", hint="export JSON lines (.jsonl)")
    return float(value)


def arrow_modules() -> tuple[Any, Any]:
    """(pyarrow, pyarrow.parquet). Raises MissingTool."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingTool("Parquet needs pyarrow", hint=install_hint("validate")) from None
    return pyarrow, parquet


def _json(value: Any) -> str:
    plain = dict(value) if isinstance(value, Mapping) else value
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, sort_keys=False)


FORMATS: Final[Mapping[str, Callable[[Path, Iterator[Row]], int]]] = {
    ".parquet": _write_parquet,
    ".json": _write_json,
    ".jsonl": _write_lines,
    ".csv": _write_csv,
}
"""Ending of the file's name -> what writes it."""

__all__ = ["FORMATS", "SCHEMA", "arrow_modules", "cell", "export"]
