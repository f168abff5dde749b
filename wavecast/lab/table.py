"""The results of a search per launch and device, in order, and the settings they lead to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from wavecast.lab.journal import LabProblem, LabResult
from wavecast.lab.saved import SavedSetting
from wavecast.lab.setting import Setting


@dataclass(frozen=True, slots=True)
class LabRow:
    """A setting with its figures from the code, what its execution showed, and its time from an
    executed sample where there is one."""

    result: LabResult
    verified: LabResult | None = None
    executed: LabResult | None = None

    @property
    def seconds(self) -> float | None:
        """The time predicted from the code."""
        return self.result.figures.seconds if self.result.figures is not None else None

    @property
    def sampled(self) -> float | None:
        """The time predicted from an executed sample."""
        figures = self.executed.figures if self.executed is not None else None
        return figures.seconds if figures is not None else None

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """The 80 % interval of the time that counts: by the sample, else by the code."""
        timed = self.executed if self.executed is not None else self.result
        figures = timed.figures
        return (figures.low, figures.high) if figures is not None else (None, None)

    @property
    def status(self) -> str:
        """`same`, `differs: …`, `faulty: …`, `refused: …`, or "" where it was not executed."""
        if self.result.figures is None:
            return f"refused: {self.result.refused}"
        execution = self.verified.execution if self.verified is not None else None
        if self.verified is not None and self.verified.refused:
            return f"differs: {self.verified.refused}"
        if execution is None:
            return ""
        if execution.same:
            return "same"
        return f"differs: {execution.difference or '; '.join(execution.reports)}"


@dataclass(frozen=True, slots=True)
class LabEntry:
    """One launch on one device. `rows` are all settings, the fastest first, refused ones last."""

    problem: LabProblem
    base: LabRow
    rows: tuple[LabRow, ...]

    def status(self, row: LabRow) -> str:
        """The status of a row, with the faults that the original does not have."""
        base, figures = self.base.result.figures, row.result.figures
        if base is not None and figures is not None:
            new = [fault for fault in figures.faults if fault not in base.faults]
            if new:
                return f"faulty: {new[0]}"
        return row.status

    def saved(self, row: LabRow) -> float | None:
        """The part of the original's time that a setting saves, by the code."""
        return _saved_fraction(self.base.seconds, row.seconds)

    def saved_sampled(self, row: LabRow) -> float | None:
        """The same by executed samples; None where one of them has none."""
        return _saved_fraction(self.base.sampled, row.sampled)

    @property
    def best(self) -> LabRow | None:
        """The fastest setting whose results are the same and that saves time, by executed samples
        where there are any; None where there is none."""
        good = [row for row in self.rows if row.verified and self.status(row) == "same"]
        timed = [(self.saved_sampled(row), row) for row in good]
        sampled = [(saved, row) for saved, row in timed if saved is not None]
        pairs = sampled or [(self.saved(row) or 0.0, row) for row in good]
        saved, row = max(pairs, key=lambda pair: pair[0], default=(0.0, None))
        return row if saved > 0 else None

    def alone(self, axis: str, value: object) -> LabRow | None:
        """The row of one value alone."""
        setting = Setting.of({axis: value})
        return next((row for row in self.rows if row.result.setting == setting), None)

    def without(self, row: LabRow, axis: str) -> LabRow | None:
        """The row of a setting without one of its axes."""
        setting = row.result.setting.without(axis)
        if not setting.items:
            return self.base
        return next((other for other in self.rows if other.result.setting == setting), None)


def _saved_fraction(before: float | None, after: float | None) -> float | None:
    return 1 - after / before if before and after else None


def entries(results: Iterable[tuple[LabProblem, LabResult]]) -> list[LabEntry]:
    """The entries of a journal, in the order their problems appear. A problem without its base is
    left out: the search ended before it."""
    results_by_problem: dict[LabProblem, dict[Setting, dict[str, LabResult]]] = {}
    for problem, result in results:
        stages = results_by_problem.setdefault(problem, {}).setdefault(result.setting, {})
        name = result.stage if result.stage in ("verified", "executed") else "code"
        stages[name] = result
    entry_list = []
    for problem, settings in results_by_problem.items():
        rows = {setting: _row(stages) for setting, stages in settings.items() if "code" in stages}
        base = rows.pop(Setting(), None)
        if base is not None:
            entry_list.append(LabEntry(problem, base, tuple(sorted(rows.values(), key=_order))))
    return entry_list


def _row(stages: dict[str, LabResult]) -> LabRow:
    return LabRow(stages["code"], stages.get("verified"), stages.get("executed"))


def _order(row: LabRow) -> tuple[bool, float, int]:
    seconds = row.seconds
    return seconds is None, seconds or 0.0, len(row.result.setting.items)


def settings_of(lab_entries: Sequence[LabEntry]) -> Iterator[tuple[SavedSetting, LabResult]]:
    """The best setting of every entry that has one, and its result."""
    for entry in lab_entries:
        best = entry.best
        if best is None:
            continue
        setting, problem = best.result.setting, entry.problem
        pair = (entry.base.sampled, best.sampled)
        before, after = pair if None not in pair else (entry.base.seconds, best.seconds)
        assert before is not None
        assert after is not None
        yield (
            SavedSetting(
                kernel=problem.kernel,
                target=problem.target,
                device=problem.device,
                compiler=problem.compiler,
                setting=dict(setting.items),
                options=best.result.options,
                environment={} if best.result.words else setting.environment,
                ir="",
                words=list(best.result.words),
                seconds=after,
                seconds_before=before,
            ),
            best.result,
        )


__all__ = ["LabEntry", "LabRow", "entries", "settings_of"]
