"""A validation as terminal text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from rich.padding import Padding
from rich.text import Text

from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit import units
from wavecast.report.kit.terminal import heading, safe
from wavecast.report.validation.words import (
    BASELINES,
    baseline_names,
    explanation,
    known_figures,
    log_percent,
    ratio,
    share,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from wavecast.benchmarking.accuracy.result import MeasuredFile, Validation
    from wavecast.benchmarking.accuracy.scores import ScoreRow

Detail = Literal["brief", "normal", "full"]
_MOST_REASONS = 6
_MOST_VALUES = 8
_ONLY_FULL = ("limiter", "fidelity", "device and dtype")


def render(validation: Validation, console: Console, detail: Detail = "normal") -> None:
    """Files, scores, ranking, coverage and, unless `brief`, breakdowns and the worst cases."""
    for part in _parts(validation, detail):
        console.print(part)


def _parts(validation: Validation, detail: Detail) -> Iterator[RenderableType]:
    yield from _files(validation.files, full=detail == "full")
    yield from _scores(validation, detail)
    yield from _rankings(validation)
    yield from _coverage(validation)
    yield from _figures(validation)
    if detail != "brief":
        yield from _worst(validation)


def _files(files: Sequence[MeasuredFile], *, full: bool) -> Iterator[RenderableType]:
    table = plain_table(
        ("file", False), ("data set", False), ("rows", True), ("times", True), ("problems", True),
        ("predicted", True), ("figures", True), ("not predicted", True),
    )  # fmt: skip
    for file in files:
        table.add_row(
            safe(file.path.name),
            file.dataset,
            units.count(file.rows),
            units.count(file.cases),
            units.count(file.problems),
            units.count(file.predicted) + (" (sample)" if file.limited else ""),
            units.count(file.figures),
            units.count(sum(file.not_predicted.values())),
        )
    yield heading("Measurements")
    yield Padding(table, (0, 0, 0, 2))
    for file in files:
        reasons = list(file.not_predicted.items())
        for reason, count in reasons if full else reasons[:_MOST_REASONS]:
            yield Text(f"  {safe(file.path.name)}: {count:,} not predicted: {safe(reason)}", "dim")
        if not full and len(reasons) > _MOST_REASONS:
            rest = sum(count for _, count in reasons[_MOST_REASONS:])
            yield Text(f"  {safe(file.path.name)}: {rest:,} more for other reasons", style="dim")


def _scores(validation: Validation, detail: Detail) -> Iterator[RenderableType]:
    if not validation.scores:
        return
    others = baseline_names(validation.scores)
    table = plain_table(
        ("op", False), ("", False), ("problems", True), ("median", True), ("p90", True),
        ("WMAPE", True), ("bias", True), ("log2 spread", True), ("in interval", True),
        *((f"{BASELINES.get(name, name)} median", True) for name in others),
    )  # fmt: skip
    for row in _visible_rows(validation.scores, detail):
        error = row.score.error
        baselines = row.score.baselines
        style = "" if row.by else "bold"
        table.add_row(
            Text("" if row.by else row.op, style=style),
            f"{row.by} {safe(row.value)}" if row.by else "",
            Text(units.count(error.n), style=style),
            Text(share(error.median), style=style),
            Text(share(error.p90), style=style),
            Text(share(error.wmape), style=style),
            log_percent(error.bias),
            f"{error.log2_sigma:.2f}",
            share(row.score.coverage),
            *(
                share(baselines[name].median) if name in baselines else units.UNKNOWN
                for name in others
            ),
        )
    yield heading("Errors", "|predicted / measured − 1|, every problem once")
    yield Padding(table, (0, 0, 0, 2))
    yield Text(
        f"  predicted in {units.seconds(validation.seconds)}, "
        f"{units.seconds(validation.seconds / max(1, len(validation.outcomes)))} each",
        style="dim",
    )


def _visible_rows(rows: Sequence[ScoreRow], detail: Detail) -> Iterator[ScoreRow]:
    """All ops; of their parts the usual ones and the most frequent values."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        if not row.by or detail == "full":
            yield row
            continue
        where = row.op, row.by
        counts[where] = counts.get(where, 0) + 1
        if detail == "normal" and row.by not in _ONLY_FULL and counts[where] <= _MOST_VALUES:
            yield row


def _rankings(validation: Validation) -> Iterator[RenderableType]:
    if validation.rankings:
        table = plain_table(
            ("op", False), ("problems", True), ("alternatives", True), ("reached", True),
            ("mean", True), ("worst tenth", True), ("Kendall τ", True),
        )  # fmt: skip
        for row in validation.rankings:
            table.add_row(
                row.op,
                units.count(row.problems),
                f"{row.alternatives:.1f}",
                share(row.reached_median),
                share(row.reached_mean),
                share(row.reached_p10),
                f"{row.tau:.2f}",
            )
        yield heading("Ranking", "speed of the predicted best alternative, of the measured best")
        yield Padding(table, (0, 0, 0, 2))
    for choice in validation.choices:
        yield Text(
            f"  {choice.op}: {choice.property} of the measured best named right in "
            f"{share(choice.right)} of {choice.n:,} problems"
        )


def _coverage(validation: Validation) -> Iterator[RenderableType]:
    if not validation.coverage:
        return
    table = plain_table(
        ("op", False), ("distance", False), ("problems", True), ("in interval", True),
        ("high / low", True),
    )  # fmt: skip
    for row in validation.coverage:
        table.add_row(
            row.op,
            row.distance,
            units.count(row.n),
            share(row.coverage),
            ratio(row.width),
        )
    yield heading("Intervals", "share of measured times in the interval; the target is 80%")
    yield Padding(table, (0, 0, 0, 2))


def _figures(validation: Validation) -> Iterator[RenderableType]:
    compared, missing = known_figures(validation.figure_scores)
    if not validation.figure_scores:
        return
    table = plain_table(
        ("figure", False), ("device", False), ("unit", False), ("compared", True),
        ("median", True), ("p90", True), ("bias", True),
    )  # fmt: skip
    for row, error in compared:
        table.add_row(
            row.kind,
            row.device,
            row.unit,
            units.count(error.n),
            share(error.median),
            share(error.p90),
            log_percent(error.bias),
        )
    yield heading("Figures", "of the tables, compared with measured ones")
    yield Padding(table, (0, 0, 0, 2))
    yield Text(f"  {missing:,} measured figures have no counterpart", style="dim")


def _worst(validation: Validation) -> Iterator[RenderableType]:
    if not validation.worst:
        return
    yield heading("Worst cases")
    for op, outcomes in validation.worst.items():
        yield Text(f"  {op}", style="bold")
        for outcome in outcomes:
            head, why = explanation(outcome)
            yield Text(f"    {safe(head)}")
            yield Text(f"      {safe(why)}", style="dim")
