"""What a validation found: one result that text, JSON and HTML show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wavecast.bench.accuracy.datasets.base import Figure
from wavecast.bench.accuracy.outcome import Outcome
from wavecast.bench.accuracy.ranking import Ranking
from wavecast.bench.accuracy.residuals import Coverage
from wavecast.bench.accuracy.scores import Error, Row


@dataclass(frozen=True, slots=True)
class File:
    """What became of one file.

    `rows` are its lines, `cases` the measured times it gave, `problems` what is left when repeats
    count once, `predicted` those with a prediction, `figures` its measured figures that are no
    times. `not_predicted` counts cases and figures by reason. `limited` says that only a sample was
    taken.
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
class Choice:
    """How often a property of the measured best was named right, of `n` problems of an op."""

    op: str
    property: str
    n: int
    right: float


@dataclass(frozen=True, slots=True)
class FigureScore:
    """Errors of figures of one kind and unit on one device, and how many have no expected one."""

    kind: str
    device: str
    unit: str
    error: Error | None
    unknown: int


@dataclass(frozen=True, slots=True)
class Validation:
    """Predictions beside measurements."""

    files: tuple[File, ...]
    outcomes: tuple[Outcome, ...]
    figures: tuple[Figure, ...]
    scores: tuple[Row, ...]
    rankings: tuple[Ranking, ...]
    choices: tuple[Choice, ...]
    coverage: tuple[Coverage, ...]
    figure_scores: tuple[FigureScore, ...]
    worst: Mapping[str, tuple[Outcome, ...]]
    seconds: float
    """Wall time of all predictions together."""
