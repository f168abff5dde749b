"""Steps in noisy series: how often one is seen where there is none, and missed where there is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.targets import thorough_beyond
from wavecast.benchmarking.history import changes
from wavecast.benchmarking.history.changes import exact_steps, steps

Noise = Callable[[np.random.Generator, int], np.ndarray[Any, Any]]

NOISES: dict[str, Noise] = {
    "normal": lambda random, n: random.normal(size=n),
    "Student 3": lambda random, n: random.standard_t(3, size=n),
    "outliers": lambda random, n: random.normal(size=n) * np.where(random.random(n) < 0.05, 6, 1),
    "two states": lambda random, n: 0.3 * random.normal(size=n) + 3 * (random.random(n) < 0.3),
    "skewed": lambda random, n: np.exp(random.normal(size=n)),
}


def _times(noise: np.ndarray[Any, Any]) -> list[float]:
    """Times of 10 µs with 1 % noise."""
    return list(1e-5 * np.exp(0.01 * noise))


@pytest.mark.parametrize("n", thorough_beyond([4, 20], [4, 6, 8, 11, 20, 60]))
def test_normal_noise_raises_an_alarm_in_at_most_one_series_of_a_hundred(n: int) -> None:
    random = np.random.default_rng(n)
    alarms = sum(bool(steps(_times(random.normal(size=n)))) for _ in range(1000))
    assert alarms <= 10


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("n", thorough_beyond([12], [12, 24, 60]))
def test_no_noise_does_where_there_are_enough_runs(noise: str, n: int) -> None:
    random = np.random.default_rng(7)
    alarms = sum(bool(steps(_times(NOISES[noise](random, n)))) for _ in range(200))
    assert alarms <= 2


@pytest.mark.parametrize(
    ("before", "after", "least"),
    thorough_beyond(
        [(10, 10, 0.98), (16, 4, 0.95)],
        [(5, 5, 0.80), (10, 10, 0.98), (16, 4, 0.95), (28, 2, 0.85), (57, 3, 0.95), (5, 40, 0.98)],
    ),
)
def test_a_step_of_five_percent_is_seen_under_one_percent_of_noise(
    before: int, after: int, least: float
) -> None:
    random = np.random.default_rng(before + 100 * after)
    level = np.repeat([0.0, math.log(1.05) / 0.01], [before, after])
    seen = sum(
        any(abs(at - before) <= 1 for at in steps(_times(level + random.normal(size=len(level)))))
        for _ in range(100)
    )
    assert seen >= 100 * least


@pytest.mark.parametrize(
    ("n", "start", "end"),
    thorough_beyond([(30, 10, 20)], [(30, 10, 20), (40, 20, 25), (60, 30, 33)]),
)
def test_a_regression_that_was_repaired_is_two_steps(n: int, start: int, end: int) -> None:
    random = np.random.default_rng(n)
    level = np.zeros(n)
    level[start:end] = 5
    seen = 0
    for _ in range(40):
        found = steps(_times(level + random.normal(size=n)))
        seen += len(found) == 2 and abs(found[0] - start) <= 1 and abs(found[1] - end) <= 1
    assert seen >= 37


def test_several_levels() -> None:
    random = np.random.default_rng(1)
    level = np.repeat([0.0, 6.0, 1.0, 9.0], 15)
    assert steps(_times(level + 0.5 * random.normal(size=60))) == [15, 30, 45]


def test_what_is_too_small_or_too_short() -> None:
    random = np.random.default_rng(2)
    level = np.repeat([0.0, 0.8], 50)
    times = _times(level + 0.1 * random.normal(size=100))
    assert steps(times) == []
    assert steps(times, minimum=0.005) == [50]
    assert steps([1.0, 1.0, 2.0]) == []
    assert steps([1.0] * 50) == []
    assert steps([]) == []
    assert steps([1.0] * 10 + [2.0] * 10) == [10]


@pytest.mark.parametrize("n", thorough_beyond([6, 48], [6, 10, 20, 48]))
def test_the_table_is_what_a_simulation_says(n: int) -> None:
    found = changes._best(np.random.default_rng(n).normal(size=(30_000, n)))
    for arcs, values in ((False, found.cut), (True, found.arc)):
        share = float((values > changes.critical(n, arcs=arcs)).mean())
        meant = changes._CHANCE[arcs]
        assert abs(share - meant) < 5 * math.sqrt(meant / 30_000)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.floats(1e-9, 1e3), max_size=30), st.sampled_from([1e-6, 0.5, 1024.0]))
def test_any_positive_values(values: list[float], factor: float) -> None:
    found = steps(values)
    assert found == sorted(set(found))
    assert all(2 <= step <= len(values) - 2 for step in found)
    if factor in (0.5, 1024.0):
        assert len(steps([value * factor for value in values])) == len(found)


def test_exact_values_change_from_the_level_before() -> None:
    assert exact_steps([64, 64, 72, 72, 64]) == [2, 4]
    assert exact_steps([0, 0, 14, 0]) == [2, 3]
    assert exact_steps([1.0, 1.004, 1.008, 1.012], minimum=0.01) == [3]
    assert exact_steps([]) == []
