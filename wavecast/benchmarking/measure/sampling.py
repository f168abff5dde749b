"""How many samples to take, in which order.

Something is called until its times have settled, then until the interval of its median is narrow
enough or the budget is spent. Several subjects alternate, forwards and backwards (A B B A …), so
that a chip that warms up or throttles does so for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Literal

from wavecast.errors import UsageError

TimeOnce = Callable[[], float]
"""Runs the subject once; its device seconds."""

Progress = Callable[[int, int, float], None]
"""(number of the subject, samples so far, relative half width of the interval of its median)."""

_WINDOW: Final = 5
_FEWEST: Final = 10
_Z: Final = 1.96
"""Standard deviations of the 95 % interval that decides when to stop."""


@dataclass(frozen=True, slots=True)
class SamplingBudget:
    """What measuring one subject may take: `seconds` of wall time, `samples` at most, done when the
    95 % interval of the median is within ± `relative` of it. Warming up takes at most `warm_up` of
    the seconds and ends when two windows of samples differ by less than `settled`."""

    seconds: float = 3.0
    samples: int = 500
    relative: float = 0.005
    warm_up: float = 0.3
    settled: float = 0.01

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.samples >= 1 and self.relative > 0):
            raise UsageError("a budget has positive seconds, samples and precision")
        if not (0 <= self.warm_up < 1 and self.settled > 0):
            raise UsageError("warming up takes a share of the seconds, from 0 to below 1")


@dataclass(slots=True)
class TimeSamples:
    """The samples of one subject in seconds, in their order. `warm_ups` were thrown away before;
    `settled` says whether times had settled by then; `stopped` why no more were taken."""

    samples: list[float] = field(default_factory=list)
    warm_ups: int = 0
    settled: bool = False
    stopped: Literal["", "precise", "budget", "interrupted"] = ""


def sample(
    subjects: Sequence[TimeOnce],
    budget: SamplingBudget = SamplingBudget(),
    progress: Progress = lambda *_: None,
    clock: Callable[[], float] = time.monotonic,
) -> list[TimeSamples]:
    """Samples of all subjects, taken in turns. An interrupt (Ctrl-C) ends it with what there is:
    `stopped` is then `interrupted`. What a subject raises is raised."""
    timings = [TimeSamples() for _ in subjects]
    seconds = [0.0] * len(subjects)
    try:
        for number, once in enumerate(subjects):
            started = clock()
            _warm_up(once, timings[number], budget, clock)
            seconds[number] = clock() - started
        order = list(range(len(subjects)))
        while any(not timing.stopped for timing in timings):
            for number in order:
                timing = timings[number]
                if timing.stopped:
                    continue
                started = clock()
                timing.samples.append(subjects[number]())
                seconds[number] += clock() - started
                width = half_width(timing.samples)
                progress(number, len(timing.samples), width)
                if len(timing.samples) >= _FEWEST and width <= budget.relative:
                    timing.stopped = "precise"
                elif len(timing.samples) >= budget.samples or seconds[number] >= budget.seconds:
                    timing.stopped = "budget"
            order.reverse()
    except KeyboardInterrupt:
        for timing in timings:
            timing.stopped = timing.stopped or "interrupted"
    return timings


def half_width(samples: Sequence[float]) -> float:
    """Relative half width of the 95 % interval of a median, from the order of its samples: ranks
    n/2 ± 1.96 · √n/2 bound it whatever their distribution (David and Nagaraja, Order Statistics).
    Infinite for too few samples."""
    n = len(samples)
    reach = _Z * n**0.5 / 2
    low, high = int(n / 2 - reach), int(n / 2 + reach)
    if low < 0 or high >= n:
        return float("inf")
    ordered = sorted(samples)
    middle = median(ordered)
    return (ordered[high] - ordered[low]) / 2 / middle if middle > 0 else float("inf")


def _warm_up(
    once: TimeOnce, timing: TimeSamples, budget: SamplingBudget, clock: Callable[[], float]
) -> None:
    """Call until two windows agree, or the share of the budget is spent."""
    started = clock()
    times: list[float] = []
    while True:
        times.append(once())
        timing.warm_ups += 1
        if len(times) >= 2 * _WINDOW:
            new, old = median(times[-_WINDOW:]), median(times[-2 * _WINDOW : -_WINDOW])
            if abs(new - old) <= budget.settled * new:
                timing.settled = True
                return
        if clock() - started >= budget.warm_up * budget.seconds:
            return


__all__ = ["Progress", "SamplingBudget", "TimeOnce", "TimeSamples", "half_width", "sample"]
