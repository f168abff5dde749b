"""A profiled run on another chip, or changed: its operators re-priced one by one.

The time of an operator there is its measured time, times the ratio of the two predictions. What the
predictor gets wrong about an operator on one chip, a slow choice of the library or an unusual
layout, so stays in its time on the other. Kernels without a prediction change as the predicted ones
of their category do; if these take little of its time, as the memory and the matrix rate of the
chips.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Final

import numpy as np

from wavecast.arch.device import Device
from wavecast.errors import MissingFact
from wavecast.json_objects import Count, JsonObject, NonNegative, doc
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.intervals import HALF_WIDTH
from wavecast.profiles.changes import UNCHANGED, ProfileChanges
from wavecast.profiles.predicted import OperatorTime, PredictedProfile, predict
from wavecast.profiles.profile import Profile
from wavecast.profiles.replay import ProfileTimeline, measured_timeline, replay

_CHIP_DEVIATION: Final = 0.35
"""Standard deviation of the logarithm of a ratio that is that of the chips (assumed)."""
_LEAST_SHARE: Final = 0.1
"""The share of a category's time that must be predicted for its ratio to be used (assumed)."""
_MATRIX: Final = ("bf16", "fp16", "fp32")


class RatioBasis(Enum):
    """What the ratio of an operator's times is from."""

    PREDICTED = "predicted"
    CATEGORY = "as its category"
    CHIP = "as memory and matrix rates"


class ClassResidual(JsonObject):
    """Measured over predicted time of the operators of a category here."""

    category: Annotated[str, doc("what the kernels compute")]
    operators: Annotated[Count, doc("operators with sizes")]
    ratio: Annotated[NonNegative, doc("measured over predicted time, of their sums")]
    deviation: Annotated[NonNegative, doc("standard deviation of its logarithm over operators")]


@dataclass(frozen=True, slots=True)
class MovedOperator:
    """An operator (`row` of `here.operators`) with its seconds on the other chip. `ratio` is there
    over here, `deviation` the standard deviation of its logarithm."""

    row: int
    here: OperatorTime
    seconds: float
    ratio: float
    deviation: float
    basis: RatioBasis


@dataclass(frozen=True, slots=True)
class MovedProfile:
    """A profile on another chip or with changes, in seconds of its kernels: `low` and `high` are
    the ends of the 80 % interval of `seconds`. `before` and `after` are the timelines."""

    device: Device
    changes: ProfileChanges
    here: PredictedProfile
    there: PredictedProfile
    operators: tuple[MovedOperator, ...]
    residuals: tuple[ClassResidual, ...]
    seconds: float
    low: float
    high: float
    before: ProfileTimeline
    after: ProfileTimeline


def elsewhere(
    profile: Profile, here: PredictedProfile, device: Device, changes: ProfileChanges = UNCHANGED
) -> MovedProfile:
    """`profile`, predicted as `here` on the chip that ran it, on `device` with `changes`.

    Raises MissingFact where nothing about an operator is known on both chips.
    """
    there = predict(profile, device, changes)
    predictions: dict[int, tuple[float, float]] = {}
    of_category: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for row, (operator, other) in enumerate(zip(here.operators, there.operators, strict=True)):
        if not operator.why_not and not other.why_not and operator.predicted:
            # What another library's kernel loses is not carried over.
            replaced = (other.name, other.sizes) in there.replaced
            ratio = other.predicted / (operator.measured if replaced else operator.predicted)
            predictions[row] = (ratio, math.hypot(operator.deviation, other.deviation))
            of_category[operator.category].append((operator.measured, *predictions[row]))
    for category, pairs in list(of_category.items()):
        whole = sum(
            operator.measured for operator in here.operators if operator.category == category
        )
        if sum(time for time, _, _ in pairs) < _LEAST_SHARE * whole:
            del of_category[category]
    operators = [
        _move_operator(row, operator, predictions, of_category, here.device, device, changes)
        for row, operator in enumerate(here.operators)
    ]
    seconds = sum(operator.seconds for operator in operators)
    factor = math.exp(HALF_WIDTH * _deviation(operators, seconds))
    ratios = [operator.ratio for operator in operators]
    durations = profile.launches.duration
    times = [ratios[row] * durations[n] * 1e-9 for n, row in enumerate(here.rows)]
    return MovedProfile(
        device=device,
        changes=changes,
        here=here,
        there=there,
        operators=tuple(sorted(operators, key=lambda operator: -operator.seconds)),
        residuals=residuals(here.known),
        seconds=seconds,
        low=seconds / factor,
        high=seconds * factor,
        before=measured_timeline(profile),
        after=replay(profile, times, changes.host, graphs=changes.graphs),
    )


