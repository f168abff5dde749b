"""Scores of predictions; every problem counts once.

error   |predicted / measured − 1|: its median and 90 % quantile
WMAPE   Σ |predicted − measured| / Σ measured
bias    median of log(predicted / measured)
sigma   half the distance between the 16 % and 84 % quantiles of log2(predicted / measured): the
        standard deviation of log-normal errors
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import field

from wavecast.benchmarking.accuracy.outcome import ScoredProblem
from wavecast.json_objects import Count, JsonObject, NonNegative, doc
from wavecast.perfmodel.intervals import SIZES


class ErrorScore(JsonObject):
    """Errors of `n` predictions, as shares."""

    n: Count
    median: Annotated[NonNegative, doc("of |predicted / measured − 1|")]
    p90: NonNegative
    wmape: Annotated[NonNegative, doc("Σ |predicted − measured| / Σ measured")]
    bias: Annotated[float, doc("median of log(predicted / measured)")]
    log2_sigma: Annotated[
        NonNegative,
        doc("half the distance of the 16 % and 84 % quantiles of log2(predicted / measured)"),
    ] = field(name="spread")


@dataclass(frozen=True, slots=True)
class Score:
    """The errors of a group of problems, and the errors of baselines on the problems they predict.

    `coverage` is the share of measured times inside the predicted interval.
    """

    error: ErrorScore
    coverage: float
    baselines: Mapping[str, ErrorScore]


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The score of the problems with label `by` equal to `value`; of all problems when `by` is "".

    `op` is the op class, with the name of the importer where several measured it.
    """

    op: str
    by: str
    value: str
    score: Score


def error(predicted: Sequence[float], measured: Sequence[float]) -> ErrorScore:
    """The errors of predicted and measured times: vectors of equal length [n], n >= 1, positive, in
    one unit. Raises ValueError for other lengths."""
    guess, real = np.asarray(predicted, float), np.asarray(measured, float)
    off, logs = np.abs(guess / real - 1), np.log(guess / real)
    low, high = np.quantile(logs / np.log(2), [0.16, 0.84])
    return ErrorScore(
        n=len(real),
        median=float(np.median(off)),
        p90=float(np.quantile(off, 0.9)),
        wmape=float(np.abs(guess - real).sum() / real.sum()),
        bias=float(np.median(logs)),
        log2_sigma=float(high - low) / 2,
    )


def score(outcomes: Sequence[ScoredProblem]) -> Score:
    """The score of at least one outcome."""
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.baselines)
    baselines = {}
    for name in names:
        answered = [outcome for outcome in outcomes if name in outcome.baselines]
        baselines[name] = error(
            [outcome.baselines[name] for outcome in answered],
            [outcome.measured for outcome in answered],
        )
    return Score(
        error=error(
            [outcome.prediction.seconds for outcome in outcomes],
            [outcome.measured for outcome in outcomes],
        ),
        coverage=sum(outcome.covered for outcome in outcomes) / len(outcomes),
        baselines=baselines,
    )


def by_op(outcomes: Iterable[ScoredProblem]) -> dict[str, list[ScoredProblem]]:
    """Outcomes by op class; by op class and importer where several importers measured it."""
    groups: dict[str, dict[str, list[ScoredProblem]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        groups[outcome.op_class][outcome.dataset].append(outcome)
    return {
        op if len(sets) == 1 else f"{op}, {name}": members
        for op, sets in sorted(groups.items())
        for name, members in sorted(sets.items())
    }


def table(outcomes: Iterable[ScoredProblem]) -> tuple[ScoreRow, ...]:
    """Scores by op, and of every op by each of its labels that has more than one value."""
    rows = []
    for op, members in by_op(outcomes).items():
        rows.append(ScoreRow(op, "", "", score(members)))
        for by, groups in _groups(members).items():
            rows += [ScoreRow(op, by, value, score(group)) for value, group in groups.items()]
    return tuple(rows)


def _groups(outcomes: Sequence[ScoredProblem]) -> dict[str, dict[str, list[ScoredProblem]]]:
    """Outcomes by label and value; sizes in order, else the values with most problems first."""
    groups: dict[str, dict[str, list[ScoredProblem]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        for by, value in outcome.labels.items():
            groups[by][value].append(outcome)
    sizes = [name for _, name in SIZES]
    return {
        by: dict(
            sorted(
                values.items(),
                key=lambda item: sizes.index(item[0]) if by == "size" else -len(item[1]),
            )
        )
        for by, values in groups.items()
        if len(values) > 1 and not (by == "device and dtype" and _one_sided(groups))
    }


def _one_sided(groups: Mapping[str, Mapping[str, object]]) -> bool:
    """Whether device or dtype has one value only, so that the pair tells no more than the other."""
    return min(len(groups["device"]), len(groups["dtype"])) < 2
