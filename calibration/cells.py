"""The committed table of errors on what was left out: `calibration/left_out.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, Final

from wavecast.perfmodel.distance import MeasuredRange

TABLE: Final = Path(__file__).with_name("left_out.json")
UNCALIBRATED: Final = "not predicted: no measurements are left to calibrate with"
"""Why an experiment has no errors."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Errors of `n` problems that an experiment left out.

    `command` is the calibration, `kind` and `group` what was left out; of models, `group` is the
    model. The problems are of `family` on `device`, with `library`, measured by `source`, at
    `distance` from the remaining measurements. `later` is whether they are among those that the
    experiment `later` leaves out. `roofline` is the median error of the sustained
    roofline, `logs` are quantiles of log(measured / predicted).
    """

    command: str
    kind: str
    group: str
    family: str
    device: str
    library: str
    source: str
    distance: str
    later: bool
    n: int
    roofline: float | None
    logs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """Errors of `n` problems of left-out models with one value of a label: quantiles of
    |predicted / measured - 1|, the median of log(predicted / measured), and the median error of the
    nearest problem of another model."""

    family: str
    by: str
    value: str
    n: int
    median: float
    p90: float
    bias: float
    nearest: float | None


@dataclass(frozen=True, slots=True)
class LeftOutTable:
    """Everything that was left out. `measured` and `slices` are by command, `notes` has the
    experiments for which nothing was calibrated again, and what was set aside, with the reason."""

    measured: Mapping[str, tuple[MeasuredRange, ...]]
    cells: tuple[Cell, ...]
    slices: Mapping[str, tuple[Slice, ...]]
    notes: Mapping[str, str]

    def without(self, command: str) -> LeftOutTable:
        """The table without a command."""
        return LeftOutTable(
            {name: rows for name, rows in self.measured.items() if name != command},
            tuple(cell for cell in self.cells if cell.command != command),
            {name: rows for name, rows in self.slices.items() if name != command},
            {
                name: text
                for name, text in self.notes.items()
                if name.split()[0].rstrip(":") != command
            },
        )

    def joined(self, other: LeftOutTable) -> LeftOutTable:
        """Both tables."""
        return LeftOutTable(
            {**self.measured, **other.measured},
            (*self.cells, *other.cells),
            {**self.slices, **other.slices},
            {**self.notes, **other.notes},
        )

    @property
    def kept(self) -> int:
        """The number of experiments with errors whose coefficients were not fitted again."""
        return sum(" without " in name for name, why in self.notes.items() if why != UNCALIBRATED)

    def document(self) -> str:
        """The table as JSON, one row a line."""
        about = "Written by `python -m calibration.left_out DATA --sources CHECKOUT`: do not edit."
        parts = [
            f'{{"about": {json.dumps(about)}',
            f'"notes": {json.dumps(dict(sorted(self.notes.items())))}',
            f'"measured": {_by_command(self.measured)}',
            f'"slices": {_by_command(self.slices)}',
            f'"columns": {json.dumps([field.name for field in fields(Cell)])}',
            f'"cells": {_rows(sorted(self.cells, key=lambda cell: astuple(cell)[:9]))}}}',
        ]
        return ",\n".join(parts) + "\n"


def read(path: Path = TABLE) -> LeftOutTable:
    """The committed table."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return LeftOutTable(
        {name: tuple(map(_range, rows)) for name, rows in found["measured"].items()},
        tuple(map(_cell, found["cells"])),
        {name: tuple(Slice(*row) for row in rows) for name, rows in found["slices"].items()},
        found["notes"],
    )


def _range(row: list[Any]) -> MeasuredRange:
    family, device, library, dtype, n, sizes = row
    spans = {name: (float(low), float(high)) for name, (low, high) in sizes.items()}
    return MeasuredRange(family, device, library, dtype, n, spans)


def _cell(row: list[Any]) -> Cell:
    values = dict(zip((field.name for field in fields(Cell)), row, strict=True))
    return Cell(**{**values, "logs": tuple(values["logs"])})


def _by_command(rows: Mapping[str, Iterable[Any]]) -> str:
    parts = (f"{json.dumps(name)}: {_rows(rows[name])}" for name in sorted(rows))
    return "{\n" + ",\n".join(parts) + "}"


def _rows(rows: Iterable[Any]) -> str:
    lines = (f"  {json.dumps([getattr(row, field.name) for field in fields(row)])}" for row in rows)
    return "[\n" + ",\n".join(lines) + "]"


__all__ = ["TABLE", "UNCALIBRATED", "Cell", "LeftOutTable", "Slice", "read"]
