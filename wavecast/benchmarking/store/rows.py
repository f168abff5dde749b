"""Records as flat rows, one per figure, and back: what exports hold.

A row repeats its run, subject, environment and conditions, so that it can be read alone. A run
without records has one row with an empty `record`, a record without figures one with an empty
`kpi`: nothing is lost on the way. Columns follow the fields of `records`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final, Literal

from wavecast.benchmarking.records import (
    BenchRecord,
    BenchRun,
    BenchSubject,
    Conditions,
    Environment,
    Figure,
)
from wavecast.errors import InputError
from wavecast.json_objects import checked_object

Kind = Literal["text", "flag", "whole", "number", "object", "texts", "numbers"]
Row = dict[str, Any]
Measured = Iterable[tuple[BenchRun, Iterable[BenchRecord]]]

_KINDS: Final[Mapping[str, Kind]] = {
    "str": "text",
    "Origin": "text",
    "bool": "flag",
    "float": "number",
    "float | None": "number",
    "tuple[str, ...]": "texts",
    "tuple[float, ...]": "numbers",
    "Mapping[str, Scalar]": "object",
    "Mapping[str, float]": "object",
}
_PARTS: Final = {
    "run_": BenchRun,
    "subject_": BenchSubject,
    "environment_": Environment,
    "conditions_": Conditions,
    "record_": BenchRecord,
    "": Figure,
}
_WHOLE: Final = frozenset({"subject", "environment", "conditions", "figures"})
"""Fields of a record that have separate columns."""


def _columns() -> dict[str, Kind]:
    columns: dict[str, Kind] = {}
    for prefix, kind in _PARTS.items():
        if kind is BenchRecord:
            columns["record"] = "whole"
        if kind is Figure:
            columns["kpi"] = "text"
        for field in fields(kind):
            if not (kind is BenchRecord and field.name in _WHOLE):
                columns[prefix + field.name] = _KINDS[str(field.type)]
    return columns


COLUMNS: Final[Mapping[str, Kind]] = _columns()
"""Column -> what its cells are. `object` is a JSON object."""


def rows(measured: Measured) -> Iterator[Row]:
    """One row per figure."""
    for run, records in measured:
        about_run = _flat("run_", run)
        number = -1
        for number, record in enumerate(records):
            about = {
                **about_run,
                "record": number,
                **_flat("subject_", record.subject),
                **_flat("environment_", record.environment),
                **_flat("conditions_", record.conditions),
                **_flat("record_", record),
            }
            if not record.figures:
                yield _complete(about)
            for name, figure in record.figures.items():
                yield _complete({**about, "kpi": name, **_flat("", figure)})
        if number < 0:
            yield _complete(about_run)


def from_rows(table: Iterable[Row]) -> list[tuple[BenchRun, list[BenchRecord]]]:
    """What `rows` was called on, in the order of the rows. Raises InputError."""
    runs: dict[str, BenchRun] = {}
    records_by_run: dict[str, dict[int, tuple[Row, dict[str, Figure]]]] = {}
    for number, row in enumerate(table, 1):
        try:
            run = _part("run_", BenchRun, row)
            if runs.setdefault(run.id, run) != run:
                raise ValueError(f"run {run.id} is told differently before")
            records = records_by_run.setdefault(run.id, {})
            if row["record"] is None:
                continue
            _, figures = records.setdefault(int(row["record"]), (row, {}))
            if row["kpi"] is not None:
                figures[str(row["kpi"])] = _part("", Figure, row)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"row {number} is not a measurement: {_error_text(error)}") from None
    return [
        (
            run,
            [_record(row, figures) for _, (row, figures) in sorted(records_by_run[run.id].items())],
        )
        for run in runs.values()
    ]


def _record(row: Row, figures: dict[str, Figure]) -> BenchRecord:
    try:
        parts = {
            "subject": _part("subject_", BenchSubject, row),
            "environment": _part("environment_", Environment, row),
            "conditions": _part("conditions_", Conditions, row),
            "figures": figures,
        }
        whole = {**_fields_of("record_", BenchRecord, row), **parts}
        return checked_object(BenchRecord, whole, finite=True)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a record is not a measurement: {_error_text(error)}") from None


def _flat(prefix: str, value: Any) -> Row:
    return {
        prefix + field.name: getattr(value, field.name)
        for field in fields(value)
        if prefix + field.name in COLUMNS
    }


def _complete(row: Row) -> Row:
    return {column: row.get(column) for column in COLUMNS}


def _part(prefix: str, kind: type, row: Row) -> Any:
    return checked_object(kind, _fields_of(prefix, kind, row), finite=True)


def _fields_of(prefix: str, kind: type, row: Row) -> Row:
    values: Row = {}
    for field in fields(kind):
        column = prefix + field.name
        if column in COLUMNS and not (kind is BenchRecord and field.name in _WHOLE):
            values[field.name] = _value(column, str(field.type), row[column])
    return values


def _value(column: str, annotation: str, value: Any) -> Any:
    if value is None:
        if annotation.endswith("None"):
            return None
        raise ValueError(f"{column} is empty")
    match COLUMNS[column]:
        case "texts" | "numbers":
            return tuple(value)
        case "object":
            return dict(value)
        case "flag":
            return bool(value)
    return value


def _error_text(error: Exception) -> str:
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)


__all__ = ["COLUMNS", "Kind", "Measured", "Row", "from_rows", "rows"]
