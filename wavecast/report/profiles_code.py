"""Kernels of a profile that are explained from their code: counters and findings as text, JSON and
cells of tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wavecast.bench.profiles.counters import CounterUnit
from wavecast.compile.names import readable
from wavecast.documents.profile import CodeFigureJson, ExplainedKernelJson
from wavecast.report import units, words
from wavecast.report.entry import kernel_entry
from wavecast.report.terminal_findings import findings
from wavecast.report.terminal_text import safe

if TYPE_CHECKING:
    from wavecast.bench.profiles.code import ExplainedKernel

_UNMEASURED = "no time in the profile"


def figure_text(unit: CounterUnit, value: float | None) -> str:
    """A figure in its unit; a dash for None."""
    if value is None:
        return units.UNKNOWN
    if unit is CounterUnit.SHARE:
        return f"{value:.0%}"
    if unit is CounterUnit.BYTES:
        return units.size(value)
    return f"{value:.2f} GHz" if unit is CounterUnit.CLOCK else units.significant(value)


def headline(found: ExplainedKernel) -> str:
    """The measured and the predicted time of a launch."""
    measured = f"measured {units.seconds(found.seconds)}" if found.seconds else _UNMEASURED
    prediction = found.prediction
    if prediction is None:
        return f"{measured}, no predicted time: {found.explanation.predicted.why_not}"
    interval = f"{units.seconds(prediction.low)} to {units.seconds(prediction.high)}"
    expected = prediction.low <= found.seconds <= prediction.high
    outside = "" if expected or not found.seconds else ", outside the interval"
    return (
        f"{measured}, predicted {units.seconds(prediction.seconds)} ({interval}), "
        f"{prediction.limiter}-bound{outside}"
    )


def sections(found: ExplainedKernel, *, brief: bool) -> Iterator[RenderableType]:
    """The kernel as terminal text: times, figures with what explains them, findings."""
    explanation = found.explanation
    title = f"  {readable(explanation.code.kernel)}"
    source = f"  {found.source.name} on {explanation.device.id}, "
    launches = units.plural(found.count, "launch", "launches")
    yield Text("")
    yield Text.assemble((safe(title), "bold"), (safe(source + launches), "dim"))
    yield Padding(Text(safe(headline(found))), (0, 0, 0, 2))
    for note in found.notes:
        yield Padding(Text(safe(note), style="yellow"), (0, 0, 0, 2))
    if found.figures:
        yield Padding(_figures(found), (0, 0, 0, 2))
    yield Padding(Text(safe(words.headline(explanation)), style="dim"), (0, 0, 0, 2))
    for part in findings(explanation, brief=brief):
        yield Padding(part, (0, 0, 0, 2))


def _figures(found: ExplainedKernel) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for head in ("measured", "predicted"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("counter", overflow="fold")
    for one in found.figures:
        name = Text(one.name, style="yellow" if one.why else "")
        if one.why:
            name.append(f": {safe(one.why)}", style="dim")
        sides = [figure_text(one.unit, side) for side in (one.measured, one.predicted)]
        table.add_row(*sides, name)
    return table


def entry(found: ExplainedKernel) -> ExplainedKernelJson:
    """The kernel in the JSON document."""
    explanation = found.explanation
    return ExplainedKernelJson(
        kernel=found.number,
        source=str(found.source),
        count=found.count,
        seconds=found.seconds,
        figures=[
            CodeFigureJson(one.name, one.unit.value, one.measured, one.predicted, one.why)
            for one in found.figures
        ],
        notes=list(found.notes),
        explanation=kernel_entry(explanation, readable(explanation.code.kernel)),
    )


__all__ = ["entry", "figure_text", "headline", "sections"]
