"""Comparisons of runs: terminal text, Markdown, JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from wavecast import json_objects
from wavecast.benchmarking.compare.verdict import Compared, FigureVerdict, RunComparison
from wavecast.benchmarking.records import BenchRun, Figure
from wavecast.documents.compare import ComparedFigureJson, CompareDocument
from wavecast.documents.measurement import SubjectJson
from wavecast.report.bench.measurements_table import figure

_STYLES = {
    FigureVerdict.SLOWER: "red",
    FigureVerdict.WORSE: "red",
    FigureVerdict.GONE: "red",
    FigureVerdict.FASTER: "green",
    FigureVerdict.BETTER: "green",
    FigureVerdict.AMBIGUOUS: "yellow",
    FigureVerdict.REFUSED: "yellow",
}
_IDS = 4
"""Runs of a side that its heading names."""

Sides = tuple[Sequence[BenchRun], Sequence[BenchRun]]
"""The runs before and after."""


def render(
    comparison: RunComparison, sides: Sides, console: Console, *, everything: bool = False
) -> None:
    """The runs, and what changed; what is the same is only counted, unless `everything` is asked
    for."""
    for line in headings(sides):
        console.print(line, highlight=False, markup=False)
    rows = list(comparison.compared) if everything else changed_figures(comparison)
    if rows:
        table = Table(box=None, pad_edge=False)
        for name in ("subject", "device", "figure"):
            table.add_column(name, overflow="fold")
        for name in ("before", "after", "change"):
            table.add_column(name, justify="right")
        table.add_column("verdict")
        table.add_column("reasons", overflow="fold")
        for row in rows:
            style = _STYLES.get(row.verdict, "")
            verdict = f"[{style}]{row.verdict}[/]" if style else str(row.verdict)
            table.add_row(
                row.subject.key,
                row.device,
                row.kpi,
                _value(row, row.before),
                _value(row, row.after),
                change(row),
                verdict,
                ", ".join(row.reasons),
            )
        console.print(table)
    counts = Counter(str(row.verdict) for row in comparison.compared)
    console.print(", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())))
    for note in comparison.notes:
        console.print(f"note: {note}")


def headings(sides: Sides) -> list[str]:
    """`before: main · 2 runs 0f3c, 77ab · commit 1a2b3c4 · 2026-01-01 to 2026-01-02`, and after."""
    return [f"{name}: {side(runs)}" for name, runs in zip(("before", "after"), sides, strict=True)]


def side(runs: Sequence[BenchRun]) -> str:
    """Labels, ids, commits and days of runs."""
    labels = dict.fromkeys(run.label for run in runs if run.label)
    commits = dict.fromkeys(f"{run.commit[:9]}{'+' * run.dirty}" for run in runs if run.commit)
    days = sorted({run.started[:10] for run in runs})
    parts = [", ".join(labels)] if labels else []
    noun = "run" if len(runs) == 1 else f"{len(runs)} runs"
    parts.append(f"{noun} {', '.join(run.id for run in runs[:_IDS])}{' …' * (len(runs) > _IDS)}")
    if commits:
        parts.append(f"commit {', '.join(commits)}")
    parts.append(days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}")
    return " · ".join(parts)


def changed_figures(comparison: RunComparison) -> list[Compared]:
    """All but what is the same."""
    return [row for row in comparison.compared if row.verdict is not FigureVerdict.SAME]


def change(row: Compared) -> str:
    """The change in percent with its interval."""
    if row.ratio is None:
        return ""
    text = f"{row.ratio - 1:+.1%}"
    if row.low is not None and row.high is not None and row.low != row.high:
        text += f" [{row.low - 1:+.1%}, {row.high - 1:+.1%}]"
    return text


def markdown(comparison: RunComparison, sides: Sides) -> str:
    """The same as a Markdown table, for the summary of a build."""
    before, after = headings(sides)
    lines = ["| subject | device | figure | before | after | change | verdict | reasons |"]
    lines.append("|---|---|---|---:|---:|---:|---|---|")
    for row in changed_figures(comparison):
        cells = (
            *(row.subject.key, row.device, row.kpi, _value(row, row.before)),
            *(_value(row, row.after), change(row), f"**{row.verdict}**", ", ".join(row.reasons)),
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    if len(lines) == 2:
        lines = ["No figure changed."]
    lines = [f"- {before}", f"- {after}", "", *lines, ""]
    return "\n".join([*lines, *(f"- {note}" for note in comparison.notes)]).rstrip() + "\n"


def document(comparison: RunComparison) -> dict[str, Any]:
    """The comparison as JSON-ready values, schema `wavecast.compare/1`."""
    return json_objects.values(
        CompareDocument.of(
            comparison,
            across_chips=comparison.across,
            compared=[
                ComparedFigureJson.of(row, subject=SubjectJson.of(row.subject), key=row.subject.key)
                for row in comparison.compared
            ],
        )
    )


def worst(rows: Sequence[Compared]) -> bool:
    """Whether something became slower or worse, or went away."""
    return any(
        row.verdict in (FigureVerdict.SLOWER, FigureVerdict.WORSE, FigureVerdict.GONE)
        for row in rows
    )


def _value(row: Compared, value: float | None) -> str:
    if value is None or not row.kpi:
        return ""
    if "exact" in row.reasons and row.device.count("→"):
        return f"{value:.0%}"
    return figure(row.kpi, Figure(value, "measured"))


__all__ = [
    "Sides",
    "change",
    "changed_figures",
    "document",
    "headings",
    "markdown",
    "render",
    "worst",
]
