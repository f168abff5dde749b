"""Kernels of a profile that are explained from their code: counters and findings as text, JSON and
cells of tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wavecast.compile.names import readable
from wavecast.documents.profile import CodeFigureJson, ExplainedKernelJson
from wavecast.profiles.counters import CounterUnit
from wavecast.report.explain import words
from wavecast.report.explain.entry import kernel_entry
from wavecast.report.explain.terminal_findings import findings
from wavecast.report.kit import units
from wavecast.report.kit.terminal import safe

if TYPE_CHECKING:
    from wavecast.profiles.code import ExplainedKernel

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


def headline(kernel: ExplainedKernel) -> str:
    """The measured and the predicted time of a launch."""
    measured = f"measured {units.seconds(kernel.seconds)}" if kernel.seconds else _UNMEASURED
    prediction = kernel.prediction
    if prediction is None:
        return f"{measured}, no predicted time: {kernel.explanation.predicted.why_not}"
    interval = f"{units.seconds(prediction.low)} to {units.seconds(prediction.high)}"
    in_interval = prediction.low <= kernel.seconds <= prediction.high
    outside = "" if in_interval or not kernel.seconds else ", outside the interval"
    return (
        f"{measured}, predicted {units.seconds(prediction.seconds)} ({interval}), "
        f"{prediction.limiter}-bound{outside}"
    )


def sections(kernel: ExplainedKernel, *, brief: bool) -> Iterator[RenderableType]:
    """The kernel as terminal text: times, figures with what explains them, findings."""
    explanation = kernel.explanation
    title = f"  {readable(explanation.code.kernel)}"
    source = f"  {kernel.source.name} on {explanation.device.id}, "
    launches = units.plural(kernel.count, "launch", "launches")
    yield Text("")
    yield Text.assemble((safe(title), "bold"), (safe(source + launches), "dim"))
    yield Padding(Text(safe(headline(kernel))), (0, 0, 0, 2))
    for note in kernel.notes:
        yield Padding(Text(safe(note), style="yellow"), (0, 0, 0, 2))
    if kernel.figures:
        yield Padding(_figures(kernel), (0, 0, 0, 2))
    yield Padding(Text(safe(words.headline(explanation)), style="dim"), (0, 0, 0, 2))
    for part in findings(explanation, brief=brief):
        yield Padding(part, (0, 0, 0, 2))


def _figures(kernel: ExplainedKernel) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for head in ("measured", "predicted"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("counter", overflow="fold")
    for figure in kernel.figures:
        name = Text(figure.name, style="yellow" if figure.why else "")
        if figure.why:
            name.append(f": {safe(figure.why)}", style="dim")
        sides = [figure_text(figure.unit, side) for side in (figure.measured, figure.predicted)]
        table.add_row(*sides, name)
    return table


def entry(kernel: ExplainedKernel) -> ExplainedKernelJson:
    """The kernel in the JSON document."""
    explanation = kernel.explanation
    return ExplainedKernelJson(
        kernel=kernel.number,
        source=str(kernel.source),
        count=kernel.count,
        seconds=kernel.seconds,
        figures=[
            CodeFigureJson(
                figure.name, figure.unit.value, figure.measured, figure.predicted, figure.why
            )
            for figure in kernel.figures
        ],
        notes=list(kernel.notes),
        explanation=kernel_entry(explanation, readable(explanation.code.kernel)),
    )


__all__ = ["entry", "figure_text", "headline", "sections"]
