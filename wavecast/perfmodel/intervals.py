"""The interval of a prediction, from the errors of predictions on what was left out of the fits.

`residuals.toml`, written by `python -m calibration.residuals`, has what was measured, and quantiles
of log(measured / predicted) by distance class (`distance`). The residuals are those of chips,
libraries, sources and models that the coefficients were not fitted to, and each left-out group
counts equally (`calibration.conformal`). A row is for a class, a family of ops or families with the
same limits, a device and a library; "" is all of them. The narrowest row counts. A class with too
few left-out groups has none: its predictions take the residuals of the next wider class, and their
basis says so.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from statistics import NormalDist

from wavecast.arch import Device
from wavecast.perfmodel.distance import (
    WIDER,
    DistanceClass,
    Measured,
    MeasuredRange,
    PredictionSubject,
    related_families,
)
from wavecast.perfmodel.prediction import IntervalBasis, Prediction

COVERAGE = 0.8
"""Share of measurements that an interval should contain."""
HALF_WIDTH = NormalDist().inv_cdf((1 + COVERAGE) / 2)
"""Standard deviations of a normal distribution from its middle to the end of such an interval."""

SIZES = ((1e-5, "<10 µs"), (1e-4, "10–100 µs"), (1e-3, "0.1–1 ms"), (math.inf, "≥1 ms"))

Key = tuple[str, str, str, str]
"""Distance class, family (or related families), device, library; "" is all."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """Quantiles of log(measured / predicted) of `problems` in `groups` left-out groups; `source`
    says what was left out of what."""

    low: float
    high: float
    problems: int
    groups: int
    source: str


@dataclass(frozen=True, slots=True)
class ResidualTable:
    """The rows of `residuals.toml`, and what was measured."""

    rows: Mapping[Key, Residuals]
    measured: Measured


def size_class(seconds: float) -> str:
    """The decade of a time: `<10 µs`, `10–100 µs`, `0.1–1 ms`, `≥1 ms`."""
    return next(name for below, name in SIZES if seconds < below)


def with_interval(
    prediction: Prediction,
    subject: PredictionSubject | str,
    device: Device,
    *,
    widen: float = 1.0,
) -> Prediction:
    """The prediction with its interval and the basis of it.

    `subject` is what the prediction is of; a family alone is a subject of unknown sizes. `widen`
    multiplies the logarithmic width, for reasons that the caller notes.
    """
    if isinstance(subject, str):
        subject = PredictionSubject(subject)
    row, basis = residuals(table(), subject, device)
    return replace(
        prediction,
        low=prediction.seconds * math.exp(min(0.0, row.low) * widen),
        high=prediction.seconds * math.exp(max(0.0, row.high) * widen),
        basis=basis,
    )


def residuals(
    residual_table: ResidualTable, subject: PredictionSubject, device: Device
) -> tuple[Residuals, IntervalBasis]:
    """The row for a subject on a device, and the basis that a prediction reports. Raises
    ValueError."""
    distance_class = residual_table.measured.distance(
        subject, device.id, device.target
    ).distance_class
    for key in keys(distance_class, subject, device):
        if key in residual_table.rows:
            row = residual_table.rows[key]
            wider = (
                ""
                if key[0] == distance_class.value
                else f"too few left-out groups: {distance_class.value}"
            )
            return row, IntervalBasis(
                distance_class.value, row.problems, row.groups, row.source, wider
            )
    raise ValueError("residuals.toml has no row for all predictions")


def keys(
    distance_class: DistanceClass, subject: PredictionSubject, device: Device
) -> Iterator[Key]:
    """The rows that describe a prediction, the narrowest first: of its class by family, device and
    library, then of its class in related families and in all, then the same of the next wider
    classes.

    Where chip and library were measured, residuals of other chips with other libraries say less
    than those of all families do.
    """
    families = (*related_families(subject.family, device), "")
    name: DistanceClass | None = distance_class
    while name is not None:
        for family, chip, library in (
            (subject.family, device.id, subject.library or BEST),
            (subject.family, device.id, ""),
            (subject.family, "", subject.library or BEST),
            *(
                (wider_family, "", "")
                for wider_family in families
                if name not in NEAR or not wider_family
            ),
        ):
            yield name.value, family, chip, library
        name = WIDER[name]


NEAR = (DistanceClass.MEASURED, DistanceClass.SIZES)
"""Classes whose rows are of a chip or a library."""
BEST = "best"
"""How rows name predictions of the best library, for which no library is asked."""


@cache
def table() -> ResidualTable:
    """`residuals.toml`."""
    text = (resources.files("wavecast.perfmodel") / "residuals.toml").read_text(encoding="utf-8")
    return read(text)


def read(text: str) -> ResidualTable:
    """The table that the text of `residuals.toml` has."""
    document = tomllib.loads(text)
    return ResidualTable(
        {tuple(row[:4]): Residuals(*row[4:]) for row in document["rows"]},
        Measured(
            MeasuredRange(*row[:5], sizes={name: tuple(span) for name, span in row[5].items()})
            for row in document["measured"]
        ),
    )


__all__ = [
    "BEST",
    "COVERAGE",
    "HALF_WIDTH",
    "NEAR",
    "SIZES",
    "Key",
    "ResidualTable",
    "Residuals",
    "keys",
    "read",
    "residuals",
    "size_class",
    "table",
    "with_interval",
]
