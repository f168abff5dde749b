"""Scores of predictions, every problem counting once.

error   |predicted / measured − 1|: its median and 90 % quantile
WMAPE   Σ |predicted − measured| / Σ measured
bias    median of log(predicted / measured)
spread  half the distance of the 16 % and 84 % quantiles of log2(predicted / measured): one
        standard deviation where errors are log-normal
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wavecast.bench.accuracy.outcome import Outcome
from wavecast.model.intervals import SIZES


@dataclass(frozen=True, slots=True)
class Error:
    """Errors of `n` predictions; shares, not percent."""

    n: int
    median: float
    p90: float
    wmape: float
    bias: float
    spread: float


@dataclass(frozen=True, slots=True)
class Score:
    """The errors of a group of problems, and those of the baselines on the problems they answer.

    `coverage` is the share of measured times inside the predicted interval.
    """

    error: Error
    coverage: float
    baselines: Mapping[str, Error]


@dataclass(frozen=True, slots=True)
class Row:
    """A score in a table: of the problems whose label `by` is `value`; all when `by` is "".

    `op` is the op, and the data set where several measured it.
    """

    op: str
    by: str
    value: str
    score: Score


def error(predicted: Sequence[float], measured: Sequence[float]) -> Error:
    """The errors of predictions beside measurements, in one unit, positive, at least one."""
    guess, real = np.asarray(predicted, float), np.asarray(measured, float)
    off, logs = np.abs(guess / real - 1), np.log(guess / real)
    low, high = np.quantile(logs / np.log(2), [0.16, 0.84])
    return Error(
        n=len(real),
        median=float(np.median(off)),
        p90=float(np.quantile(off, 0.9)),
        wmape=float(np.abs(guess - real).sum() / real.sum()),
        bias=float(np.median(logs)),
        spread=float(high - low) / 2,
    )


def score(outcomes: Sequence[Outcome]) -> Score:
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


def by_op(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Outcomes by op; by op and data set where several data sets measured it, each in its way."""
    found: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        found[outcome.op_class][outcome.dataset].append(outcome)
    return {
        op if len(sets) == 1 else f"{op}, {name}": members
        for op, sets in sorted(found.items())
        for name, members in sorted(sets.items())
    }


def table(outcomes: Iterable[Outcome]) -> tuple[Row, ...]:
    """Scores by op, and of every op by each of its labels that has more than one value."""
    rows = []
    for op, members in by_op(outcomes).items():
        rows.append(Row(op, "", "", score(members)))
        for by, groups in _groups(members).items():
            rows += [Row(op, by, value, score(group)) for value, group in groups.items()]
    return tuple(rows)


def _groups(outcomes: Sequence[Outcome]) -> dict[str, dict[str, list[Outcome]]]:
    """Outcomes by label and value; sizes in order, else the values with most problems first."""
    found: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        for by, value in outcome.labels.items():
            found[by][value].append(outcome)
    sizes = [name for _, name in SIZES]
    return {
        by: dict(
            sorted(
                values.items(),
                key=lambda item: sizes.index(item[0]) if by == "size" else -len(item[1]),
            )
        )
        for by, values in found.items()
        if len(values) > 1 and not (by == "device and dtype" and _one_sided(found))
    }


def _one_sided(found: Mapping[str, Mapping[str, object]]) -> bool:
    """Whether either the device or the dtype is the same everywhere: both together say no more."""
    return min(len(found["device"]), len(found["dtype"])) < 2
