"""Findings of one kernel as terminal text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wavecast.report.explain import finding_words, source, summary
from wavecast.report.kit.terminal import SEVERITY_STYLE, heading, safe

if TYPE_CHECKING:
    from wavecast.pipeline.explain.result import Explanation
    from wavecast.rules.finding import Finding

_MARKS = {"error": "✖", "warning": "▲", "note": "●"}


def findings(explanation: Explanation, *, brief: bool) -> Iterator[RenderableType]:
    """The findings, gravest first; `brief` leaves evidence and source text out."""
    ordered = summary.sorted_findings(explanation.findings)
    if not ordered:
        yield Text("\nno findings", style="dim") if not brief else Text("no findings", style="dim")
        return
    if not brief:
        yield heading("Findings")
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column(overflow="fold")
    for finding in ordered:
        style = SEVERITY_STYLE[finding.severity]
        mark = Text(_MARKS[finding.severity], style=style)
        table.add_row(mark, _finding(explanation, finding, brief=brief))
    yield Padding(table, (0, 0, 0, 2))


def _finding(explanation: Explanation, finding: Finding, *, brief: bool) -> Text:
    text = Text.assemble(
        (finding.severity, SEVERITY_STYLE[finding.severity]), " ", (safe(finding.rule), "bold")
    )
    location = finding.location
    if where := finding_words.lines(finding):
        text.append(f" {where}")
    text.append(f": {safe(finding.message)}")
    if effect := finding_words.effect(finding):
        text.append(f" ({effect})", style="bold")
    if not brief:
        if location is not None:
            outer = location.outermost
            line = source.line_text(explanation.code, outer.file, outer.line).strip()
            if line:
                text.append(f"\n{outer.line} │ {safe(line)}", style="dim")
        if finding.evidence:
            text.append(f"\n{safe(finding.evidence)}", style="dim")
    if finding.advice:
        text.append("\n→ ", style="green").append(safe(finding.advice))
    if cost := finding_words.cost(finding):
        text.append(f"\n{cost}", style="dim")
    return text
