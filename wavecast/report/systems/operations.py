"""Operations as text and JSON: chips side by side, then why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from wavecast import json_objects
from wavecast.documents.operation import OperationDocument, OperationJson
from wavecast.report.explain import prediction, words
from wavecast.report.explain.terminal_prediction import sections
from wavecast.report.kit import units
from wavecast.report.kit.kernel_tables import columns
from wavecast.report.kit.terminal import safe
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.pipeline.explain.operations import OperationReport, Outlook


def document(report: OperationReport) -> dict[str, Any]:
    """The report as plain dicts, lists, strings and numbers."""
    return json_objects.values(
        OperationDocument(
            wavecast=__version__,
            notes=list(report.notes),
            operations=[_entry(outlook) for outlook in report.outlooks],
        )
    )


def render(report: OperationReport, console: Console, *, detail: str = "normal") -> None:
    """Print the report; `brief` stops after the table."""
    for note in report.notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))
    for problem in dict.fromkeys(outlook.problem for outlook in report.outlooks):
        outlooks = [outlook for outlook in report.outlooks if outlook.problem == problem]
        console.print(Text(safe(str(problem)), style="bold"))
        console.print(_table(outlooks, console.width))
        for outlook in outlooks:
            if outlook.prediction is None:
                console.print(Text(f"  {outlook.device.id}: {safe(outlook.why_not)}", style="red"))
            elif detail != "brief":
                _details(outlook, console, full=detail == "full")
        console.print()


_DISPENSABLE = ("roofline", "of peak", "80% interval")
"""Columns that are left out of a narrow terminal, the first first; none is cut."""


def _table(outlooks: list[Outlook], width: int) -> Table:
    titles = (
        ("  device", "left"),
        ("time", "right"),
        ("80% interval", "left"),
        ("bound by", "left"),
        ("rate", "right"),
        ("of peak", "right"),
        ("roofline", "right"),
    )
    rows: list[list[Text]] = []
    times = [o.prediction.seconds for o in outlooks if o.prediction]
    for outlook in outlooks:
        estimate, bound = outlook.prediction, outlook.roofline
        name = f"  {words.short_name(outlook.device)}"
        if estimate is None:
            rows.append([Text(name), Text(units.UNKNOWN), *(Text() for _ in titles[2:])])
            continue
        best = len(times) > 1 and estimate.seconds == min(times)
        cells = (
            name,
            Text(units.seconds(estimate.seconds), style="bold" if best else ""),
            f"{units.seconds(estimate.low)} – {units.seconds(estimate.high)}",
            safe(words.of(outlook.device).translate(estimate.limiter)),
            _rate(outlook),
            units.percent(bound.floor_seconds or 0.0, estimate.seconds),
            units.seconds(bound.sustained_seconds or bound.floor_seconds),
        )
        rows.append([cell if isinstance(cell, Text) else Text(cell) for cell in cells])
    return _fitting(titles, rows, width)


def _fitting(titles: Sequence[tuple[str, str]], rows: Sequence[list[Text]], width: int) -> Table:
    """The table without the columns for which there is no room."""
    gap = 2
    widths = {
        title: gap + max(len(title), *(row[at].cell_len for row in rows))
        for at, (title, _) in enumerate(titles)
    }
    for title in _DISPENSABLE:
        if sum(widths.values()) - gap > width:
            del widths[title]
    table = columns(*(column for column in titles if column[0] in widths))
    for row in rows:
        table.add_row(
            *(cell for (title, _), cell in zip(titles, row, strict=True) if title in widths)
        )
    return table


def _rate(outlook: Outlook) -> str:
    if outlook.roofline.bound == "memory" or outlook.flops is None:
        return units.si(outlook.bandwidth, "B/s")
    return units.si(outlook.flops, f"{units.operations([outlook.roofline.dtype])}/s")


def _details(outlook: Outlook, console: Console, *, full: bool) -> None:
    estimate = outlook.prediction
    assert estimate is not None
    console.print()
    console.print(Rule(Text(words.short_name(outlook.device), "bold cyan"), align="left"))
    if estimate.assumed:
        console.print(Text(f"assumes {safe(words.assumptions(estimate.assumed))}", style="dim"))
    for note in estimate.notes:
        console.print(Text(safe(note), style="dim"))
    if estimate.basis is not None:
        console.print(Text(f"interval: {safe(str(estimate.basis))}", style="dim"))
    for part in sections(estimate, None, console.width, words.of(outlook.device), full=full):
        console.print(part)
    if estimate.not_modelled:
        left_out = "; ".join(safe(item) for item in estimate.not_modelled)
        console.print(Text(f"not modelled: {left_out}", style="dim"))


def _entry(outlook: Outlook) -> OperationJson:
    bound = outlook.roofline
    return OperationJson.of(
        bound,
        operation=outlook.problem.kind,
        problem=str(outlook.problem),
        arch=outlook.device.target,
        device=outlook.device.name,
        device_id=outlook.device.id,
        flops=bound.work.flops,
        bytes=bound.work.bytes,
        flops_per_second=outlook.flops,
        bytes_per_second=outlook.bandwidth,
        prediction=prediction.entry(outlook.prediction),
        prediction_why_not=outlook.why_not,
    )


__all__ = ["document", "render"]
