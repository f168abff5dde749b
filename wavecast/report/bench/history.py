"""Histories: terminal text, JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from statistics import median
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wavecast import json_objects
from wavecast.benchmarking.history.series import History, LevelChange, Point, Series
from wavecast.benchmarking.records import BenchRun, Figure
from wavecast.documents.history import (
    HistoryChangeJson,
    HistoryDocument,
    HistoryPointJson,
    HistorySeriesJson,
)
from wavecast.documents.measurement import ConditionsJson, SubjectJson
from wavecast.report.bench.measurements_table import figure
from wavecast.report.kit.terminal import safe
from wavecast.report.kit.units import plural, seconds, si, significant, size

_BARS: Final = "▁▂▃▄▅▆▇█"
_WIDTH: Final = 40


def render(history: History, console: Console, *, everything: bool = False) -> None:
    """Times, and other figures that changed; all with `everything`. Then the changes, by run."""
    visible = [s for s in history.series if everything or s.changes or s.kpi.unit == "s"]
    if visible:
        table = Table(box=None, pad_edge=False)
        table.add_column("subject", overflow="fold")
        for name in ("device", "figure"):
            table.add_column(name, overflow="fold")
        for name in ("runs", "first", "last"):
            table.add_column(name, justify="right")
        table.add_column("over runs", no_wrap=True)
        table.add_column("changes", justify="right")
        for series in visible:
            table.add_row(
                *(Text(safe(text)) for text in (series.subject.key, where(series))),
                series.kpi.name,
                str(len(series.points)),
                shown_value(series, series.points[0].value),
                shown_value(series, series.points[-1].value),
                sparkline([point.value for point in series.points]),
                str(len(series.changes) or ""),
            )
        console.print(table)
    by_run: dict[str, list[tuple[Series, LevelChange]]] = {}
    for series in visible:
        for change in series.changes:
            by_run.setdefault(series.points[change.at].run.id, []).append((series, change))
    for run in (run for run in history.order if run in by_run):
        series, change = by_run[run][0]
        console.print(Text(safe(run_name(series.points[change.at])), style="bold"))
        for entry in by_run[run]:
            console.print(_line(*entry), soft_wrap=True)
    hidden = len(history.series) - len(visible)
    quiet = f" {hidden} that did not are not shown (--all)." if hidden else ""
    console.print(Text(summary(history) + quiet))
    for note in history.notes:
        console.print(Text(f"note: {note}"))


def summary(history: History) -> str:
    """`2 of 12 figures changed over 30 runs.`"""
    changed = sum(bool(series.changes) for series in history.series)
    figures = plural(len(history.series), "figure")
    return f"{changed} of {figures} changed over {plural(len(history.order), 'run')}."


def about(series: Series) -> str:
    """What a filter looks in, in lower case."""
    runs = {point.run.label for point in series.points}
    return " ".join((series.subject.key, where(series), series.kpi.name, *sorted(runs))).lower()


def where(series: Series) -> str:
    """The device, and how it was measured: `mi300x, cold, events`."""
    about = series.conditions
    return ", ".join(filter(None, (series.device, about.cache, about.timing, about.clocks)))


def run_name(point: Point) -> str:
    """`1a2b3c4d+ main`: commit, + where the checkout had changes, and label; else the id."""
    commit = point.run.commit[:8] + ("+" if point.run.dirty else "")
    return " ".join(filter(None, (commit, point.run.label))) or point.run.id


def shown_value(series: Series, value: float) -> str:
    """With its unit."""
    return figure(series.kpi.name, Figure(value, "measured"))


def tick(series: Series, value: float, step: float) -> str:
    """A value of an axis whose ticks are `step` apart."""
    digits = max(3, math.ceil(math.log10(abs(value) / step)) + 1) if value else 1
    match series.kpi.unit:
        case "s":
            return seconds(value) if digits <= 3 else precise_seconds(value, digits)
        case "B":
            return size(value)
    return si(value) if abs(value) >= 10_000 else f"{value:.{digits}g}"


def precise_seconds(value: float, digits: int) -> str:
    """A time with more than three significant digits."""
    factor, unit = next(
        ((f, u) for f, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if abs(value) >= f),
        (1e-9, "ns"),
    )
    return f"{significant(value / factor, digits)} {unit}"


def level(values: list[float]) -> float:
    """The median of a level."""
    return median(values)


def point_title(series: Series, point: Point) -> str:
    """What a dot says: run, value, spread, samples, time."""
    parts = [run_name(point), shown_value(series, point.value)]
    if point.low != point.high:
        low, high = (shown_value(series, value) for value in (point.low, point.high))
        parts.append(f"{low} … {high}")
    if point.samples:
        parts.append(plural(point.samples, "sample"))
    return "\n".join([*parts, point.run.started[:19].replace("T", " ") + " UTC"])


def line(series: Series, change: LevelChange) -> str:
    """A change in one line, without the subject."""
    before, after = (shown_value(series, value) for value in (change.before, change.after))
    kind = " ".join(filter(None, (percent(change), word(series, change))))
    name = run_name(series.points[change.at])
    return f"{name}: {before} → {after}, {kind}; {change_text(series, change)}"


def percent(change: LevelChange) -> str:
    """`+5.1%`, "" from or to zero."""
    return "" if change.ratio is None else f"{change.ratio - 1:+.1%}"


def change_text(series: Series, change: LevelChange) -> str:
    """What is known of a change, without its values: `4 commits since 1a2b3c4d, triton 3.8.0 …`."""
    last = f"since {run_name(series.points[change.at - 1])}"
    if change.commits:
        last = f"{plural(change.commits, 'commit')} {last}"
    parts = [last, *change.also]
    if change.few:
        parts.append("few runs: could be outliers")
    return ", ".join(parts)


def word(series: Series, change: LevelChange) -> str:
    """`slower`, `faster`, `worse`, `better`."""
    if series.kpi.unit == "s":
        return "slower" if change.worse else "faster"
    return "worse" if change.worse else "better"


def sparkline(values: list[float]) -> str:
    """Bars from the least to the largest value; of long series groups of runs, by their largest."""
    if len(values) > _WIDTH:
        size = -(-len(values) // _WIDTH)
        values = [max(values[at : at + size]) for at in range(0, len(values), size)]
    low, high = min(values), max(values)
    if high - low <= 1e-3 * abs(high):
        return _BARS[3] * len(values)
    return "".join(_BARS[round((value - low) / (high - low) * 7)] for value in values)


def document(history: History) -> dict[str, Any]:
    """The history as JSON-ready values, schema `wavecast.history/1`."""
    series = [_series(series) for series in history.series]
    return json_objects.values(HistoryDocument.of(history, runs=list(history.order), series=series))


def _series(series: Series) -> HistorySeriesJson:
    return HistorySeriesJson.of(
        series,
        subject=SubjectJson.of(series.subject),
        key=series.subject.key,
        conditions=ConditionsJson.of(series.conditions),
        kpi=series.kpi.name,
        unit=series.kpi.unit,
        points=[HistoryPointJson.of(point, **asdict(point.run)) for point in series.points],
        changes=[_change(change, series.points[change.at].run) for change in series.changes],
    )


def _change(change: LevelChange, run: BenchRun) -> HistoryChangeJson:
    return HistoryChangeJson.of(change, run=run.id, commit=run.commit)


def _line(series: Series, change: LevelChange) -> Text:
    before, after = (shown_value(series, value) for value in (change.before, change.after))
    style = "red" if change.worse else "green"
    kind = " ".join(filter(None, (percent(change), word(series, change))))
    return Text.assemble(
        "  ",
        (kind, style),
        f"  {series.kpi.name} {before} → {after}  {safe(series.subject.key)}, "
        f"{safe(where(series))} ({safe(change_text(series, change))})",
    )


__all__ = [
    "about",
    "change_text",
    "document",
    "level",
    "line",
    "percent",
    "point_title",
    "render",
    "run_name",
    "shown_value",
    "sparkline",
    "summary",
    "tick",
    "where",
    "word",
]
