"""`wavecast.compare`: what changed from one set of runs to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wavecast.api.measured import StoreOptions
from wavecast.api.result import ShownResult
from wavecast.options import Progress, option, silent
from wavecast.options.values import NameList, Numbers

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.benchmarking.compare.verdict import RunComparison
    from wavecast.report.bench.comparison import Sides


@dataclass(frozen=True, kw_only=True)
class FigureOptions(StoreOptions):
    """The figures of a store that are shown."""

    kpis: tuple[str, ...] = option(
        (), "Figures to show.", "--kpi", values=NameList(), metavar="KPI[,KPI…]"
    )
    minimum: float = option(0.01, "The smallest relative change that counts.", values=Numbers(0))
    everything: bool = option(False, "Also show what did not change.", "--all")

    def kpi_names(self) -> tuple[str, ...]:
        """The names of the figures, () for all. Raises UnknownName."""
        from wavecast.benchmarking.kpis import kpi

        return tuple(kpi(name).name for name in self.kpis)


@dataclass(frozen=True, kw_only=True)
class CompareOptions(FigureOptions):
    """Options of a comparison of runs."""

    fail: bool = option(False, "Exit with 1 if something is slower or worse.")


@dataclass(frozen=True, slots=True, repr=False)
class CompareReport(ShownResult):
    """Two sets of runs compared. With `fail` something that is slower or worse makes the exit code
    1. The document is `wavecast.compare/1`."""

    WIDTH = 200
    comparison: RunComparison
    sides: Sides
    everything: bool = False
    fail: bool = False

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.bench import comparison

        return comparison.document(self.comparison)

    def render(self, console: Console) -> None:
        from wavecast.report.bench import comparison

        comparison.render(self.comparison, self.sides, console, everything=self.everything)

    def markdown(self) -> str:
        """What changed, for a comment of a pull request."""
        from wavecast.report.bench import comparison

        return comparison.markdown(self.comparison, self.sides)

    def exit_code(self) -> int:
        from wavecast.report.bench import comparison

        return int(self.fail and comparison.worst(self.comparison.compared))

    def subject(self) -> str:
        from wavecast.report.bench import comparison

        return " and ".join(map(comparison.side, self.sides))


def compare(
    before: str,
    after: str,
    *,
    progress: Progress = silent,  # noqa: ARG001
    **options: Any,
) -> CompareReport:
    """Compare two sets of stored runs: FASTER, SLOWER, SAME or AMBIGUOUS, with reasons.

    Runs are named by a label, a commit, the beginning of their id, or last, last~1 …; several are
    separated by commas. `options` are those of the command line, by the names of `CompareOptions`.

    Raises StoreError for a file that has no measurements, UnknownName for a run or a figure,
    NothingAnalysed for runs without records.
    """
    from wavecast.benchmarking.compare.compare import Criteria
    from wavecast.benchmarking.compare.compare import compare as compared
    from wavecast.benchmarking.store.select import records_of, select_runs
    from wavecast.benchmarking.store.sqlite import open_store

    stated = CompareOptions.of(options)
    criteria = Criteria(minimum=stated.minimum, kpis=stated.kpi_names())
    with open_store(stated.store_path, create=False) as store:
        runs = store.runs()
        sides = select_runs(runs, before), select_runs(runs, after)
        records = [records_of(store, side) for side in sides]
    result = compared(records[0], records[1], criteria)
    return CompareReport(result, sides, stated.everything, stated.fail)


__all__ = ["CompareOptions", "CompareReport", "FigureOptions", "compare"]
