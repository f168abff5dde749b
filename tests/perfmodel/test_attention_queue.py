"""Waves that queue for the pipes of a SIMD."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest

from wavecast.perfmodel.ops.attention.queue import clocks_per_score

LOOPS = [
    ((1.0, 1.0), 0.0),
    ((0.25, 0.19, 0.155), 0.094),
    ((0.125, 0.1, 0.1), 0.5),
    ((2.0, 0.1, 0.0), 0.3),
]


def constant(demands: Sequence[float], wait: float, waves: int) -> float:
    """The sum over all states of a closed network of the product of its demands (Gordon and Newell
    1967, with a station of as many servers as waves): G(n - 1) / G(n) is the rate of n waves."""
    total = 0.0
    for state in itertools.product(range(waves + 1), repeat=len(demands)):
        waiting = waves - sum(state)
        if waiting >= 0:
            busy = math.prod(d**n for d, n in zip(demands, state, strict=True))
            total += busy * wait**waiting / math.factorial(waiting)
    return total


@pytest.mark.parametrize(("demands", "wait"), LOOPS)
@pytest.mark.parametrize("waves", [1, 2, 3, 5])
def test_rate_is_that_of_the_product_form(
    demands: tuple[float, ...], wait: float, waves: int
) -> None:
    expected = constant(demands, wait, waves) / constant(demands, wait, waves - 1)
    assert clocks_per_score(demands, wait, waves) == pytest.approx(expected)


@pytest.mark.parametrize(("demands", "wait"), LOOPS)
def test_overlap_is_between_everything_and_the_longest(
    demands: tuple[float, ...], wait: float
) -> None:
    numbers = [0.5, 1, 1.25, 1.5, 2, 2.5, 3, 4, 8]
    clocks = [clocks_per_score(demands, wait, waves) for waves in numbers]
    assert clocks[1] == pytest.approx(sum(demands) + wait)
    assert clocks[0] == pytest.approx(2 * clocks[1]), "half of the SIMDs are empty"
    assert clocks == sorted(clocks, reverse=True)
    assert clocks[-1] >= max(demands)
    assert clocks_per_score(demands, wait, 400) == pytest.approx(max(demands), rel=0.02)
    for waves, result in zip(numbers, clocks, strict=True):
        assert result >= (sum(demands) + wait) / waves - 1e-12
