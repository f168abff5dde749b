"""Work in a copy of the process."""

from __future__ import annotations

import resource

import numpy as np
import pytest

from wavecast.emulate.errors import ExecutionError, Unsupported
from wavecast.sampling.isolation import run_in_fork


def test_memory_stays_as_it_is() -> None:
    array = np.zeros(4)

    def work() -> np.ndarray:
        array[:] = 7
        return array.copy()

    assert run_in_fork(work).tolist() == [7] * 4
    assert array.tolist() == [0] * 4


def test_errors_come_back() -> None:
    def work() -> None:
        raise ExecutionError("a wild address")

    with pytest.raises(ExecutionError, match="a wild address"):
        run_in_fork(work)


def test_a_fork_that_dies_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise KeyError("bug")

    with pytest.raises(Unsupported, match="died"):
        run_in_fork(work)
    assert "KeyError" in capfd.readouterr().err


def test_little_of_a_large_array_is_resident() -> None:
    """numpy asks for pages of 2 MiB: one element of each would make all of the array resident."""
    array = np.zeros(1 << 27)  # 1 GiB

    def work() -> int:
        array[:: 1 << 18] = 1.0
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert run_in_fork(work) < before + (200 << 10)  # KiB
