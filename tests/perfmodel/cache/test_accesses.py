"""What is kept of access records."""

from __future__ import annotations

import numpy as np

from wavecast.perfmodel.cache import accesses as a
from wavecast.perfmodel.cache.accesses import Accesses, ArrayMap, MemoryTable, reduce_records

LANES = 64
BASE = 0x7F00_0000_1230
ARRAYS = ArrayMap.of([(BASE, BASE + 8192)])
ASKED = MemoryTable(
    path=np.array([a.VECTOR, a.SCALAR, a.LDS, a.VECTOR, a.PRIVATE], np.int8),
    kind=np.array([a.LOAD, a.LOAD, a.LOAD, a.ATOMIC, a.LOAD], np.int8),
    width=np.array([4, 8, 4, 4, 4], np.int32),
    phases=np.zeros(5, np.int32),
    lanes=np.arange(LANES, dtype=np.int32).reshape(1, 2, 32),
    banks=np.array([32], np.int32),
)


def record(instruction: int, offsets: np.ndarray, mask: int = (1 << 64) - 1, stream: int = 0):
    """One access record; offsets are host addresses."""
    row = np.zeros(2 + LANES, np.uint64)
    row[0], row[1] = stream << 32 | instruction, mask
    row[2 : 2 + len(offsets)] = offsets.astype(np.uint64)
    return row


def kept(*records: np.ndarray, arrays: ArrayMap = ARRAYS) -> Accesses:
    return reduce_records(np.array(records), ASKED, arrays)


def test_arrays_begin_at_pages_of_the_device() -> None:
    lanes = np.arange(LANES)
    (found,) = [kept(record(0, BASE + 4 * lanes))]
    first = int(ARRAYS.base[0])
    assert first % 4096 == 0
    assert found.sectors.tolist() == [first // 64 + n for n in range(4)]
    assert found.array.tolist() == [0]


def test_numbers_and_addresses_do_not_depend_on_where_the_host_has_an_array() -> None:
    """Three arrays in their order as arguments, at host addresses in any order."""
    sizes, found = (8192, 256, 4096), []
    for starts in ((BASE, BASE + (1 << 20), BASE + (2 << 20)),
                   (BASE + (7 << 20), BASE + 16, BASE + (3 << 20) + 64)):  # fmt: skip
        arrays = ArrayMap.of([(at, at + size) for at, size in zip(starts, sizes, strict=True)])
        rows = [record(0, at + 4 * np.arange(LANES)) for at in starts]
        found.append((kept(*rows, arrays=arrays), arrays.sizes))
    (one, sizes_of_one), (other, sizes_of_other) = found
    assert one.array.tolist() == other.array.tolist() == [0, 1, 2]
    assert one.sectors.tolist() == other.sectors.tolist()
    assert sizes_of_one == sizes_of_other == (8192.0, 256.0, 4096.0, 4096.0)


def test_sectors_are_sorted_and_counted_once() -> None:
    lanes = np.arange(LANES)[::-1]
    found = kept(record(0, BASE + 32 * (lanes // 2) + 60))
    expected = np.unique((ARRAYS.base[0] + np.add.outer(32 * (lanes // 2) + 60, [0, 3])) // 64)
    assert found.sectors.tolist() == expected.tolist()


def test_lanes_that_are_off_touch_nothing() -> None:
    offsets = BASE + 64 * np.arange(LANES)
    assert len(kept(record(0, offsets, mask=0b101)).sectors) == 2
    assert len(kept(record(0, offsets, mask=0)).sectors) == 0


def test_what_is_in_no_array_lies_in_a_window() -> None:
    found = kept(record(1, np.array([0x5555_0000_0008]), mask=1))
    assert found.array.tolist() == [1]
    assert found.sectors.tolist() == [ARRAYS.rest // 64]


def test_passes_of_lds_and_of_atomics() -> None:
    lanes = np.arange(LANES)
    assert kept(record(2, 4 * lanes)).passes.tolist() == [2]
    assert kept(record(2, 8 * lanes)).passes.tolist() == [4]
    assert kept(record(2, 0 * lanes)).passes.tolist() == [2]
    assert kept(record(3, BASE + 4 * (lanes % 16))).passes.tolist() == [48]
    assert kept(record(3, BASE + 4 * (lanes % 16))).lanes.tolist() == [64]
    assert len(kept(record(2, 4 * lanes), record(4, 4 * lanes)).sectors) == 0


def test_joined_orders_by_stream() -> None:
    offsets = BASE + 4 * np.arange(LANES)
    one = kept(record(0, offsets, stream=1), record(0, offsets + 256, stream=0))
    two = kept(record(0, offsets + 512, stream=0, mask=1))
    joined = Accesses.join([one, two])
    assert joined.stream.tolist() == [0, 0, 1]
    assert np.diff(joined.start).tolist() == [4, 1, 4]
    first = ARRAYS.base[0] // 64
    assert joined.sectors.tolist() == [first + n for n in (4, 5, 6, 7, 8, 0, 1, 2, 3)]
