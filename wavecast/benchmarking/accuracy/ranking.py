"""How well predictions order alternatives that were measured for the same problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from wavecast.benchmarking.accuracy.outcome import ScoredProblem
from wavecast.benchmarking.accuracy.scores import by_op


@dataclass(frozen=True, slots=True)
class Ranking:
    """What choosing the predicted best of an op's measured alternatives reaches.

    `reached` are quantiles over problems of the measured best time over the measured time of the
    predicted best (1 is the best choice): median, mean, and the 10 % that fare worst.
    `tau` is the median of Kendall's rank correlation (tau-b) between predicted and measured times.
    """

    op: str
    problems: int
    alternatives: float
    reached_median: float
    reached_mean: float
    reached_p10: float
    tau: float


def rank(outcomes: Iterable[ScoredProblem]) -> tuple[Ranking, ...]:
    """Rankings by op, over problems with at least two measured alternatives."""
    rankings = []
    for op, members in by_op(outcomes).items():
        problems: dict[tuple[str, str, str], list[ScoredProblem]] = defaultdict(list)
        for outcome in members:
            case = outcome.case
            if case.problem:
                problems[case.device, case.group, case.problem].append(outcome)
        ranked = [alternatives for alternatives in problems.values() if len(alternatives) > 1]
        if ranked:
            rankings.append(_ranking(op, ranked))
    return tuple(rankings)


def _ranking(op: str, groups: Sequence[Sequence[ScoredProblem]]) -> Ranking:
    ratios, taus = [], []
    for members in groups:
        measured = np.array([outcome.measured for outcome in members])
        predicted = np.array([outcome.prediction.seconds for outcome in members])
        ratios.append(measured.min() / measured[predicted.argmin()])
        taus.append(kendall(predicted, measured))
    return Ranking(
        op=op,
        problems=len(groups),
        alternatives=float(np.mean([len(members) for members in groups])),
        reached_median=float(np.median(ratios)),
        reached_mean=float(np.mean(ratios)),
        reached_p10=float(np.quantile(ratios, 0.1)),
        tau=float(np.median(taus)),
    )


def kendall(first: np.ndarray, second: np.ndarray) -> float:
    """Kendall's tau-b of two vectors; 0 where one of them is constant.

    (Kendall: Rank correlation methods; ties leave the denominator by their own vector.)
    """
    upper = np.triu_indices(len(first), 1)
    first_signs = np.sign(first[:, None] - first)[upper]
    second_signs = np.sign(second[:, None] - second)[upper]
    scale = np.sqrt(np.count_nonzero(first_signs) * float(np.count_nonzero(second_signs)))
    return float((first_signs * second_signs).sum() / scale) if scale else 0.0
