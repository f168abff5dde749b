"""What streams and the host order: rows of launches that have ended are dropped."""

from __future__ import annotations

import numpy as np

from wavecast.emulate.check.gpus.stream_order import NOTHING, Before, LaunchRows


def _rows(*numbers: int) -> dict[int, np.ndarray]:
    return {group: np.array([[number]], np.uint32) for group, number in enumerate(numbers)}


def test_rows_of_launches_that_have_ended_are_dropped() -> None:
    running = LaunchRows(queue=1, position=3, rows=_rows(5))
    before = Before({0: 2}, {7: running})
    assert before.join(Before({1: 2})).partial == {7: running}
    assert before.join(Before({1: 3})) == Before({0: 2, 1: 3}, {})
    assert Before({1: 3}).join(before).partial == {}
    assert Before({1: 3}, {7: running}).without_ended().partial == {}


def test_rows_of_a_launch_are_joined() -> None:
    first = Before({}, {7: LaunchRows(1, 3, _rows(5, 1)), 8: LaunchRows(2, 1, _rows(4))})
    second = Before({}, {7: LaunchRows(1, 3, _rows(2, 6))})
    joined = first.join(second)
    assert [int(rows[0, 0]) for rows in joined.partial[7].rows.values()] == [5, 6]
    assert joined.partial[8] is first.partial[8]


def test_what_knows_no_more_changes_nothing() -> None:
    entry = LaunchRows(1, 3, _rows(5))
    before = Before({0: 2}, {7: entry})
    for other in (NOTHING, before, Before({0: 1}), Before({}, {7: LaunchRows(1, 3, _rows(4))})):
        assert before.join(other) is before
    assert NOTHING.join(before) is before
