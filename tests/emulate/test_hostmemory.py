"""Memory of host threads lies in cache lines of its own."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.memory_support import kernel_of
from wavecast import limits
from wavecast.emulate.check.counters import Progress
from wavecast.emulate.check.gpus.memory import GpuMemory
from wavecast.emulate.check.record_arrays import guarded_slice
from wavecast.emulate.check.registers.undefined import Undefined
from wavecast.emulate.hostmemory import APART, PAGE, fits_large_pages, nonzero, sparse_zeros, zeros
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


def test_records_of_several_gpus_take_memory_where_they_are_touched() -> None:
    memory = GpuMemory(2)
    terabyte = 1 << 20, (1 << 20) + (1 << 40)
    stored = memory.of(terabyte, tracked=True).writes[0]
    stored[-1] = 1
    memory.clear()
    assert memory.at(terabyte) is None
    assert not memory.of(terabyte, tracked=True).writes[0][-1]


@pytest.mark.parametrize(
    ("processors", "gib", "slice_"), [(1, 1, 256), (16, 3, 48), (64, 3, 12), (512, 0.1, 1)]
)
def test_all_threads_together_stay_within_the_reserve(
    monkeypatch: pytest.MonkeyPatch, processors: int, gib: float, slice_: int
) -> None:
    monkeypatch.setattr(limits, "available_processors", lambda: processors)
    assert guarded_slice(int(gib * 2**30)) == slice_


def test_arrays_with_large_pages_do_not_overlap() -> None:
    arrays = [sparse_zeros(1 << 19, np.uint64, huge=True) for _ in range(3)]
    for number, array in enumerate(arrays, 1):
        assert not array.any()
        array[:] = number
    assert [set(array.tolist()) for array in arrays] == [{1}, {2}, {3}]
    assert not fits_large_pages(1 << 40, 1 << 40)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64])
def test_what_is_not_zero_of_the_memory_of_a_gpu(dtype: type) -> None:
    """192 GiB: reading all of it would take minutes, and the pages of a page table per byte."""
    count = (192 << 30) // np.dtype(dtype).itemsize
    array = sparse_zeros(count, dtype)[3:]
    indices = [0, 511, 4096, 4097, count // 2, count // 2 + 1, len(array) - 1]
    array[indices] = 1
    array[count // 3] = 0  # touched, and 0
    assert nonzero(array).tolist() == indices


def test_what_is_not_zero_of_a_small_array() -> None:
    array = sparse_zeros(1 << 21, np.uint8)
    assert nonzero(array).tolist() == []
    array[[5, 1 << 20]] = 2
    assert nonzero(array).tolist() == [5, 1 << 20]
