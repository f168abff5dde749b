"""What the formats of a validation share: words and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wavecast.report.explain import words
from wavecast.report.kit import units

if TYPE_CHECKING:
    from wavecast.benchmarking.accuracy.outcome import ScoredProblem
    from wavecast.benchmarking.accuracy.result import FigureScore
    from wavecast.benchmarking.accuracy.scores import ErrorScore, ScoreRow

BASELINES = {"roofline": "roofline", "neighbour": "nearest"}
"""Column titles of the baselines."""


def baseline_names(rows: Sequence[ScoreRow]) -> tuple[str, ...]:
    """The baselines that any row has."""
    return tuple(dict.fromkeys(name for row in rows for name in row.score.baselines))


def share(value: float | None) -> str:
    """A share in percent with one decimal."""
    return units.UNKNOWN if value is None or not math.isfinite(value) else f"{100 * value:.1f}%"


def ratio(log: float) -> str:
    """A ratio, from its logarithm, with two decimals."""
    return f"{math.exp(log):.2f}" if math.isfinite(log) else units.UNKNOWN


def log_percent(value: float) -> str:
    """A logarithmic bias as signed percent: `+3.1%`."""
    return f"{100 * math.expm1(value):+.1f}%"


def known_figures(
    scores: Sequence[FigureScore],
) -> tuple[list[tuple[FigureScore, ErrorScore]], int]:
    """Scores of figures that were compared, and how many figures were not."""
    compared = [(score, score.error) for score in scores if score.error is not None]
    return compared, sum(score.unknown for score in scores)


def explanation(outcome: ScoredProblem) -> tuple[str, str]:
    """What was measured and predicted, and what the prediction says of itself."""
    prediction, case = outcome.prediction, outcome.case
    head = (
        f"{case.op} on {case.device}: predicted {units.seconds(prediction.seconds)}, measured "
        f"{units.seconds(outcome.measured)} ({outcome.ratio:.2f}×)"
    )
    bounds = sorted(prediction.bounds.items(), key=lambda item: -item[1])
    parts = [
        f"limited by {prediction.limiter}",
        ", ".join(f"{name} {units.seconds(seconds)}" for name, seconds in bounds[:4]),
        words.assumptions(prediction.assumed),
        *prediction.notes,
        case.source,
    ]
    return head, "; ".join(part for part in parts if part)
