"""How many measured times are within the predicted intervals, and how wide these are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from wavecast.benchmarking.accuracy.outcome import ScoredProblem


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of the `n` problems of an op at a distance from what was measured: the share of measured
    times in the interval, and the median `width` of intervals, log(high / low)."""

    op: str
    distance: str
    n: int
    coverage: float
    width: float


def coverage(outcomes: Iterable[ScoredProblem]) -> tuple[Coverage, ...]:
    """Coverage by op and distance class of the predictions."""
    groups: dict[tuple[str, str], list[ScoredProblem]] = defaultdict(list)
    for outcome in outcomes:
        basis = outcome.prediction.basis
        groups[outcome.op_class, basis.distance if basis else "unknown"].append(outcome)
    return tuple(_coverage(*key, members) for key, members in sorted(groups.items()))


def _coverage(op: str, distance: str, outcomes: Sequence[ScoredProblem]) -> Coverage:
    widths = [
        np.log(outcome.prediction.high / outcome.prediction.low)
        for outcome in outcomes
        if outcome.prediction.low > 0
    ]
    return Coverage(
        op=op,
        distance=distance,
        n=len(outcomes),
        coverage=float(np.mean([outcome.covered for outcome in outcomes])),
        width=float(np.median(widths)) if widths else float("inf"),
    )


__all__ = ["Coverage", "coverage"]
