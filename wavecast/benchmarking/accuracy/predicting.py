"""Predictions of problems, in several processes where there are many.

Predictions that execute code leave memory behind: arrays, translated code, recordings. They run in
children that end after `RECYCLED` problems, so that the peak is that of a few problems. A problem
whose process dies is counted with that reason, like any other without a prediction.
"""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Final

from wavecast import arch, processes
from wavecast.arch import Device
from wavecast.benchmarking.accuracy import baselines
from wavecast.errors import WavecastError
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.prediction import Prediction

RECYCLED: Final = 4
"""Problems that one child predicts by executing code."""
_CHUNK = 500
_WORTH_A_PROCESS = 2000  # problems; starting one costs about a second

Problem = tuple[Op, str]
"""An op and the id of a device."""
Progress = Callable[[int], None]
"""Called with the number of problems that are answered."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A prediction, or the reason there is none; `roofline` is the roofline's time in seconds, None
    where it has none."""

    prediction: Prediction | None
    reason: str
    roofline: float | None


def predict(
    problems: Sequence[Problem], jobs: int | None = None, progress: Progress = lambda _: None
) -> list[Answer]:
    """Answers for ops on devices, in order.

    Uses `jobs` processes; by default one per processor for 2000 problems or more, and one for ops
    that execute code.
    """
    results: list[Answer] = []
    for executes, same in groupby(problems, lambda problem: problem[0].executes_code):
        group = list(same)
        answers = _predict_in_children(group) if executes else _predict_in_pool(group, jobs)
        for some in answers:
            results += some
            progress(len(results))
    return results


def _predict_in_pool(problems: Sequence[Problem], jobs: int | None) -> Iterator[list[Answer]]:
    """The answers in parts, from a pool of processes where that is worth it."""
    if jobs is None:
        jobs = (os.cpu_count() or 1) if len(problems) >= _WORTH_A_PROCESS else 1
    size = max(1, min(_CHUNK, len(problems) // (4 * jobs)))
    chunks = [problems[start : start + size] for start in range(0, len(problems), size)]
    if jobs == 1:
        yield from map(_answers, chunks)
        return
    with processes.started_pool(jobs) as pool:
        yield from pool.map(_answers, chunks)


def _predict_in_children(problems: Sequence[Problem]) -> Iterator[list[Answer]]:
    """The answers in parts, each from a child of this process. When a child dies, each of its
    problems gets its own child."""
    if not processes.can_fork():
        yield from map(_answers, ([problem] for problem in problems))
        return
    for start in range(0, len(problems), RECYCLED):
        some = problems[start : start + RECYCLED]
        answers = _in_child(some)
        if isinstance(answers, str):
            answers = [_alone(problem) for problem in some]
        yield answers


def _alone(problem: Problem) -> Answer:
    answers = _in_child([problem])
    if isinstance(answers, str):
        return Answer(None, f"the process that predicted it died ({answers})", None)
    return answers[0]


def _in_child(problems: Sequence[Problem]) -> list[Answer] | str:
    """The answers of a fork, or how it died."""
    content, exit_status = processes.fork_for_bytes(
        lambda pipe: pickle.dump(_answers(problems), pipe)
    )
    try:
        return pickle.loads(content)
    except (EOFError, pickle.UnpicklingError):
        return (
            "unknown"
            if exit_status is None
            else exit_status.signal_name or f"exit code {exit_status.code}"
        )


def _answers(problems: Sequence[Problem]) -> list[Answer]:
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
    except Exception:  # a baseline must not end it either; this problem has none
        return Answer(prediction, "", None)


@cache
def _device(name: str) -> Device:
    return arch.load(name)


__all__ = ["RECYCLED", "Answer", "Problem", "Progress", "predict"]
