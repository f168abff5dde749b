"""One model on several systems: ratios to the first system with intervals, and what bounds each.

A ratio of two predictions errs less than both: what the model of the layers, the engine and the
load have wrong is in both. Its interval comes from the ratios of runs of equal configurations on
two systems (`intervals.ratio_errors`). Where too few models were measured so, with relative errors
a and b of two systems and their correlation in such runs, the variance of log(ratio) is

    a² + b² - 2 · correlation · a · b

where a and b are the halves of the intervals on logarithmic scales, on the side that moves the
ratio up for its high end, and down for its low one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from wavecast.json_objects import High, JsonObject, Low, NonNegative, doc
from wavecast.systems.answer import ModelAnswer, ServingAnswer
from wavecast.systems.intervals import Interval, RatioErrors, ratio_errors


class SystemRatio(JsonObject):
    """A figure over that of the first system."""

    value: Annotated[NonNegative, doc("the prediction")]
    low: Low
    high: High


class StepBound(JsonObject):
    """What bounds the decode step."""

    cause: Annotated[str, doc("host, or the limiter of most of the time of the kernels")]
    share: Annotated[NonNegative, doc("its share of the step")]
    module: Annotated[str, doc("the module with most of the time")]
    module_share: Annotated[NonNegative, doc("its share of the step")]


@dataclass(frozen=True, slots=True)
class ComparedServing:
    """A load on a system next to the first one. `ttft`, `tpot` and `rate_per_gpu` are over those of
    the first system, output tokens per second of one GPU for the last."""

    serving: ServingAnswer
    bound: StepBound
    ttft: SystemRatio
    tpot: SystemRatio
    rate_per_gpu: SystemRatio


@dataclass(frozen=True, slots=True)
class ComparedSystem:
    """A system of a comparison. Without servings the model does not fit it, or the first one."""

    answer: ModelAnswer
    servings: tuple[ComparedServing, ...]


def compare_systems(answers: Sequence[ModelAnswer]) -> tuple[ComparedSystem, ...]:
    """Every system next to the first on which the model fits, for the same loads."""
    base = next((answer for answer in answers if answer.servings), None)
    if base is None:
        return tuple(ComparedSystem(answer, ()) for answer in answers)
    return tuple(ComparedSystem(answer, tuple(_pairs(base, answer))) for answer in answers)


def _pairs(base: ModelAnswer, answer: ModelAnswer) -> Iterator[ComparedServing]:
    for first, serving in zip(base.servings, answer.servings, strict=bool(answer.servings)):
        yield _compare_serving(base, first, answer, serving)


def bound(serving: ServingAnswer) -> StepBound:
    """What bounds the decode step of a load."""
    step = serving.decode
    causes: dict[str, float] = defaultdict(float)
    for kernel in serving.kernels:
        causes[kernel.priced.limiter] += kernel.seconds
    waiting = step.seconds - step.device
    cause = max(causes, key=lambda name: causes[name])
    seconds = causes[cause]
    if waiting > seconds:
        cause, seconds = "host", waiting
    module = max(step.modules, key=lambda name: step.modules[name])
    return StepBound(cause, seconds / step.seconds, module, step.modules[module] / step.seconds)


def _compare_serving(
    base: ModelAnswer, first: ServingAnswer, answer: ModelAnswer, serving: ServingAnswer
) -> ComparedServing:
    if answer is base:
        baseline = SystemRatio(1.0, 1.0, 1.0)
        return ComparedServing(serving, bound(serving), baseline, baseline, baseline)
    baseline, other = ((x.system.device.vendor, x.engine.name) for x in (base, answer))

    def errors(metric: str) -> RatioErrors:
        return ratio_errors(metric, baseline, other)

    rate = ratio(serving.output_rate, first.output_rate, errors("output"))
    gpus = base.parallel.gpus / answer.parallel.gpus
    return ComparedServing(
        serving,
        bound(serving),
        ratio(serving.ttft, first.ttft, errors("ttft")),
        ratio(serving.tpot, first.tpot, errors("tpot")),
        SystemRatio(rate.value * gpus, rate.low * gpus, rate.high * gpus),
    )


def ratio(top: Interval, bottom: Interval, errors: RatioErrors) -> SystemRatio:
    """`top` / `bottom`, with the measured errors of such ratios."""

    def half(end: float, other: float) -> float:
        square = end * end + other * other - 2 * errors.correlation * end * other
        return math.sqrt(max(0.0, square))

    up = half(math.log(top.high / top.value), math.log(bottom.value / bottom.low))
    down = half(math.log(top.value / top.low), math.log(bottom.high / bottom.value))
    if errors.half:
        up = down = errors.half
    value = top.value / bottom.value
    return SystemRatio(value, value * math.exp(-down), value * math.exp(up))


__all__ = [
    "ComparedServing",
    "ComparedSystem",
    "StepBound",
    "SystemRatio",
    "bound",
    "compare_systems",
    "ratio",
]
