"""Alternatives of kernels as terminal text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.padding import Padding
from rich.text import Text

from wavecast.compile.names import distinct_names, readable
from wavecast.documents.lab import LabEntryJson, LabRowJson, LabTuneDocument
from wavecast.lab.setting import Setting
from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit import units
from wavecast.report.kit.terminal import heading, safe
from wavecast.version import __version__
from wavecast.wording import count

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from wavecast.lab.run import LabTuning
    from wavecast.lab.table import LabEntry, LabRow


def document(tuning: LabTuning) -> LabTuneDocument:
    """The alternatives as a document."""
    return LabTuneDocument(
        __version__,
        list(tuning.notes),
        [
            f"{readable(failure.kernel)} for {failure.target}: {failure.message}"
            for failure in tuning.failures
        ],
        [_entry_document(entry) for entry in tuning.entries],
    )


def _entry_document(entry: LabEntry) -> LabEntryJson:
    best = entry.best
    return LabEntryJson.of(
        entry.problem,
        grid=list(entry.problem.grid),
        original=_row_document(entry, entry.base),
        best=dict(best.result.setting.items) if best is not None else None,
        rows=[_row_document(entry, row) for row in entry.rows],
    )


def _row_document(entry: LabEntry, row: LabRow) -> LabRowJson:
    result = row.result
    execution = row.verified.execution if row.verified is not None else None
    return LabRowJson(
        dict(result.setting.items),
        result.stage,
        entry.status(row),
        result.figures,
        row.sampled,
        entry.saved(row),
        entry.saved_sampled(row),
        list(execution.cases) if execution is not None else [],
    )


def render(tuning: LabTuning, console: Console, *, top: int = 10) -> None:
    """The `top` settings per launch and device, and what each value of the best one saves."""
    for note in tuning.notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))
    for failure in tuning.failures:
        line = (
            f"{readable(failure.kernel)} for {failure.target} ({failure.stage}): {failure.message}"
        )
        console.print(Text.assemble(("failed ", "bold red"), safe(line)))
    names = distinct_names(entry.problem.kernel for entry in tuning.entries)
    for entry in tuning.entries:
        for part in _entry(entry, names[entry.problem.kernel], top):
            console.print(part)


def _entry(entry: LabEntry, kernel: str, top: int) -> Iterator[RenderableType]:
    problem = entry.problem
    grid = " × ".join(map(str, problem.grid))
    yield heading(f"{safe(kernel)} on {problem.device}", safe(f"{grid} workgroups"))
    yield Text(f"  {safe(problem.arguments)}", style="dim")
    refusals = Counter(row.result.refused for row in entry.rows if row.result.figures is None)
    codes = {row.result.figures.digest for row in entry.rows if row.result.figures is not None}
    text = f"{count(len(entry.rows), 'setting')}, {count(len(codes), 'different code')}"
    yield Text(f"  {text}, {sum(refusals.values())} refused", style="dim")
    yield Padding(_table(entry, top), (0, 0, 0, 2))
    best = entry.best
    if best is None:
        yield Text("  no setting with equal results saves time", style="yellow")
    else:
        yield Text.assemble("  best  ", (str(best.result.setting), "bold"))
        if len(best.result.setting.items) > 1:
            yield Padding(_parts(entry, best), (0, 0, 0, 2))
    for reason, number in refusals.most_common(_MOST_REASONS):
        yield Padding(Text(f"{number} refused: {safe(reason)}", style="dim"), (0, 0, 0, 2))
    if len(refusals) > _MOST_REASONS:
        more = len(refusals) - _MOST_REASONS
        yield Text(f"  and {count(more, 'other reason')} (--format json)", style="dim")


def _table(entry: LabEntry, top: int) -> RenderableType:
    table = plain_table(
        ("by code", True), ("saved", True), ("by sample", True), ("saved by sample", True),
        ("80% interval", True),
        ("VGPRs", True), ("AGPRs", True), ("spills", True), ("waves/SIMD", True),
        ("waits", True), ("results", False), ("setting", False),
    )  # fmt: skip
    top_rows = _distinct(entry)[:top]
    executed = [row for row in entry.rows if row.verified is not None and row not in top_rows]
    for row in (entry.base, *top_rows, *executed):
        figures = row.result.figures
        assert figures is not None
        status = "original" if row is entry.base else entry.status(row) or "not executed"
        style = "bold" if row is entry.best else "red" if status.startswith(_WRONG) else ""
        table.add_row(
            units.seconds(row.seconds),
            percent(entry.saved(row)),
            units.seconds(row.sampled),
            percent(entry.saved_sampled(row)),
            _interval(row),
            units.count(figures.vgprs),
            units.count(figures.agprs),
            units.count(figures.spills),
            units.count(figures.waves),
            units.count(figures.waits),
            safe(status),
            safe(str(row.result.setting)),
            style=style,
        )
    return table


def _interval(row: LabRow) -> str:
    low, high = row.interval
    return f"{units.seconds(low)} – {units.seconds(high)}" if low is not None else ""


_WRONG = ("differs", "faulty")
_MOST_REASONS: Final = 6
"""Reasons of refusals that a text names."""


def _distinct(entry: LabEntry) -> list[LabRow]:
    """One row per machine code other than the original's: the executed one, or the shortest."""
    base = entry.base.result.figures
    by_digest: dict[str, LabRow] = {}
    for row in entry.rows:
        figures = row.result.figures
        if figures is None or (base is not None and figures.digest == base.digest):
            continue
        previous = by_digest.get(figures.digest)
        if previous is None or _rank(row) < _rank(previous):
            by_digest[figures.digest] = row
    return sorted(by_digest.values(), key=entry.rows.index)


def _rank(row: LabRow) -> tuple[bool, int]:
    return row.verified is None, len(row.result.setting.items)


def _parts(entry: LabEntry, best: LabRow) -> RenderableType:
    """What each value of a setting saves alone, and what the setting loses without it."""
    table = plain_table(("saved alone", True), ("ablation loss", True), ("value", False))
    for axis, value in best.result.setting.items:
        alone, without = entry.alone(axis, value), entry.without(best, axis)
        whole = entry.saved(best) or 0.0
        less = entry.saved(without) if without is not None else None
        table.add_row(
            percent(entry.saved(alone)) if alone is not None else "",
            percent(whole - less) if less is not None else "",
            safe(str(Setting.of({axis: value}))),
        )
    return table


def percent(part: float | None) -> str:
    """A part of the time with its sign: `+5.4 %` is time saved."""
    return "" if part is None else f"{100 * part:+.1f}%"


__all__ = ["document", "percent", "render"]
