"""False alarms and misses of comparisons, on distributions that are known.

Stated rates: at most 1 % false alarms on identical code, at least 95 % of changes by 5 % found
under 2 % of noise. What cannot be decided must come out undecided, never as an alarm.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scipy", reason="needs SciPy")

from tests.targets import thorough_beyond
from wavecast.benchmarking.compare.statistics import adjust_p_values, difference, summarise

Runs = list[np.ndarray]
TRIALS = 300
SCATTER = 0.003


def _independent(random: np.random.Generator, n: int) -> np.ndarray:
    return random.normal(0, 0.02, n)


def _correlated(random: np.random.Generator, n: int) -> np.ndarray:
    noise = random.normal(0, 0.012, n)
    for place in range(1, n):
        noise[place] += 0.8 * noise[place - 1]
    return noise


def _outliers(random: np.random.Generator, n: int) -> np.ndarray:
    noise = random.normal(0, 0.02, n)
    late = random.random(n) < 0.05
    noise[late] += random.exponential(0.5, late.sum())
    return noise


def _warming(random: np.random.Generator, n: int) -> np.ndarray:
    return random.normal(0, 0.02, n) - 0.03 * np.exp(-np.arange(n) / 10)


def _two_clocks(random: np.random.Generator, n: int) -> np.ndarray:
    return np.where(random.random(n) < 0.5, 0.0, 0.08) + random.normal(0, 0.003, n)


KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "independent": _independent,
    "correlated": _correlated,
    "outliers": _outliers,
    "warming": _warming,
    "two clocks": _two_clocks,
}


def _side(kind: str, random: np.random.Generator, runs: int, change: float = 0.0) -> Runs:
    return [
        np.exp(change + random.normal(0, SCATTER) + KINDS[kind](random, 30)) * 1e-4
        for _ in range(runs)
    ]


def _called(before: Runs, after: Runs) -> bool:
    found = difference(before, after)
    change = math.log(found.ratio)
    return found.p < 0.01 and abs(found.ratio - 1) >= 0.01 and abs(change) > found.doubt


@pytest.mark.parametrize("runs", thorough_beyond([3], [1, 3, 5]))
@pytest.mark.parametrize("kind", KINDS)
def test_false_alarms_on_identical_code(kind: str, runs: int) -> None:
    random = np.random.default_rng(len(kind) + runs)
    trials = TRIALS // runs
    alarms = sum(
        _called(_side(kind, random, runs), _side(kind, random, runs)) for _ in range(trials)
    )
    # One percent, and three standard deviations for the finite number of trials.
    assert alarms / trials <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / trials)


@pytest.mark.parametrize("runs", thorough_beyond([3], [1, 3, 5]))
@pytest.mark.parametrize("kind", ["independent", "outliers"])
def test_changes_of_five_percent_are_found(kind: str, runs: int) -> None:
    random = np.random.default_rng(7 * len(kind) + runs)
    trials = 100 // runs
    for change in (0.05, -0.05):
        found = sum(
            _called(_side(kind, random, runs), _side(kind, random, runs, change))
            for _ in range(trials)
        )
        assert found / trials >= 0.95


def test_clocks_that_jump_by_more_than_the_change_leave_doubt() -> None:
    random = np.random.default_rng(3)
    found = difference(_side("two clocks", random, 3), _side("two clocks", random, 3, 0.05))
    assert "bimodal" in found.reasons
    assert found.doubt > 0.05


def test_drift_is_told() -> None:
    random = np.random.default_rng(4)
    times = np.exp(np.linspace(0, 0.2, 60) + random.normal(0, 0.01, 60))
    assert "drift" in summarise(times).reasons
    assert summarise(times).doubt > 0.05


def test_one_run_says_that_scatter_is_assumed_and_eight_do_not() -> None:
    random = np.random.default_rng(5)
    few = difference(_side("independent", random, 1), _side("independent", random, 1))
    many = difference(_side("independent", random, 8), _side("independent", random, 8))
    assert "run-scatter-assumed" in few.reasons
    assert "run-scatter-assumed" not in many.reasons


def test_scatter_between_runs_widens_the_interval() -> None:
    """Samples of a run say nothing about how runs differ: a lucky placement is not a speed-up."""
    random = np.random.default_rng(6)

    def side(scatter: float) -> Runs:
        return [np.exp(random.normal(0, scatter) + random.normal(0, 0.001, 100)) for _ in range(8)]

    alarms = sum(_called(side(0.03), side(0.03)) for _ in range(60))
    assert alarms <= 3


@given(
    scale=st.floats(1e-7, 10.0),
    factor=st.floats(0.2, 5.0),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=25, deadline=None)
def test_units_do_not_matter_and_sides_are_alike(scale: float, factor: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    one, other = _side("independent", random, 2), _side("independent", random, 2, math.log(factor))
    plain = difference(one, other)
    scaled = difference([scale * run for run in one], [scale * run for run in other])
    back = difference(other, one)
    assert plain.low <= plain.ratio <= plain.high
    assert scaled.ratio == pytest.approx(plain.ratio)
    assert back.ratio == pytest.approx(1 / plain.ratio)
    assert 0 <= plain.p <= 1


def test_equal_samples_are_the_same() -> None:
    found = difference([[1e-3] * 10], [[1e-3] * 10])
    assert found.ratio == 1
    assert found.p == pytest.approx(1)


@pytest.mark.parametrize("samples", [[], [0.0, 1.0], [math.nan], [-1.0]])
def test_samples_that_are_no_times(samples: list[float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        summarise(samples)


def test_false_discoveries_over_many_kernels() -> None:
    """Two hundred kernels of which none changed: hardly a comparison may raise an alarm."""
    random = np.random.default_rng(8)
    alarms = 0
    for _ in range(3):
        found = [
            difference(_side("independent", random, 1), _side("independent", random, 1)).p
            for _ in range(100)
        ]
        alarms += any(p < 0.01 for p in adjust_p_values(found))
    assert alarms == 0
    assert adjust_p_values([]) == []
    assert adjust_p_values([0.01, 0.02]) == pytest.approx([0.02, 0.02])
