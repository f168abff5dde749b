"""Comparisons of runs: terminal text, Markdown, JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from wavecast.bench.compare.verdict import Compared, FigureVerdict, RunComparison
from wavecast.bench.records import BenchRun, Figure
from wavecast.documents import base
from wavecast.documents.compare import ComparedFigureJson, CompareDocument
from wavecast.documents.measurement import SubjectJson
from wavecast.report.bench import figure

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
    found: RunComparison, sides: Sides, console: Console, *, everything: bool = False
) -> None:
    """The runs, and what changed; what is the same is only counted, unless `everything` is asked
    for."""
    for line in headings(sides):
        console.print(line, highlight=False, markup=False)
    rows = list(found.compared) if everything else changed(found)
    if rows:
        table = Table(box=None, pad_edge=False)
        for name in ("subject", "device", "figure"):
            table.add_column(name, overflow="fold")
        for name in ("before", "after", "change"):
            table.add_column(name, justify="right")
        table.add_column("verdict")
        table.add_column("reasons", overflow="fold")
        for one in rows:
            style = _STYLES.get(one.verdict, "")
            verdict = f"[{style}]{one.verdict}[/]" if style else str(one.verdict)
            table.add_row(
                one.subject.key,
                one.device,
                one.kpi,
                _value(one, one.before),
                _value(one, one.after),
                change(one),
                verdict,
                ", ".join(one.reasons),
            )
        console.print(table)
    counts = Counter(str(one.verdict) for one in found.compared)
    console.print(", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())))
    for note in found.notes:
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


def changed(found: RunComparison) -> list[Compared]:
    """All but what is the same."""
    return [one for one in found.compared if one.verdict is not FigureVerdict.SAME]


def change(one: Compared) -> str:
    """The change in percent with its interval."""
    if one.ratio is None:
        return ""
    text = f"{one.ratio - 1:+.1%}"
    if one.low is not None and one.high is not None and one.low != one.high:
        text += f" [{one.low - 1:+.1%}, {one.high - 1:+.1%}]"
    return text


def markdown(found: RunComparison, sides: Sides) -> str:
    """The same as a Markdown table, for the summary of a build."""
    before, after = headings(sides)
    lines = ["| subject | device | figure | before | after | change | verdict | reasons |"]
    lines.append("|---|---|---|---:|---:|---:|---|---|")
    for one in changed(found):
        cells = (
            *(one.subject.key, one.device, one.kpi, _value(one, one.before)),
            *(_value(one, one.after), change(one), f"**{one.verdict}**", ", ".join(one.reasons)),
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    if len(lines) == 2:
        lines = ["No figure changed."]
    lines = [f"- {before}", f"- {after}", "", *lines, ""]
    return "\n".join([*lines, *(f"- {note}" for note in found.notes)]).rstrip() + "\n"


def document(found: RunComparison) -> dict[str, Any]:
    """The comparison as JSON-ready values, schema `wavecast.compare/1`."""
    return base.values(
        CompareDocument.of(
            found,
            across_chips=found.across,
            compared=[
                ComparedFigureJson.of(one, subject=SubjectJson.of(one.subject), key=one.subject.key)
                for one in found.compared
            ],
        )
    )


def worst(found: Sequence[Compared]) -> bool:
    """Whether something became slower or worse, or went away."""
    return any(
        one.verdict in (FigureVerdict.SLOWER, FigureVerdict.WORSE, FigureVerdict.GONE)
        for one in found
    )


def _value(one: Compared, value: float | None) -> str:
    if value is None or not one.kpi:
        return ""
    if "exact" in one.reasons and one.device.count("→"):
        return f"{value:.0%}"
    return figure(one.kpi, Figure(value, "measured"))


__all__ = ["Sides", "change", "changed", "document", "headings", "markdown", "render", "worst"]
