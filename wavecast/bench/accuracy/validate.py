"""From files of measurements to scores."""

from __future__ import annotations

import hashlib
import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from wavecast.bench.accuracy import baselines, predicting, ranking, reading, residuals, scores
from wavecast.bench.accuracy.datasets import Case, Figure, Given, recognise
from wavecast.bench.accuracy.datasets.base import Dataset
from wavecast.bench.accuracy.outcome import Outcome
from wavecast.bench.accuracy.predicting import Answer
from wavecast.bench.accuracy.result import Choice, FigureScore, File, Validation
from wavecast.errors import InputError, NothingAnalysed
from wavecast.model.ops.base import Op

if TYPE_CHECKING:
    import pandas as pd

WORST = 5
"""Cases per op that are shown as the worst."""


@dataclass(frozen=True, slots=True)
class Options:
    """`jobs` processes (one per processor by default); `limit` problems per file, chosen by their
    digest, so always the same; `given` goes to the adapters."""

    jobs: int | None = None
    limit: int | None = None
    given: Given = field(default_factory=Given)


@dataclass(frozen=True, slots=True)
class Problem:
    """Rows of one op on one device: `case` is the first, `measured` the median of their times."""

    case: Case
    op: Op
    measured: float
    repeats: int


def validate(
    paths: Iterable[Path],
    options: Options = Options(),
    progress: Callable[[str], None] = lambda _: None,
) -> Validation:
    """Predictions beside every measurement of the files.

    Raises InputError for a file that is no data set, NothingAnalysed when no row of any file has a
    prediction or an expected figure.
    """
    every = []
    for path in paths:
        progress(f"reading {path.name}")
        every.append(load(path, options))
    files, outcomes, figures, spent = [], [], [], 0.0
    for loaded in every:
        progress(f"{loaded.file.path.name}: predicting {len(loaded.problems):,} problems")
        started = time.perf_counter()
        answers = predicting.predict([(p.op, p.case.device) for p in loaded.problems], options.jobs)
        spent += time.perf_counter() - started
        found, missing = _outcomes(loaded, answers)
        file = replace(
            loaded.file,
            predicted=len(found),
            not_predicted=dict((Counter(loaded.file.not_predicted) + missing).most_common()),
        )
        files.append(file)
        outcomes += found
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
        coverage=residuals.coverage(outcomes),
        figure_scores=_figure_scores(figures),
        worst=_worst(outcomes),
        seconds=spent,
    )


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file as problems to predict, and figures."""

    file: File
    problems: tuple[Problem, ...]
    figures: tuple[Figure, ...]


def load(path: Path, options: Options) -> Loaded:
    """The problems of a file, repeats merged. Raises InputError."""
    frame = reading.read(path)
    dataset = recognise([str(column) for column in frame.columns], path)
    repeats: dict[tuple[Op, str], list[Case]] = defaultdict(list)
    reasons: Counter[str] = Counter()
    figures, cases = [], 0
    for item in _items(dataset, frame, options.given, path):
        if isinstance(item, Figure):
            figures.append(item)
            if item.expected is None:
                reasons[item.reason or "nothing is known"] += 1
            continue
        cases += 1
        if reason := _unusable(item):
            reasons[reason] += 1
        elif item.op is not None:
            repeats[item.op, item.device].append(item)
    problems = [
        Problem(same[0], op, statistics.median(case.seconds for case in same), len(same))
        for (op, _), same in repeats.items()
    ]
    chosen = _sample(problems, options.limit)
    file = File(
        path=path,
        dataset=dataset.name,
        rows=len(frame),
        cases=cases,
        problems=len(problems),
        predicted=0,
        figures=len(figures),
        not_predicted=reasons,
        limited=len(chosen) < len(problems),
    )
    return Loaded(file, tuple(chosen), tuple(figures))


def _items(
    dataset: Dataset, frame: pd.DataFrame, given: Given, path: Path
) -> Iterator[Case | Figure]:
    """What rows hold. Raises InputError for a cell that is not what its column holds."""
    try:
        yield from dataset.cases(frame, given)
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: a cell of its {dataset.name} columns: {error}") from error


def _unusable(case: Case) -> str:
    if case.op is None or not case.device:
        return case.reason or "the adapter gives no op"
    if not (math.isfinite(case.seconds) and case.seconds > 0):
        return "the measured time is no positive number"
    return ""


def _sample(problems: list[Problem], limit: int | None) -> list[Problem]:
    """At most about `limit` problems; alternatives of one problem stay together."""
    if limit is None or len(problems) <= limit:
        return problems
    units: dict[str, list[Problem]] = defaultdict(list)
    for problem in problems:
        units[f"{problem.case.device} {problem.case.problem or problem.op}"].append(problem)
    chosen: list[Problem] = []
    for name in sorted(units, key=lambda name: hashlib.sha256(name.encode()).digest()):
        if len(chosen) >= limit:
            break
        chosen += units[name]
    return chosen


def _outcomes(loaded: Loaded, answers: Sequence[Answer]) -> tuple[list[Outcome], Counter[str]]:
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
            Outcome(
                dataset=loaded.file.dataset,
                case=problem.case,
                measured=problem.measured,
                repeats=problem.repeats,
                prediction=prediction,
                baselines={n: s for n, s in others.items() if s is not None and s > 0},
            )
        )
    return outcomes, missing


def _first_reason(files: Sequence[File]) -> str:
    reasons = (reason for file in files for reason in file.not_predicted)
    return next(reasons, "the files hold no measured times")


def _choices(outcomes: Iterable[Outcome]) -> tuple[Choice, ...]:
    right: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for outcome in outcomes:
        for name, best in outcome.case.chosen.items():
            said = outcome.prediction.assumed.get(name)
            right[outcome.op_class, name].append(str(said) == best)
    return tuple(
        Choice(op, name, len(answers), sum(answers) / len(answers))
        for (op, name), answers in sorted(right.items())
    )


def _figure_scores(figures: Iterable[Figure]) -> tuple[FigureScore, ...]:
    groups: dict[tuple[str, str, str], list[Figure]] = defaultdict(list)
    for figure in figures:
        groups[figure.kind, figure.device, figure.unit].append(figure)
    result = []
    for (kind, device, unit), members in sorted(groups.items()):
        known = [
            (figure.expected, figure.measured)
            for figure in members
            if figure.expected is not None and figure.expected > 0 and figure.measured > 0
        ]
        result.append(
            FigureScore(
                kind=kind,
                device=device,
                unit=unit,
                error=scores.error(*zip(*known, strict=True)) if known else None,
                unknown=len(members) - len(known),
            )
        )
    return tuple(result)


def _worst(outcomes: Iterable[Outcome]) -> dict[str, tuple[Outcome, ...]]:
    return {
        op: tuple(sorted(members, key=lambda outcome: -abs(outcome.log_ratio))[:WORST])
        for op, members in scores.by_op(outcomes).items()
    }