def residuals(operators: Iterable[OperatorTime]) -> tuple[ClassResidual, ...]:
    """Residuals of the predicted operators by category, those of most time first."""
    by_category: defaultdict[str, list[OperatorTime]] = defaultdict(list)
    for operator in operators:
        if operator.predicted and operator.measured:
            by_category[operator.category].append(operator)
    rows = []
    for category, ones in by_category.items():
        weights = np.array([operator.measured for operator in ones])
        logs = np.log([operator.measured / operator.predicted for operator in ones])
        mean = np.average(logs, weights=weights)
        scatter = math.sqrt(float(np.average((logs - mean) ** 2, weights=weights)))
        ratio = weights.sum() / sum(operator.predicted for operator in ones)
        rows.append((weights.sum(), ClassResidual(category, len(ones), float(ratio), scatter)))
    return tuple(residual for _, residual in sorted(rows, key=lambda pair: -pair[0]))


def _move_operator(
    row: int,
    operator: OperatorTime,
    predictions: Mapping[int, tuple[float, float]],
    of_category: Mapping[str, Sequence[tuple[float, float, float]]],
    here: Device,
    there: Device,
    changes: ProfileChanges,
) -> MovedOperator:
    if row in predictions:
        ratio, deviation = predictions[row]
        basis = RatioBasis.PREDICTED
    elif operator.category in of_category:
        ratio, deviation = _of_category(of_category[operator.category])
        basis = RatioBasis.CATEGORY
    else:
        ratio, deviation = _of_chips(here, there)
        ratio *= changes.factor(operator.name, operator.category)
        basis = RatioBasis.CHIP
    return MovedOperator(row, operator, operator.measured * ratio, ratio, deviation, basis)


def _of_category(operators: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """(ratio of the sums, deviation of the operators' ratios, which have their own): one operator
    says little about another. `operators` are (seconds, ratio, its deviation)."""
    weights, ratios, deviations = np.array(operators).T
    ratio = float(np.average(ratios, weights=weights))
    scatter = float(np.average(np.log(ratios / ratio) ** 2 + deviations**2, weights=weights))
    return ratio, math.hypot(math.sqrt(scatter), _CHIP_DEVIATION)


def _of_chips(here: Device, there: Device) -> tuple[float, float]:
    """Between the ratios of memory bandwidth and of the fastest common matrix rate."""
    if here.id == there.id:
        return 1.0, _CHIP_DEVIATION
    first, second = Chip.of(here), Chip.of(there)
    memory = first.hbm / second.hbm
    for dtype in _MATRIX:
        try:
            rates = [c.matrix_rate(dtype) * c.units * c.clock for c in (first, second)]
        except MissingFact:
            continue
        matrix = rates[0] / rates[1]
        between = abs(math.log(matrix / memory)) / 2
        return math.sqrt(matrix * memory), math.hypot(between, _CHIP_DEVIATION)
    return memory, _CHIP_DEVIATION


def _deviation(operators: Sequence[MovedOperator], seconds: float) -> float:
    """Of the logarithm of the total: errors of one category are the same for all its operators,
    those of two categories independent."""
    by_category: defaultdict[str, float] = defaultdict(float)
    for operator in operators:
        by_category[operator.here.category] += operator.seconds * operator.deviation
    return math.hypot(*by_category.values()) / seconds if seconds else math.nan


__all__ = [
    "ClassResidual",
    "MovedOperator",
    "MovedProfile",
    "RatioBasis",
    "elsewhere",
    "residuals",
]
