"""The time of a sequence of launches and copies, with an interval for the sum.

    from wavecast.perfmodel.stream import PredictedLaunch, predict_stream
    found = predict_stream(device, [Copy("h2d", 4096), PredictedLaunch(prediction, 12), HostWait()])

The errors of predictions with the same basis, those of one kind of kernel at one distance from what
was measured, have the same causes: they add up. Those of different bases are independent: the
squares of their ends add up. Copies, fills and waits of the host are one more kind, whose residuals
are those of kinds that were not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.arch import Device
from wavecast.errors import UsageError
from wavecast.perfmodel import intervals, queue
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.distance import PredictionSubject
from wavecast.perfmodel.prediction import IntervalBasis, Prediction

QUEUE: Final = "queue"
"""Family of what a sequence takes in addition to its launches."""


@dataclass(frozen=True, slots=True)
class PredictedLaunch:
    """`count` launches of a predicted kernel or operation, one after the other."""

    prediction: Prediction
    count: int = 1


StreamStep = PredictedLaunch | queue.Copy | queue.Fill | queue.HostWait


@dataclass(frozen=True, slots=True)
class SequencePrediction:
    """The time between an event before the first step and one after the last, in seconds, with an
    interval that should contain 80 % of measurements.

    `parts` has the seconds of the launches by basis (as text), and of `queue`, all else; they add
    up to `seconds`. `bases` are the residuals of the interval.
    """

    device: str
    seconds: float
    low: float
    high: float
    parts: Mapping[str, float]
    bases: tuple[IntervalBasis, ...]


def predict_stream(device: Device, steps: Iterable[StreamStep]) -> SequencePrediction:
    """The time of steps on one stream of a device.

    Raises UsageError for a count below 1, a prediction for another device or a kind of copy that
    does not exist, MissingFact where the device lacks a number.
    """
    chip = Chip.of(device)
    queued: list[queue.Step] = []
    busy: dict[IntervalBasis, list[float]] = {}
    for step in steps:
        if not isinstance(step, PredictedLaunch):
            queued.append(step)
            continue
        prediction = _step_prediction(step, device)
        kernel_seconds = max(0.0, prediction.seconds - chip.launch)
        queued.append(queue.Launches(kernel_seconds, step.count))
        total = kernel_seconds * step.count
        sums = busy.setdefault(_basis(prediction), [0.0, 0.0, 0.0])
        sums[0] += total
        sums[1] += total * (1 - prediction.low / prediction.seconds)
        sums[2] += total * (prediction.high / prediction.seconds - 1)
    seconds = queue.elapsed_time(chip, queued)
    remaining = max(0.0, seconds - sum(total for total, _, _ in busy.values()))
    row, basis = intervals.residuals(intervals.table(), PredictionSubject(QUEUE), device)
    below = [low for _, low, _ in busy.values()] + [remaining * -math.expm1(min(0.0, row.low))]
    above = [high for _, _, high in busy.values()] + [remaining * math.expm1(max(0.0, row.high))]
    return SequencePrediction(
        device=device.id,
        seconds=seconds,
        low=max(0.0, seconds - math.hypot(*below)),
        high=seconds + math.hypot(*above),
        parts={**{str(key): sums[0] for key, sums in busy.items()}, QUEUE: remaining},
        bases=(*busy, basis),
    )


def _step_prediction(step: PredictedLaunch, device: Device) -> Prediction:
    if step.count < 1:
        raise UsageError(f"{step.count} launches: at least one is needed")
    if step.prediction.device != device.id:
        raise UsageError(f"a prediction for {step.prediction.device}, not for {device.id}")
    return step.prediction


def _basis(prediction: Prediction) -> IntervalBasis:
    return prediction.basis or IntervalBasis("unknown", 0, 0, "no residuals", "")


__all__ = ["QUEUE", "PredictedLaunch", "SequencePrediction", "StreamStep", "predict_stream"]
