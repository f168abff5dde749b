"""Verdicts of a gate: text for a terminal, Markdown for the summary of a build."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from wavecast.benchmarking.gate.verdict import GateVerdict, Judged, Status
from wavecast.benchmarking.kpis import KPIS
from wavecast.report.kit.units import count, plural, seconds, significant, size

_STYLES = {Status.WARN: "yellow", Status.NEW: "yellow", Status.BETTER: "green"}
_COLUMNS = ("subject", "device", "figure", "before", "after", "limit", "status", "reason")
_NUMBERS = frozenset({"before", "after", "limit"})


def render(verdict: GateVerdict, console: Console) -> None:
    """What broke, warnings, what is new, then one line that counts everything."""
    broken = verdict.broken
    judgements = [
        *verdict.failures_and_warnings,
        *(judgement for judgement in verdict.of(Status.NEW) if judgement not in broken),
    ]
    if judgements:
        table = Table(box=None, pad_edge=False)
        styles = [
            "red" if verdict.breaks(judgement) else _STYLES.get(judgement.status, "")
            for judgement in judgements
        ]
        for name in _COLUMNS:
            justify = "right" if name in _NUMBERS else "left"
            wraps = name == "reason"
            table.add_column(name, justify=justify, no_wrap=not wraps, min_width=30 * wraps)
        for judgement, style in zip(judgements, styles, strict=True):
            cells = [escape(cell) for cell in _cells(judgement)]
            cells[6] = f"[{style}]{cells[6]}[/]" if style else cells[6]
            table.add_row(*cells)
        if Measurement.get(console, console.options, table).minimum < console.width:
            console.print(table)
        else:  # names of kernels stay whole, to be copied
            for judgement, style in zip(judgements, styles, strict=True):
                console.print(Text(line(judgement), style), soft_wrap=True)
    for note in verdict.notes:
        console.print(f"note: {note}", markup=False)
    style = "red" if broken else "green"
    console.print(f"[{style}]{headline(verdict)}[/]")


def headline(verdict: GateVerdict) -> str:
    """The outcome in one line."""
    broken = verdict.broken
    figures = [judgement for judgement in verdict.judged if judgement.kpi]
    subjects = {(judgement.subject, judgement.device) for judgement in verdict.judged}
    if broken:
        where = {(judgement.subject, judgement.device) for judgement in broken}
        text = f"gate: {plural(len(broken), 'regression')} in {len(where)} of {_pairs(subjects)}"
    else:
        text = f"gate: ok, {plural(len(figures), 'figure')} of {_pairs(subjects)}"
    better, new = len(verdict.of(Status.BETTER)), len(verdict.of(Status.NEW))
    warned = len(verdict.of(Status.WARN))
    if warned:
        text += f"; {plural(warned, 'warning')}: the time is better"
    if better:
        text += f"; {better} better than the baseline, which --update keeps"
    if new:
        text += f"; {new} new, which --update takes in"
    return text


def _pairs(subjects: Collection[object]) -> str:
    return plural(len(subjects), "subject × device", "subjects × devices")


def markdown(verdict: GateVerdict) -> str:
    """The same for the summary of a build."""
    icon = "❌" if verdict.broken else "✅"
    lines = [f"### {icon} {headline(verdict)}"]
    for title, rows in (
        ("", verdict.broken),
        ("Warnings", verdict.of(Status.WARN)),
        (
            "New",
            [judgement for judgement in verdict.of(Status.NEW) if not verdict.breaks(judgement)],
        ),
        ("Better", verdict.of(Status.BETTER)),
    ):
        if not rows:
            continue
        if title:
            lines += ["", f"<details><summary>{title}: {len(rows)}</summary>"]
        lines += ["", *_markdown_table(rows)]
        if title:
            lines += ["", "</details>"]
    if verdict.notes:
        lines += ["", *(f"- {note}" for note in verdict.notes)]
    return "\n".join(lines) + "\n"


def _markdown_table(rows: Sequence[Judged]) -> list[str]:
    lines = ["| " + " | ".join(_COLUMNS) + " |", "|---|---|---|---:|---:|---:|---|---|"]
    for judgement in rows:
        cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in _cells(judgement)]
        cells[6] = f"**{cells[6]}**"
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def line(judgement: Judged) -> str:
    """A verdict in one line: `vgprs of operator rms_norm rows=64 on mi300x: 23 → 64, limit 25;
    …`."""
    what = f"{judgement.kpi} of {judgement.subject}" if judgement.kpi else judgement.subject
    text = f"{what} on {judgement.device}: {judgement.status}"
    if judgement.before is not None and judgement.after is not None:
        text += (
            f", {value(judgement.kpi, judgement.before)} → {value(judgement.kpi, judgement.after)}"
        )
    elif judgement.after is not None:
        text += f", {value(judgement.kpi, judgement.after)}"
    if judgement.limit is not None:
        text += f", limit {value(judgement.kpi, judgement.limit)}"
    return text + (f": {judgement.reason}" if judgement.reason else "")


def value(name: str, number: float | None) -> str:
    """A figure with its unit; counts in full, so that small changes show."""
    if number is None:
        return ""
    match KPIS[name].unit:
        case "s":
            return seconds(number)
        case "B":
            return size(number) if number >= 1 << 20 else f"{count(number)} B"
    return count(number) if float(number).is_integer() else significant(number, 4)


def _cells(judgement: Judged) -> list[str]:
    numbers = [
        value(judgement.kpi, number) if judgement.kpi else "" for number in _numbers(judgement)
    ]
    return [
        judgement.subject,
        judgement.device,
        judgement.kpi,
        *numbers,
        str(judgement.status),
        judgement.reason,
    ]


def _numbers(judgement: Judged) -> tuple[float | None, float | None, float | None]:
    return judgement.before, judgement.after, judgement.limit


__all__ = ["headline", "line", "markdown", "render", "value"]
