"""Work spread over processes."""

from __future__ import annotations

import os
import signal

import pytest

from wavecast.pipeline.processes import spread


def _square(number: int) -> int:
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def _refuse(number: int) -> int:
    raise ValueError(f"no {number}")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_process_that_dies_takes_its_call_only(jobs: int) -> None:
    found = dict(spread(_square, range(20), jobs))
    assert found == {n: None if n == 7 else n * n for n in range(20)}


def test_more_calls_than_a_process_takes() -> None:
    assert len(list(spread(_square, range(100, 140), 1))) == 40


def test_what_is_raised_is_raised() -> None:
    with pytest.raises(ValueError, match="no 3"):
        list(spread(_refuse, [3], 1))
