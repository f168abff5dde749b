"""Measurements as a table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from wavecast.benchmarking.kpis import KPIS
from wavecast.benchmarking.measure.sampling import half_width
from wavecast.benchmarking.measure.session import SessionResult
from wavecast.benchmarking.records import BenchRecord, Figure
from wavecast.report.kit.units import seconds, si, size

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


def render(outcome: SessionResult, console: Console) -> None:
    """What a session measured, one line per record, then what failed."""
    if outcome.records:
        console.print(table(outcome.records))
    for line in problems(outcome):
        console.print(line, markup=False, soft_wrap=not console.is_terminal)


def problems(outcome: SessionResult) -> list[str]:
    """What is refused, noted, failed and interrupted, in lines. A note that several records share
    is one line."""
    lines = [f"refused: {record.subject.key}: {record.refused}" for record in outcome.records if record.refused]  # noqa: E501  # fmt: skip
    subjects_by_note: dict[str, dict[str, None]] = {}
    for record in outcome.records:
        for note in record.notes:
            subjects_by_note.setdefault(note, {})[record.subject.key] = None
    for note, keys in subjects_by_note.items():
        first, *others = keys
        lines.append(f"note: {first}{f' and {len(others)} more' if others else ''}: {note}")
    lines += [
        f"failed: {failure.subject} on {failure.device}: {failure.why}"
        for failure in outcome.failed
    ]
    if outcome.interrupted:
        lines.append("interrupted: what was measured until then is kept")
    return lines


def table(records: Sequence[BenchRecord]) -> Table:
    """Records, with the columns that any of them has."""
    names = [name for name in _SHOWN if any(name in record.figures for record in records)]
    grid = Table(box=None, pad_edge=False)
    grid.add_column("subject", overflow="fold")
    grid.add_column("device")
    for name in names:
        grid.add_column(_HEADS.get(name, name), justify="right")
    grid.add_column("of bound", justify="right")
    for record in records:
        key = f"  {record.subject.part}" if record.subject.part else record.subject.key
        cells = [figure(name, record.figures.get(name)) for name in names]
        gpu = record.environment.device or record.environment.board or record.environment.target
        grid.add_row(key, gpu, *cells, _share(record))
    return grid


def figure(name: str, value: Figure | None) -> str:
    """One figure with its unit. A measured time has the half width of the 95 % interval of its
    median, a predicted one both ends of its 80% interval relative to it: `1.2 ms -7%/+60%`."""
    if value is None:
        return "–"
    match KPIS[name].unit:
        case "s":
            width = ""
            if value.samples:
                reach = half_width(value.samples)
                width = f" ±{reach:.1%}" if reach < 1 else ""
            elif value.low is not None and value.high is not None and value.value:
                low, high = (end / value.value - 1 for end in (value.low, value.high))
                width = f" {low:+.0%}/{high:+.0%}"
            return seconds(value.value) + width
        case "B":
            return size(value.value)
    return si(value.value) if abs(value.value) >= 10_000 else f"{value.value:.3g}"


def _share(record: BenchRecord) -> str:
    time = record.figures.get("measured_seconds") or record.figures.get("predicted_seconds")
    if time is None or not record.floor_seconds or record.refused:
        return ""
    return f"{record.floor_seconds / time.value:.0%}"


__all__ = ["figure", "problems", "render", "table"]
