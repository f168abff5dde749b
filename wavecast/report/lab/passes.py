"""The passes of a kernel as terminal text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from wavecast.compile.names import distinct_names
from wavecast.documents.lab import (
    LabPassesDocument,
    LabPassesJson,
    PassStepJson,
    WithoutPassJson,
)
from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit import units
from wavecast.report.kit.terminal import heading, safe
from wavecast.report.lab.alternatives import percent
from wavecast.version import __version__
from wavecast.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, RenderableType

    from wavecast.lab.figures import CodeFigures
    from wavecast.lab.passes import LineChange, PassReport, PassStep, WithoutPass

_LINES = 3
"""Source lines that are shown of a pass."""


def document(reports: Sequence[PassReport], notes: Sequence[str]) -> LabPassesDocument:
    """The passes as a document."""
    return LabPassesDocument(__version__, list(notes), [_report(report) for report in reports])


def _report(report: PassReport) -> LabPassesJson:
    return LabPassesJson.of(
        report,
        steps=[_step(step) for step in report.steps],
        shown=report.shown,
        final=report.final,
        without=[
            WithoutPassJson.of(ablation, figures=ablation.figures, brings=brings(report, ablation))
            for ablation in report.without
        ],
    )


def _step(step: PassStep) -> PassStepJson:
    return PassStepJson.of(step, figures=dict(step.figures), changes=list(step.changes))


def brings(report: PassReport, ablation: WithoutPass) -> float | None:
    """The part of the time that a pass saves: negative where the kernel is faster without it."""
    with_, without = report.shown.seconds, ablation.figures.seconds
    return 1 - with_ / without if with_ and without else None


def render(reports: Sequence[PassReport], notes: Sequence[str], console: Console) -> None:
    """The passes that changed something, and what the code is without some of them."""
    for note in notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))
    names = distinct_names(report.kernel for report in reports)
    for report in reports:
        for part in _parts(report, names[report.kernel]):
            console.print(part)


def _parts(report: PassReport, kernel: str) -> Iterator[RenderableType]:
    yield heading(f"{safe(kernel)} on {report.device}", safe(report.compiler))
    same = report.shown.digest == report.final.digest
    text = f"{count(len(report.steps), 'pass', 'passes')} changed it, {report.unchanged} did not"
    yield Text(f"  {text}", style="dim")
    if not same:
        yield Text(f"  {other_code(report)}", style="yellow")
    yield Padding(_table(report.steps), (0, 0, 0, 2))
    if report.without:
        yield Padding(_without(report), (0, 0, 0, 2))


def other_code(report: PassReport) -> str:
    """Why the code that is shown is not the program's."""
    return (
        "machine IR is of Triton's core LLVM; the program's code comes from another LLVM: "
        f"{report.shown.instructions} instead of {report.final.instructions} instructions, "
        f"{units.seconds(report.shown.seconds)} instead of {units.seconds(report.final.seconds)}"
    )


def _table(steps: Sequence[PassStep]) -> RenderableType:
    table = plain_table(
        ("stage", False), ("pass", False), ("size", True), ("peak vector", True),
        ("peak scalar", True), ("waits", True), ("what changed", False),
    )  # fmt: skip
    for step in steps:
        figures = step.figures
        table.add_row(
            step.stage,
            safe(step.name),
            units.count(figures.get("instructions", figures.get("operations"))),
            units.count(figures.get("peak vector")),
            units.count(figures.get("peak scalar")),
            units.count(figures.get("wait")),
            safe(summary(step)),
        )
    return table


def summary(step: PassStep) -> str:
    """What a pass changed, in one line: moved reads, then the lines that changed most."""
    parts = []
    if step.earlier:
        parts.append(f"{count(step.earlier, 'read')} before more matrix instructions")
    if step.later:
        parts.append(f"{count(step.later, 'read')} behind more matrix instructions")
    parts += [_change(change) for change in step.changes[:_LINES]]
    if len(step.changes) > _LINES:
        parts.append(f"{count(len(step.changes) - _LINES, 'more line')}")
    return "; ".join(parts)


def _change(change: LineChange) -> str:
    text = [f"+{_most(change.added)}"] if change.added else []
    text += [f"-{_most(change.removed)}"] if change.removed else []
    return f"{change.line or 'no line'} {' '.join(text)}"


def _most(counts: Mapping[str, int]) -> str:
    """`12 tt.splat …`: the operation there is most of."""
    name, number = max(counts.items(), key=lambda item: item[1])
    return f"{number} {name}{' …' if len(counts) > 1 else ''}"


def _without(report: PassReport) -> RenderableType:
    table = plain_table(
        ("without", False), ("the pass saves", True), ("predicted", True), ("VGPRs", True),
        ("spills", True), ("waves/SIMD", True), ("waits", True), ("loop cycles", True),
    )  # fmt: skip
    rows = [("(with all passes)", None, report.shown)]
    rows += [
        (ablation.what, brings(report, ablation), ablation.figures) for ablation in report.without
    ]
    for name, saved, figures in rows:
        table.add_row(safe(name), percent(saved), *_figures(figures))
    return table


def _figures(figures: CodeFigures) -> tuple[str, ...]:
    return (
        units.seconds(figures.seconds),
        units.count(figures.vgprs + figures.agprs),
        units.count(figures.spills),
        units.count(figures.waves),
        units.count(figures.waits),
        units.count(figures.loop_cycles),
    )


__all__ = ["brings", "document", "other_code", "render", "summary"]
