"""Memory of host threads lies in cache lines of its own."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.memory_support import kernel_of
from wavecast.emulate.check.counters import Progress
from wavecast.emulate.check.registers.undefined import Undefined
from wavecast.emulate.hostmemory import APART, PAGE, zeros
from wavecast.emulate.trace.layout import TracePlan


def _lines(array: np.ndarray) -> set[int]:
    start = array.ctypes.data
    return set(range(start // APART, (start + array.nbytes - 1) // APART + 1))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_arrays_share_no_lines(dtype: type) -> None:
    arrays = [zeros(count, dtype) for count in (1, 3, 16, 17, 128, 1000, 5)]
    assert [len(array) for array in arrays] == [1, 3, 16, 17, 128, 1000, 5]
    assert not any(array.any() for array in arrays)
    assert sum(map(len, map(_lines, arrays))) == len(set().union(*map(_lines, arrays)))


def test_arrays_start_at_a_page_where_samples_depend_on_it() -> None:
    for count in (1, 64, 5000):
        array = zeros(count, np.uint8, align=PAGE)
        assert (len(array), array.ctypes.data % PAGE) == (count, 0)
        assert not array.any()


def test_what_modes_write_starts_a_line() -> None:
    progress = Progress()
    counters = TracePlan.of(kernel_of("gfx942", "").program).counters()
    for array in (progress.words, progress.arrivals, *Undefined(4).words, counters):
        assert array.ctypes.data % APART == 0
