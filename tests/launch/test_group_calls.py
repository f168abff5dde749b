"""What the ranks of a group call, and calls that do not fit together."""

from __future__ import annotations

import numpy as np
import pytest

from wavecast.launch.group_calls import CallBoard, CallsDiffer, calling, current_call


def board(ranks: list[int]) -> CallBoard:
    return CallBoard(np.zeros(CallBoard.size(len(ranks)), np.uint8), ranks)


def test_calls_that_differ_are_named_with_all_ranks_that_came() -> None:
    calls = board([0, 3, 5, 7])
    calls.post(0, 1, "sum 4", "all_reduce of 4 float32 at a.py:1")
    calls.post(2, 1, "sum 4", "all_reduce of 4 float32 at a.py:1")
    with pytest.raises(CallsDiffer) as raised:
        calls.post(1, 1, "max 4", "all_reduce of 4 float32 (op=MAX) at a.py:2")
    assert str(raised.value) == (
        "collective 1: ranks 0, 5 call all_reduce of 4 float32 at a.py:1, "
        "rank 3 calls all_reduce of 4 float32 (op=MAX) at a.py:2"
    )


def test_calls_of_other_numbers_are_not_compared() -> None:
    calls = board([0, 1])
    for number in range(1, 40):
        calls.post(0, number, f"{number}", f"call {number}")
        if number > 1:
            calls.post(1, number - 1, f"{number - 1}", "the same by another name")
    assert (
        calls.describe(38) == "collective 38: rank 0 calls call 38, rank 1 calls the same by "
        "another name"
    )


def test_a_long_text_is_cut_and_what_differs_in_it_is_not() -> None:
    calls = board([0, 1])
    calls.post(0, 1, f"{'x' * 500}0", f"{'é' * 300} at a.py:1")
    with pytest.raises(CallsDiffer, match="rank 1 calls b"):
        calls.post(1, 1, f"{'x' * 500}1", "b")


def test_the_call_of_a_block() -> None:
    with calling("all_gather of 4 float32"):
        with calling("broadcast of 1 int64"):
            assert current_call() == "broadcast of 1 int64"
        assert current_call() == "all_gather of 4 float32"
    assert not current_call()
