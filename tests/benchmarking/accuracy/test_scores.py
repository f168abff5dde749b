"""Scores against values worked out by hand, and against scipy's definitions where it has them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.benchmarking.accuracy.sample import outcome
from wavecast.benchmarking.accuracy import scores
from wavecast.benchmarking.accuracy.ranking import kendall, rank


def test_errors_of_three_predictions() -> None:
    found = scores.error([1.0, 2.0, 3.0], [2.0, 2.0, 2.0])
    assert found.n == 3
    assert found.median == pytest.approx(0.5)
    assert found.p90 == pytest.approx(0.5)
    assert found.wmape == pytest.approx(2 / 6)
    assert found.bias == pytest.approx(0.0)


def test_bias_is_signed_and_sigma_is_a_standard_deviation() -> None:
    logs = np.random.default_rng(0).normal(0.25, 0.5, 20_000)
    found = scores.error(list(2.0**logs), [1.0] * len(logs))
    assert found.bias == pytest.approx(0.25 * math.log(2), rel=0.05)
    assert found.log2_sigma == pytest.approx(0.5, rel=0.03)


def test_tables_split_by_labels_with_several_values() -> None:
    outcomes = [outcome(1.1, dtype="bf16"), outcome(1.2, dtype="bf16"), outcome(2.0, dtype="fp8")]
    rows = scores.table(outcomes)
    assert [(row.by, row.value, row.score.error.n) for row in rows] == [
        ("", "", 3),
        ("dtype", "bf16", 2),
        ("dtype", "fp8", 1),
    ]
    assert rows[1].score.error.median == pytest.approx(0.15)
    assert rows[0].score.coverage == 1.0


def test_ranking_counts_what_the_predicted_best_reaches() -> None:
    alternatives = [
        outcome(0.5, fast=True, problem="a"),  # predicted best, measured 1 ns/B
        outcome(1.25, problem="a"),  # measured 0.8 ns/B: the best
        outcome(1.0, problem="b"),  # alone: nothing to rank
    ]
    (row,) = rank(alternatives)
    assert (row.problems, row.alternatives) == (1, 2.0)
    assert row.reached_median == pytest.approx(0.8)
    assert row.tau == -1.0


@pytest.mark.parametrize(
    ("first", "second", "tau"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [30, 20, 10], -1.0),
        ([1, 1, 2], [1, 2, 3], 2 / math.sqrt(6)),
        ([1, 1, 1], [1, 2, 3], 0.0),
    ],
)
def test_kendall(first: list[int], second: list[int], tau: float) -> None:
    assert kendall(np.array(first, float), np.array(second, float)) == pytest.approx(tau)
