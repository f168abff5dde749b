"""Lines that loads side by side find in the vector L1, against distances between requests."""

import numpy as np
import pytest

from wavecast.perfmodel.vector_cache import missed_shares


def searched(loads: list[np.ndarray], capacity: int) -> list[float]:
    """A line is there if fewer than `capacity` others were asked for since it was."""
    asked: list[int] = []
    shares = []
    for lines in loads:
        missed = 0
        for line in lines.tolist():
            before = [at for at, other in enumerate(asked) if other == line]
            missed += not before or len(set(asked[before[-1] :])) > capacity
            asked.append(line)
        shares.append(missed / len(lines))
    return shares


@pytest.mark.parametrize("capacity", [0, 3, 16, 1000])
def test_lines_that_were_asked_for_lately_are_there(capacity: int) -> None:
    generator = np.random.default_rng(5)
    loads = [generator.integers(0, 40, 12) for _ in range(30)]
    assert missed_shares(loads, capacity) == searched(loads, capacity)


def test_halves_of_lines_in_two_loads_are_fetched_once() -> None:
    lines = np.arange(16)
    assert missed_shares([lines, lines + 16, lines, lines + 16], 32) == [1.0, 1.0, 0.0, 0.0]
    assert missed_shares([lines, lines + 16, lines, lines + 16], 8) == [1.0] * 4
    assert missed_shares([np.zeros(4, np.int64)], 8) == [0.25]
