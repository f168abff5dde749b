"""From files of measurements to scores."""

from __future__ import annotations

import hashlib
import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from wavecast.benchmarking.accuracy import (
    baselines,
    coverage,
    importers,
    predicting,
    ranking,
    reading,
    scores,
)
from wavecast.benchmarking.accuracy.cases import NO_TIME, Case, MeasuredFigure
from wavecast.benchmarking.accuracy.importers import Importer
from wavecast.benchmarking.accuracy.outcome import ScoredProblem
from wavecast.benchmarking.accuracy.predicting import Answer
from wavecast.benchmarking.accuracy.result import ChoiceScore, FigureScore, MeasuredFile, Validation
from wavecast.errors import NothingAnalysed
from wavecast.perfmodel.ops.base import Op

WORST = 5
"""Cases with the largest errors that a validation lists per op."""


@dataclass(frozen=True, slots=True)
class ValidateOptions:
    """`jobs` processes (default: one per processor); about `limit` problems per file, chosen by
    their digest and so always the same; `importers` in addition to the registered ones."""

    jobs: int | None = None
    limit: int | None = None
    importers: tuple[Importer, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuredProblem:
    """Rows of one op on one device: `case` is the first, `measured` the median of their times in
    seconds."""

    case: Case
    op: Op
    measured: float
    repeats: int


def validate(
    paths: Iterable[Path],
    options: ValidateOptions = ValidateOptions(),
    progress: Callable[[str], None] = lambda _: None,
) -> Validation:
    """Predictions of every measurement in the files, and their scores.

    A row that cannot be read or predicted is counted with its reason. Raises InputError for a file
    that no importer reads, NothingAnalysed when no row of any file has a prediction or an expected
    figure.
    """
    every = []
    candidates = (*options.importers, *importers.all_importers())
    for path in paths:
        progress(f"reading {path.name}")
        every.append(load(path, candidates, options.limit))
    files, outcomes, figures, seconds = [], [], [], 0.0
    for loaded in every:
        progress(f"{loaded.file.path.name}: predicting {len(loaded.problems):,} problems")
        started = time.perf_counter()
        answers = predicting.predict(
            [(problem.op, problem.case.device) for problem in loaded.problems],
            options.jobs,
            partial(_report, progress, loaded),
        )
        seconds += time.perf_counter() - started
        file_outcomes, missing = _outcomes(loaded, answers)
        file = replace(
            loaded.file,
            predicted=len(file_outcomes),
            not_predicted=dict((Counter(loaded.file.not_predicted) + missing).most_common()),
        )
        files.append(file)
        outcomes += file_outcomes
        figures += loaded.figures
    if not outcomes and not any(figure.expected is not None for figure in figures):
        raise NothingAnalysed(f"no row can be predicted: {_first_reason(files)}")
    progress("scoring")
    return Validation(
        files=tuple(files),
        outcomes=tuple(outcomes),
        figures=tuple(figures),
        scores=scores.table(outcomes),
        rankings=ranking.rank(outcomes),
        choices=_choices(outcomes),
        coverage=coverage.coverage(outcomes),
        figure_scores=_figure_scores(figures),
        worst=_worst(outcomes),
        seconds=seconds,
    )


def _report(progress: Callable[[str], None], loaded: LoadedFile, count: int) -> None:
    progress(f"{loaded.file.path.name}: {count:,} of {len(loaded.problems):,} problems predicted")


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file as problems to predict, and figures."""

    file: MeasuredFile
    problems: tuple[MeasuredProblem, ...]
    figures: tuple[MeasuredFigure, ...]


def load(path: Path, candidates: Sequence[Importer], limit: int | None = None) -> LoadedFile:
    """The problems of a file with repeats merged, about `limit` of them.

    Raises InputError and MissingTool as `reading.read`.
    """
    table, importer = reading.read(path, candidates)
    repeats: dict[tuple[Op, str], list[Case]] = defaultdict(list)
    reasons = Counter(table.rejected)
    figures, cases = [], 0
    for item in reading.items(importer, table.frame):
        if isinstance(item, MeasuredFigure):
            figures.append(item)
            if item.expected is None:
                reasons[item.reason or "no expected value"] += 1
            continue
        cases += 1
        if reason := _unusable(item):
            reasons[reason] += 1
        elif item.op is not None:
            repeats[item.op, item.device].append(item)
    problems = [
        MeasuredProblem(same[0], op, statistics.median(case.seconds for case in same), len(same))
        for (op, _), same in repeats.items()
    ]
    subset = sample(problems, limit)
    file = MeasuredFile(
        path=path,
        dataset=importer.name,
        rows=len(table.frame) + sum(table.rejected.values()),
        cases=cases,
        problems=len(problems),
        predicted=0,
        figures=len(figures),
        not_predicted=reasons,
        limited=len(subset) < len(problems),
    )
    return LoadedFile(file, tuple(subset), tuple(figures))


def _unusable(case: Case) -> str:
    if case.op is None or not case.device:
        return case.reason or "the importer gives no op"
    if not (math.isfinite(case.seconds) and case.seconds > 0):
        return NO_TIME
    return ""


def sample(problems: Sequence[MeasuredProblem], limit: int | None) -> Sequence[MeasuredProblem]:
    """About `limit` problems, always the same ones; alternatives of one problem stay together."""
    if limit is None or len(problems) <= limit:
        return problems
    alternatives: dict[str, list[MeasuredProblem]] = defaultdict(list)
    for problem in problems:
        name = f"{problem.case.device} {problem.case.problem or problem.op}"
        alternatives[name].append(problem)
    subset: list[MeasuredProblem] = []
    for name in sorted(alternatives, key=lambda name: hashlib.sha256(name.encode()).digest()):
        if len(subset) >= limit:
            break
        subset += alternatives[name]
    return subset


def _outcomes(
    loaded: LoadedFile, answers: Sequence[Answer]
) -> tuple[list[ScoredProblem], Counter[str]]:
    answered, missing = [], Counter[str]()
    for problem, answer in zip(loaded.problems, answers, strict=True):
        if answer.prediction is None:
            missing[answer.reason] += problem.repeats
        else:
            answered.append((problem, answer, answer.prediction))
    near = baselines.neighbours(
        [problem.op for problem, _, _ in answered],
        [problem.case.device for problem, _, _ in answered],
        [problem.case.problem for problem, _, _ in answered],
        [problem.measured for problem, _, _ in answered],
    )
    outcomes = []
    for (problem, answer, prediction), neighbour in zip(answered, near, strict=True):
        others = {baselines.ROOFLINE: answer.roofline, baselines.NEIGHBOUR: neighbour}
        outcomes.append(
            ScoredProblem(
                dataset=loaded.file.dataset,
                case=problem.case,
                measured=problem.measured,
                repeats=problem.repeats,
                prediction=prediction,
                baselines={n: s for n, s in others.items() if s is not None and s > 0},
            )
        )
    return outcomes, missing


def _first_reason(files: Sequence[MeasuredFile]) -> str:
    reasons = (reason for file in files for reason in file.not_predicted)
    return next(reasons, "the files hold no measured times")


def _choices(outcomes: Iterable[ScoredProblem]) -> tuple[ChoiceScore, ...]:
    right: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for outcome in outcomes:
        for name, best in outcome.case.chosen.items():
            assumed = outcome.prediction.assumed.get(name)
            right[outcome.op_class, name].append(str(assumed) == best)
    return tuple(
        ChoiceScore(op, name, len(answers), sum(answers) / len(answers))
        for (op, name), answers in sorted(right.items())
    )


def _figure_scores(figures: Iterable[MeasuredFigure]) -> tuple[FigureScore, ...]:
    groups: dict[tuple[str, str, str], list[MeasuredFigure]] = defaultdict(list)
    for figure in figures:
        groups[figure.kind, figure.device, figure.unit].append(figure)
    result = []
    for (kind, device, unit), members in sorted(groups.items()):
        pairs = [
            (figure.expected, figure.measured)
            for figure in members
            if figure.expected is not None and figure.expected > 0 and figure.measured > 0
        ]
        result.append(
            FigureScore(
                kind=kind,
                device=device,
                unit=unit,
                error=scores.error(*zip(*pairs, strict=True)) if pairs else None,
                unknown=len(members) - len(pairs),
            )
        )
    return tuple(result)


def _worst(outcomes: Iterable[ScoredProblem]) -> dict[str, tuple[ScoredProblem, ...]]:
    return {
        op: tuple(sorted(members, key=lambda outcome: -abs(outcome.log_ratio))[:WORST])
        for op, members in scores.by_op(outcomes).items()
    }
