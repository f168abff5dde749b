"""`wavecast.history`: figures over commits, and where they changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.api.compare import FigureOptions
from wavecast.api.result import ShownResult, few
from wavecast.errors import NothingAnalysed
from wavecast.options import Progress, option, silent
from wavecast.options.values import NameList

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.benchmarking.history.series import History


@dataclass(frozen=True, kw_only=True)
class HistoryOptions(FigureOptions):
    """Options of figures over runs."""

    devices: tuple[str, ...] = option(
        (), "Devices to show.", "--device", values=NameList(), metavar="GPU[,GPU…]"
    )


@dataclass(frozen=True, slots=True, repr=False)
class HistoryReport(ShownResult):
    """Figures over runs, and where they changed. The document is `wavecast.history/1`."""

    WIDTH = 200
    history: History
    everything: bool = False

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.bench import history

        return history.document(self.history)

    def render(self, console: Console) -> None:
        from wavecast.report.bench import history

        history.render(self.history, console, everything=self.everything)

    def html(self) -> str:
        from wavecast.report.bench import history_html

        return history_html.render(self.history)

    def subject(self) -> str:
        return few([series.subject.key for series in self.history.series])


def history(
    subject: str = "",
    *,
    progress: Progress = silent,  # noqa: ARG001
    **options: Any,
) -> HistoryReport:
    """Figures of subjects whose name matches a regular expression, over stored runs in the order of
    their commits, and where they changed.

    `options` are those of the command line, by the names of `HistoryOptions`. Commits are ordered
    by the repository of the current folder.

    Raises StoreError for a file that has no measurements, UnknownName for a figure, UsageError for
    a wrong regular expression, NothingAnalysed where nothing fits.
    """
    from wavecast.benchmarking.history.series import SeriesFilter
    from wavecast.benchmarking.history.series import history as over_runs
    from wavecast.benchmarking.store.select import records_of
    from wavecast.benchmarking.store.sqlite import open_store

    stated = HistoryOptions.of(options)
    chosen = SeriesFilter(subject, stated.kpi_names(), stated.devices, stated.minimum)
    with open_store(stated.store_path, create=False) as store:
        runs = store.runs()
        records = records_of(store, runs)
    result = over_runs(records, runs, chosen, Path.cwd())
    if not result.series:
        raise NothingAnalysed(f"no figure in {stated.store_path} fits")
    return HistoryReport(result, stated.everything)


__all__ = ["HistoryOptions", "HistoryReport", "history"]
