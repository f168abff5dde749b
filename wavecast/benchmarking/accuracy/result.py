"""The result of a validation, which text, JSON and HTML show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from wavecast.benchmarking.accuracy.cases import MeasuredFigure
from wavecast.benchmarking.accuracy.coverage import Coverage
from wavecast.benchmarking.accuracy.outcome import ScoredProblem
from wavecast.benchmarking.accuracy.ranking import Ranking
from wavecast.benchmarking.accuracy.scores import ErrorScore, ScoreRow
from wavecast.json_objects import Count, JsonObject, doc


@dataclass(frozen=True, slots=True)
class MeasuredFile:
    """Counts of one file.

    `rows` counts its rows, `cases` its measured times, `problems` the cases with repeats counted
    once, `predicted` the problems with a prediction, `figures` its measured figures that are not
    times. `not_predicted` counts rows, cases and figures by reason. `limited` is True where only a
    sample of the problems was predicted.
    """

    path: Path
    dataset: str
    rows: int
    cases: int
    problems: int
    predicted: int
    figures: int
    not_predicted: Mapping[str, int] = field(default_factory=dict)
    limited: bool = False


@dataclass(frozen=True, slots=True)
class ChoiceScore:
    """Share of `n` problems of an op whose prediction assumed the measured best's value of a
    property."""

    op: str
    property: str
    n: int
    right: float


class FigureScore(JsonObject):
    """Errors of figures of one kind on one device."""

    kind: str
    device: str
    unit: str
    error: ErrorScore | None
    unknown: Annotated[Count, doc("figures without an expected value")]


@dataclass(frozen=True, slots=True)
class Validation:
    """Predictions of measured problems, and their scores."""

    files: tuple[MeasuredFile, ...]
    outcomes: tuple[ScoredProblem, ...]
    figures: tuple[MeasuredFigure, ...]
    scores: tuple[ScoreRow, ...]
    rankings: tuple[Ranking, ...]
    choices: tuple[ChoiceScore, ...]
    coverage: tuple[Coverage, ...]
    figure_scores: tuple[FigureScore, ...]
    worst: Mapping[str, tuple[ScoredProblem, ...]]
    seconds: float
    """Wall time of all predictions."""
