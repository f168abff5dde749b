"""How many samples are taken, and in which order."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from wavecast.benchmarking.measure.physics import implausible
from wavecast.benchmarking.measure.sampling import SamplingBudget, half_width, sample
from wavecast.errors import UsageError


class Clock:
    """A wall clock that only calls move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def subject(self, times: Callable[[], float]) -> Callable[[], float]:
        def once() -> float:
            self.now += 1e-3
            return times()

        return once


def test_quiet_times_need_few_samples() -> None:
    clock = Clock()
    found = sample([clock.subject(lambda: 1e-4)], clock=clock)[0]
    assert found.stopped == "precise"
    assert found.settled
    assert len(found.samples) == 10


def test_noisy_times_use_the_budget() -> None:
    clock, random = Clock(), np.random.default_rng(0)
    noisy = clock.subject(lambda: float(np.exp(random.normal(0, 0.3))))
    assert sample([noisy], SamplingBudget(samples=40), clock=clock)[0].stopped == "budget"
    slow = sample([noisy], SamplingBudget(seconds=0.1), clock=clock)[0]
    assert slow.stopped == "budget"
    assert 50 < len(slow.samples) + slow.warm_ups <= 101


def test_more_precision_takes_more_samples() -> None:
    def needed(relative: float) -> int:
        clock, random = Clock(), np.random.default_rng(1)
        noisy = clock.subject(lambda: float(np.exp(random.normal(0, 0.02))))
        return len(sample([noisy], SamplingBudget(relative=relative), clock=clock)[0].samples)

    assert needed(0.02) < needed(0.01) < needed(0.005)


def test_warming_up_waits_until_times_settle() -> None:
    clock = Clock()
    times = itertools.chain((1e-3 * 0.8**n for n in range(20)), itertools.repeat(1e-5))
    found = sample([clock.subject(lambda: next(times))], clock=clock)[0]
    assert found.warm_ups > 20
    assert set(found.samples) == {1e-5}


def test_what_never_settles_is_told() -> None:
    clock, times = Clock(), itertools.count(1)
    found = sample([clock.subject(lambda: 1.1 ** next(times))], SamplingBudget(0.1), clock=clock)[0]
    assert not found.settled
    assert found.samples


def test_subjects_take_turns_forwards_and_backwards() -> None:
    clock = Clock()
    order: list[str] = []

    def named(name: str) -> Callable[[], float]:
        def time() -> float:
            order.append(name)
            return 1e-4

        return clock.subject(time)

    found = sample([named("a"), named("b")], clock=clock)
    assert [len(one.samples) for one in found] == [10, 10]
    assert "".join(order[-8:]) == "abbaabba"[-8:] or "".join(order[-8:]) == "baabbaab"


def test_an_interrupt_keeps_what_there_is() -> None:
    clock, calls = Clock(), itertools.count()

    def once() -> float:
        if next(calls) == 16:
            raise KeyboardInterrupt
        return 1e-4

    found = sample([once, clock.subject(lambda: 1e-4)], clock=clock)
    assert [one.stopped for one in found] == ["interrupted", "interrupted"]
    assert len(found[0].samples) == 6
    assert len(found[1].samples) in (6, 7)


def test_what_a_subject_raises_is_raised() -> None:
    def broken() -> float:
        raise RuntimeError("kernel")

    with pytest.raises(RuntimeError, match="kernel"):
        sample([broken])


def test_the_interval_of_a_median_holds_it() -> None:
    random = np.random.default_rng(2)
    inside = 0
    for _ in range(400):
        samples = np.exp(random.normal(0, 0.1, 60)).tolist()
        inside += abs(float(np.median(samples)) - 1) <= half_width(samples) * 1.05
    assert inside / 400 >= 0.90


@pytest.mark.parametrize("given", [{"seconds": 0}, {"samples": 0}, {"relative": 0}, {"warm_up": 1}])
def test_budgets_that_are_none(given: dict) -> None:
    with pytest.raises(UsageError):
        SamplingBudget(**given)


GOOD = [1e-4 * (1 + n / 1000) for n in range(30)]


@pytest.mark.parametrize(
    ("samples", "named", "why"),
    [
        (GOOD, {}, ""),
        (GOOD, {"floor_seconds": 0.9e-4}, ""),
        (GOOD, {"floor_seconds": 2e-4, "floor_of": "compute"}, "faster than"),
        (GOOD, {"floor_seconds": 2e-4, "floor_of": "memory", "cold": False}, ""),
        (GOOD, {"least_bytes": 1e9, "peak_bandwidth": 5e12}, "more than the memory's"),
        (GOOD, {"least_bytes": 1e9, "peak_bandwidth": 5e12, "cold": False}, ""),
        ([1e-4] * 30, {}, "without any variance"),
        ([1e-4] * 5, {}, ""),
        ([1e-7] * 5, {}, "timer resolves"),
        ([0.0, 1e-4], {}, "not positive"),
        ([], {}, "nothing"),
    ],
)
def test_times_that_cannot_be_true(samples: list[float], named: dict, why: str) -> None:
    found = implausible(samples, **named)
    assert why in found
    assert bool(why) == bool(found)
