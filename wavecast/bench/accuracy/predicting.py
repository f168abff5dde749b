"""Predictions of problems, in several processes where there are many."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from wavecast import arch, processes
from wavecast.arch import Device
from wavecast.bench.accuracy import baselines
from wavecast.errors import WavecastError
from wavecast.model.ops.base import Op
from wavecast.model.prediction import Prediction

_CHUNK = 500
_WORTH_A_PROCESS = 2000  # problems; starting one costs about a second


@dataclass(frozen=True, slots=True)
class Answer:
    """A prediction, or the reason there is none; `roofline` is the roofline's time in seconds, None
    where it has none."""

    prediction: Prediction | None
    reason: str
    roofline: float | None


def predict(problems: Sequence[tuple[Op, str]], jobs: int | None = None) -> list[Answer]:
    """Answers for ops on devices, in order.

    Uses `jobs` processes; by default one per processor for 2000 problems or more.
    """
    if jobs is None:
        jobs = (os.cpu_count() or 1) if len(problems) >= _WORTH_A_PROCESS else 1
    if jobs == 1 or not problems:
        return _answers(problems)
    size = max(1, min(_CHUNK, len(problems) // (4 * jobs)))
    chunks = [problems[start : start + size] for start in range(0, len(problems), size)]
    with processes.started(jobs) as pool:
        return [answer for answers in pool.map(_answers, chunks) for answer in answers]


def _answers(problems: Sequence[tuple[Op, str]]) -> list[Answer]:
    return [_answer(op, _device(device)) for op, device in problems]


def _answer(op: Op, device: Device) -> Answer:
    try:
        prediction = op.predict(device)
    except WavecastError as error:
        return Answer(None, str(error), None)
    except Exception as error:  # a bug must not end the validation; it is counted with this reason
        return Answer(None, f"a bug in wavecast: {type(error).__name__}: {error}", None)
    if not (math.isfinite(prediction.seconds) and prediction.seconds > 0):
        reason = f"a bug in wavecast: a predicted time of {prediction.seconds} s"
        return Answer(None, reason, None)
    try:
        return Answer(prediction, "", baselines.roofline_seconds(op, device))
    except (WavecastError, ArithmeticError):
        return Answer(prediction, "", None)


@cache
def _device(name: str) -> Device:
    return arch.load(name)
