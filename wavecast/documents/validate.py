"""`wavecast.validate/1`: what `wavecast validate --format json` writes."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, field

from wavecast.benchmarking.accuracy.result import FigureScore
from wavecast.benchmarking.accuracy.scores import ErrorScore
from wavecast.json_objects import Count, JsonObject, NonNegative, Numbers, Share, doc
from wavecast.perfmodel.prediction import IntervalBasis


class DatasetFileJson(JsonObject):
    """A file of measurements."""

    path: str
    dataset: str
    rows: Count
    cases: Annotated[Count, doc("measured times")]
    problems: Annotated[Count, doc("cases with repeats merged")]
    predicted: Count
    figures: Annotated[Count, doc("measured figures other than times")]
    not_predicted: Annotated[dict[str, Count], doc("counts by reason")]
    limited: Annotated[bool, doc("whether only a sample was predicted")]


class ScoreJson(JsonObject):
    """The errors of a group of problems."""

    op: str
    by: Annotated[str, doc('label that separates the problems; "" for all problems of the op')]
    value: str
    n: Count
    median: Annotated[NonNegative, doc("of |predicted / measured − 1|")]
    p90: NonNegative
    wmape: Annotated[NonNegative, doc("Σ |predicted − measured| / Σ measured")]
    bias: Annotated[float, doc("median of log(predicted / measured)")]
    log2_sigma: Annotated[
        NonNegative,
        doc("half the distance of the 16 % and 84 % quantiles of log2(predicted / measured)"),
    ] = field(name="spread")
    coverage: Annotated[Share | None, doc("measured times within the interval")]
    baselines: dict[str, ErrorScore]


class RankingJson(JsonObject):
    """How good the predicted best alternative of an op is."""

    op: str
    problems: Count
    alternatives: Annotated[float, doc("mean number per problem")]
    reached_median: Share | None
    reached_mean: Share | None
    reached_p10: Share | None
    tau: Annotated[float, Meta(ge=-1, le=1)]


class PropertyChoiceJson(JsonObject):
    """How often a property of the measured best was predicted right."""

    op: str
    property: str
    n: Count
    right: Share | None


class CoverageJson(JsonObject):
    """How many of an op's problems at a distance from what was measured are in the interval."""

    op: str
    distance: Annotated[str, doc("distance class, as in the basis of a prediction")]
    n: Count
    coverage: Annotated[Share | None, doc("measured times within the interval")]
    width: Annotated[float | None, doc("median of log(high / low)")]


class CaseJson(JsonObject):
    """A measured problem and its prediction, in seconds."""

    dataset: str
    op: str
    problem: str
    device: str
    labels: dict[str, str]
    group: str
    source: str
    repeats: Count
    measured: float
    predicted: float
    low: float
    high: float
    limiter: str
    fidelity: str
    bounds: Numbers
    assumed: dict[str, Any]
    notes: list[str]
    basis: Annotated[IntervalBasis | None, doc("the residuals of the interval")]
    baselines: dict[str, float]


class ValidateDocument(JsonObject, tag_field="schema", tag="wavecast.validate/1"):
    """Predictions compared with measurements. Shares are fractions, times seconds; null is
    unknown."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    files: list[DatasetFileJson]
    scores: list[ScoreJson]
    rankings: list[RankingJson]
    choices: list[PropertyChoiceJson]
    coverage: list[CoverageJson]
    figures: list[FigureScore]
    worst: Annotated[dict[str, list[CaseJson]], doc("the largest errors by op")]
    cases: Annotated[list[CaseJson] | UnsetType, doc("every problem, with --cases")] = UNSET
