"""A profiled run on another chip: its operators re-priced one by one.

The time of an operator there is its measured time, times the ratio of the two predictions. What the
predictor gets wrong about an operator on one chip, a slow choice of the library or an unusual
layout, so stays in its time on the other. Kernels without a prediction change as the predicted ones
of their category do, or as all of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wavecast.arch.device import Device
from wavecast.bench.profiles.predicted import OperatorTime, PredictedProfile, predict
from wavecast.bench.profiles.profile import Profile


@dataclass(frozen=True, slots=True)
class MovedOperator:
    """An operator with its seconds on the other chip. `ratio` is that of the times (there / here),
    `by_category` says that it is the ratio of its category."""

    here: OperatorTime
    seconds: float
    ratio: float
    by_category: bool


@dataclass(frozen=True, slots=True)
class MovedProfile:
    """A profile on another chip, in seconds of its kernels: `low` and `high` are the ends of the
    80 % interval of `seconds`."""

    device: Device
    here: PredictedProfile
    there: PredictedProfile
    operators: tuple[MovedOperator, ...]
    seconds: float
    low: float
    high: float


def elsewhere(profile: Profile, here: PredictedProfile, device: Device) -> MovedProfile:
    """`profile`, predicted as `here` on the chip that ran it, on `device`."""
    there = predict(profile, device)
    paired = {(one.name, one.sizes): one for one in there.operators}
    ratios: dict[tuple[str, str], float] = {}
    by_category: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in here.known:
        other = paired.get((one.name, one.sizes))
        if other is None or other.why_not or not one.predicted:
            continue
        ratio = other.predicted / one.predicted
        ratios[one.name, one.sizes] = ratio
        by_category[one.category].append((one.measured, one.measured * ratio))
    every = [pair for pairs in by_category.values() for pair in pairs]
    moved = []
    for one in here.operators:
        known = ratios.get((one.name, one.sizes))
        ratio = known if known is not None else _ratio(by_category.get(one.category) or every)
        moved.append(MovedOperator(one, one.measured * ratio, ratio, known is None))
    seconds = sum(one.seconds for one in moved)
    factor = _interval_factor(here, there)
    return MovedProfile(
        device=device,
        here=here,
        there=there,
        operators=tuple(sorted(moved, key=lambda one: -one.seconds)),
        seconds=seconds,
        low=seconds / factor,
        high=seconds * factor,
    )


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    here = sum(first for first, _ in pairs)
    return sum(second for _, second in pairs) / here if here else math.nan


def _interval_factor(here: PredictedProfile, there: PredictedProfile) -> float:
    """Factor of the interval: the predictors' intervals on both chips, operators weighted by time.
    Errors of one predictor do not average out over its operators, so none are divided."""
    factors = [
        (one.measured, math.log(one.high / one.low) / 2)
        for answer in (here, there)
        for one in answer.known
        if one.low > 0
    ]
    if not factors:
        return math.nan
    weights, widths = np.array(factors).T
    return math.exp(math.sqrt(2) * float(np.average(widths, weights=weights)))


__all__ = ["MovedOperator", "MovedProfile", "elsewhere"]
