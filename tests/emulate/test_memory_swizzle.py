"""Swizzled buffers: an element of every index of a group, then the next element of each.

The layout is made by transposing arrays, addresses and bounds are those of the AMD instruction set
architecture guides (CDNA3, RDNA3.5, RDNA4), "Buffer addressing".
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import lanes_of, run, spill
from tests.emulate.test_memory_buffers import descriptor, load4
from wavecast.emulate.errors import ExecutionError

pytestmark = pytest.mark.llvm

STRIDE = 32
"""Bytes of a record."""
RECORDS = 128
GFX9, SMALL, LARGE = 0x8000, 0x4000, 0xC000
"""Swizzle bits above the stride: gfx9's, those of elements of 4 and of 16 bytes."""
KINDS = [("gfx1100", SMALL), ("gfx1100", LARGE), ("gfx1201", SMALL), ("gfx1201", LARGE)]


def swizzled(indices: int, element: int) -> np.ndarray:
    """Dwords of a swizzled buffer; each holds its record * 8 + its number in the record."""
    plain = np.arange(RECORDS * STRIDE // 4, dtype=np.uint32)
    parts = plain.reshape(RECORDS // indices, indices, STRIDE // element, element // 4)
    return np.ascontiguousarray(parts.transpose(0, 2, 1, 3)).ravel()


def table_of(
    target: str, data: np.ndarray, kind: int, group: int, *, check: int = 0, records: int = RECORDS
) -> np.ndarray:
    """A descriptor. `group` is the field of the indices (8, 16, 32, 64), `check` OOB_SELECT."""
    flags = 0x27000 if lanes_of(target) == 64 else 0x4000 | check << 28
    return descriptor(data, records, stride=STRIDE | kind, flags=flags | group << 21)


@pytest.mark.parametrize("group", range(4))
@pytest.mark.parametrize(("target", "kind"), KINDS)
def test_swizzled_buffers(target: str, kind: int, group: int) -> None:
    """A load, one with a scalar offset, and a store; lanes beyond the records do nothing."""
    lanes = lanes_of(target)
    data = swizzled(8 << group, 16 if kind == LARGE else 4)
    before, limit = data.copy(), lanes + 9
    out = np.zeros((2, lanes), np.uint32)
    body = f"""
{load4(target)}
	v_lshlrev_b32_e32 v2, 1, v0
	v_add_nc_u32_e32 v2, 1, v2
	v_mov_b32_e32 v3, 16
	v_mov_b32_e32 v6, 0x10000
	s_mov_b32 s24, 8
	s_mov_b32 s25, 0
	buffer_load_dword v4, v[2:3], s[20:23], s25 idxen offen offset:4
	buffer_load_dword v5, v2, s[20:23], s24 idxen offset:20
	buffer_store_dword v6, v2, s[20:23], s25 idxen offset:28
{spill(4, 2, lanes=lanes)}"""
    run(target, body, table_of(target, data, kind, group, records=limit), data, out)
    index = 2 * np.arange(lanes) + 1
    good = index < limit
    assert np.array_equal(out[0], np.where(good, 8 * index + 5, 0))
    places = np.argsort(before)
    shifted = before[places[8 * index + 5] + 2]  # added to the address
    if target == "gfx1201":  # added to the offset in the record
        shifted = 8 * index + 7
    assert np.array_equal(out[1], np.where(good, shifted, 0))
    wanted = before.copy()
    wanted[places[8 * index[good] + 7]] = 0x10000
    assert np.array_equal(data, wanted)


def test_a_swizzled_place_by_hand() -> None:
    """Index 21 of groups of 16, offset 12: group 1 starts at 16 * 32, element 3 of 4 bytes at
    3 * 4 * 16 in it, and index 5 of the group at 5 * 4: byte 724."""
    data, out = np.arange(1024, dtype=np.uint32), np.zeros((1, 32), np.uint32)
    body = f"""
{load4("gfx1100")}
	v_mov_b32_e32 v2, 21
	s_mov_b32 s24, 0
	buffer_load_b32 v4, v2, s[20:23], s24 idxen offset:12
{spill(4, 1, lanes=32)}"""
    run("gfx1100", body, table_of("gfx1100", data, SMALL, 1), data, out)
    assert (out == 724 // 4).all()


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950"])
def test_gfx9_swizzles_nothing_without_lane_numbers(target: str) -> None:
    """With an index records follow each other; without one bounds are in bytes, and an access is
    as large as it likes."""
    data, out = np.arange(RECORDS * STRIDE // 4, dtype=np.uint32), np.zeros((5, 64), np.uint32)
    body = f"""
{load4(target)}
	v_lshlrev_b32_e32 v2, 4, v0
	s_mov_b32 s24, 16
	buffer_load_dword v8, v0, s[20:23], 0 idxen offset:12
	buffer_load_dwordx4 v[4:7], v2, s[20:23], s24 offen
{spill(4, 5)}"""
    run(target, body, table_of(target, data, GFX9, 1, records=STRIDE * 8), data, out)
    lane = np.arange(64)
    rows = 4 * lane[:, None] + 4 + np.arange(4)
    assert np.array_equal(out[4], 8 * lane + 3)
    assert np.array_equal(out[:4].T, np.where(rows < STRIDE * 8 // 4, rows, 0))


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_nothing_is_swizzled_without_an_index(target: str) -> None:
    data, out = np.arange(RECORDS * STRIDE // 4, dtype=np.uint32), np.zeros((1, 32), np.uint32)
    body = f"""
{load4(target)}
	v_lshlrev_b32_e32 v2, 2, v0
	s_mov_b32 s24, 0
	buffer_load_b32 v4, v2, s[20:23], s24 offen offset:4
{spill(4, 1, lanes=32)}"""
    run(target, body, table_of(target, data, SMALL, 1, check=3, records=4096), data, out)
    assert np.array_equal(out[0], np.arange(32) + 1)


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_elements_of_sixteen_bytes_are_loaded_at_once(target: str) -> None:
    data, out = swizzled(16, 16), np.zeros((4, 32), np.uint32)
    body = f"""
{load4(target)}
	s_mov_b32 s24, 0
	buffer_load_b128 v[4:7], v0, s[20:23], s24 idxen offset:16
{spill(4, 4, lanes=32)}"""
    run(target, body, table_of(target, data, LARGE, 1), data, out)
    assert np.array_equal(out.T, 8 * np.arange(32)[:, None] + np.arange(4, 8))


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize("check", range(4))
def test_offsets_beyond_a_swizzled_record(target: str, check: int) -> None:
    """Checked with the index by OOB_SELECT 0 and 3, not by 1 and 2."""
    data, out = swizzled(8, 4), np.zeros((1, 32), np.uint32)
    body = f"""
{load4(target)}
	s_mov_b32 s24, 0
	v_mov_b32_e32 v2, 1
	v_lshlrev_b32_e32 v3, 2, v0
	buffer_load_dword v4, v[2:3], s[20:23], s24 idxen offen
{spill(4, 1, lanes=32)}"""
    run(target, body, table_of(target, data, SMALL, 0, check=check), data, out)
    number = np.arange(32)
    beyond = number >= STRIDE // 4
    # elements follow elements: those beyond a record of the first group are the second group's
    wanted = number // 8 * 64 + 8 + number % 8
    assert np.array_equal(out[0], np.where(beyond & (check in (0, 3)), 0, wanted))


@pytest.mark.parametrize("scale", range(4))
def test_gfx12_scales_the_stride(scale: int) -> None:
    data, out = np.arange(32 * 32, dtype=np.uint32), np.zeros((1, 32), np.uint32)
    body = f"""
{load4("gfx1201")}
	s_mov_b32 s24, 0
	buffer_load_b32 v4, v0, s[20:23], s24 idxen
{spill(4, 1, lanes=32)}"""
    run("gfx1201", body, descriptor(data, 32, stride=4, flags=0x4000 | scale << 18), data, out)
    assert np.array_equal(out[0], np.arange(32) * (1, 4, 8, 32)[scale])


@pytest.mark.parametrize(
    ("target", "kind", "flags", "access"),
    [
        ("gfx942", 0, 1 << 23, "dword v4, off, s[20:23], 0"),
        ("gfx942", 0, 1 << 23, "dword v4, v0, s[20:23], 0 idxen"),
        ("gfx90a", 0, 1 << 23, "dword v4, v0, s[20:23], 0 idxen"),
        ("gfx1100", SMALL, 0, "b64 v[4:5], v0, s[20:23], 0 idxen"),
        ("gfx1100", 0x8000, 0, "b32 v4, v0, s[20:23], 0 idxen"),
    ],
)
def test_what_a_descriptor_may_not_say(target: str, kind: int, flags: int, access: str) -> None:
    """Lane numbers added, more than an element, a reserved element size."""
    data = np.zeros(RECORDS * STRIDE // 4, np.uint32)
    table = descriptor(data, RECORDS, stride=STRIDE | kind, flags=0x4000 | flags)
    with pytest.raises(ExecutionError, match="not supported with this descriptor"):
        run(target, f"{load4(target)}\n\tbuffer_load_{access}", table, data)


def test_swizzled_records_have_a_size() -> None:
    data = np.zeros(64, np.uint32)
    table = descriptor(data, 64, stride=SMALL, flags=0x4000)
    body = f"{load4('gfx1100')}\n\tbuffer_load_b32 v4, v0, s[20:23], null idxen"
    with pytest.raises(ExecutionError, match="not supported with this descriptor"):
        run("gfx1100", body, table, data)


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_records_that_end_within_the_data_of_an_active_lane(target: str) -> None:
    data, out = np.arange(1024, dtype=np.uint32), np.zeros((2, 32), np.uint32)
    table = descriptor(data, 64, stride=12, flags=0x4000)
    body = """
{load}
	s_mov_b32 s24, 0
	v_lshlrev_b32_e32 v3, 2, v0
	v_mov_b32_e32 v2, v0
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v5, 0
	s_mov_b32 exec_lo, {mask:#x}
	buffer_load_b64 v[4:5], v[2:3], s[20:23], s24 idxen offen
	s_mov_b32 exec_lo, -1
{rows}"""
    rows = spill(4, 2, lanes=32)
    run(target, body.format(load=load4(target), mask=0xFFFFFFFB, rows=rows), table, data, out)
    assert np.array_equal(out.T[:2], [[0, 1], [4, 5]])
    assert not out.T[2:].any()
    with pytest.raises(ExecutionError, match="not supported with this descriptor"):
        run(target, body.format(load=load4(target), mask=0xFFFFFFFF, rows=rows), table, data, out)
