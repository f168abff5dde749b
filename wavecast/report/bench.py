"""Measurements as a table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from wavecast.bench.kpis import KPIS
from wavecast.bench.measure.session import Outcome
from wavecast.bench.records import Figure, Record
from wavecast.report.units import seconds, si, size

_SHOWN = (
    *("measured_seconds", "predicted_seconds", "vgprs", "spills", "waves", "lds_bytes"),
    *("instructions", "global_bytes", "bank_conflicts", "findings", "check_reports"),
    "numerical_error",
)
_HEADS = {
    "measured_seconds": "measured",
    "predicted_seconds": "predicted",
    "lds_bytes": "LDS",
    "global_bytes": "bytes",
    "bank_conflicts": "conflicts",
    "check_reports": "checks",
    "numerical_error": "error/tolerance",
}


def render(outcome: Outcome, console: Console) -> None:
    """What a session measured, one line per record, then what failed."""
    if outcome.records:
        console.print(table(outcome.records))
    for record in outcome.records:
        if record.refused:
            console.print(f"refused: {record.subject.key}: {record.refused}")
        for note in record.notes:
            console.print(f"note: {record.subject.key}: {note}")
    for failed in outcome.failed:
        console.print(f"failed: {failed.subject} on {failed.device}: {failed.why}")
    if outcome.interrupted:
        console.print("interrupted: what was measured until then is kept")


def table(records: Sequence[Record]) -> Table:
    """Records, with the columns that any of them has."""
    names = [name for name in _SHOWN if any(name in record.figures for record in records)]
    found = Table(box=None, pad_edge=False)
    found.add_column("subject", overflow="fold")
    found.add_column("device")
    for name in names:
        found.add_column(_HEADS.get(name, name), justify="right")
    found.add_column("of bound", justify="right")
    for record in records:
        key = f"  {record.subject.part}" if record.subject.part else record.subject.key
        cells = [figure(name, record.figures.get(name)) for name in names]
        found.add_row(key, record.environment.device, *cells, _share(record))
    return found


def figure(name: str, value: Figure | None) -> str:
    """One figure with its unit; times with the half width of their interval."""
    if value is None:
        return "–"
    match KPIS[name].unit:
        case "s":
            width = ""
            if value.low is not None and value.high is not None and value.value:
                width = f" ±{(value.high - value.low) / 2 / value.value:.0%}"
            return seconds(value.value) + width
        case "B":
            return size(value.value)
    return si(value.value) if abs(value.value) >= 10_000 else f"{value.value:.3g}"


def _share(record: Record) -> str:
    time = record.figures.get("measured_seconds") or record.figures.get("predicted_seconds")
    if time is None or not record.floor_seconds or record.refused:
        return ""
    return f"{record.floor_seconds / time.value:.0%}"


__all__ = ["figure", "render", "table"]
