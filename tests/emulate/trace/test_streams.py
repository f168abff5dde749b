"""Recorded waves: the blocks they went through and every address."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emulate.trace.support import aligned, index, trace
from tests.emulate.trace.test_counts import LOOP
from wavecast.compile.codeobject import Launch
from wavecast.emulate.trace import layout
from wavecast.emulate.trace.selection import numbers, sample_workgroups

WALK = """	s_lshl_b32 s20, s2, 8
	v_add_u32_e32 v1, s20, v1
	v_lshlrev_b32_e32 v3, 3, v0
	s_mov_b32 s21, 3
again:
	global_load_dword v2, v1, s[8:9]
	s_waitcnt vmcnt(0)
	ds_write_b64 v3, v[4:5]
	s_barrier
	v_add_u32_e32 v1, 4, v1
	s_sub_u32 s21, s21, 1
	s_cmp_lg_u32 s21, 0
	s_cbranch_scc1 again
"""


@pytest.mark.parametrize("host_threads", [1, 3])
def test_blocks_and_addresses(host_threads: int) -> None:
    memory = aligned(1024)
    found = trace(
        "gfx942", WALK, memory, groups=8, threads=128, lds=1024, streams=[5, (2,)],
        host_threads=host_threads,
    )  # fmt: skip
    assert [(s.workgroup, s.wave) for s in found.streams] == [
        ((2, 0, 0), 0), ((2, 0, 0), 1), ((5, 0, 0), 0), ((5, 0, 0), 1),
    ]  # fmt: skip
    load, store = index(found, "global_load"), index(found, "ds_write")
    for stream in found.streams:
        assert stream.complete
        assert stream.blocks.tolist() == [0, 1, 1, 1, 2]
        assert stream.instructions.tolist() == [0, load, store, load, store, load, store]
        assert stream.masks[0] == 1
        assert set(stream.masks[1:].tolist()) == {(1 << 64) - 1}
        lane = np.arange(64, dtype=np.uint64) + np.uint64(64 * stream.wave)
        first = memory.ctypes.data + 256 * stream.workgroup[0]
        for step, row in enumerate(stream.addresses[1::2]):
            assert np.array_equal(row, lane * np.uint64(4) + np.uint64(first + 4 * step))
        for row in stream.addresses[2::2]:
            assert np.array_equal(row, lane * np.uint64(8))
    segment = found.ranges[0]
    assert (memory.ctypes.data, memory.ctypes.data + memory.nbytes) in found.ranges[1:]
    assert segment[0] <= int(found.streams[0].addresses[0, 0]) < segment[1]


def test_scratch_is_recorded_as_offsets_of_the_lane() -> None:
    body = "\tscratch_load_dword v4, off, off offset:24"
    (stream,) = trace("gfx942", body, scratch=64, threads=64, groups=2, streams=[1]).streams
    assert stream.addresses[1].tolist() == [24] * 64


def test_streams_longer_than_a_log() -> None:
    many = LOOP.replace("s20, 5", f"s20, {layout.BLOCK_ROOM}")
    (stream,) = trace("gfx942", many, streams=1).streams
    assert stream.complete
    assert len(stream.blocks) == layout.BLOCK_ROOM + 2
    assert (stream.blocks[1:-1] == 1).all()


def test_more_accesses_than_a_log() -> None:
    many = WALK.replace("s21, 3", f"s21, {layout.ACCESS_ROOM}")
    (stream,) = trace("gfx942", many, aligned(8192), lds=512, streams=1).streams
    assert len(stream.instructions) == 1 + 2 * layout.ACCESS_ROOM
    last = stream.addresses[-2, :2] - stream.addresses[1, :2]
    assert last.tolist() == [4 * (layout.ACCESS_ROOM - 1)] * 2


def test_a_limit_cuts_recordings_short() -> None:
    many = LOOP.replace("s20, 5", f"s20, {3 * layout.BLOCK_ROOM}")
    (stream,) = trace("gfx942", many, streams=1, limit_bytes=5 * layout.BLOCK_ROOM).streams
    assert not stream.complete
    assert layout.BLOCK_ROOM // 2 < len(stream.blocks) < layout.BLOCK_ROOM
    counted = trace("gfx942", many, streams=1, limit_bytes=0)
    assert counted.streams == ()
    assert counted.block_counts.tolist() == [1, 3 * layout.BLOCK_ROOM, 1]


def test_selection() -> None:
    grid = (4, 3, 2)
    assert numbers(grid, [23, (1, 2), (3, 0, 1), 0]).tolist() == [0, 9, 15, 23]
    code: Any = None
    launch = Launch(code, grid, (64, 1, 1))
    assert [launch.workgroup(n) for n in (9, 15)] == [(1, 2, 0), (3, 0, 1)]
    assert numbers(grid, map(launch.workgroup, range(24))).tolist() == list(range(24))
    assert len(sample_workgroups(grid, 5, None)) == 5
    assert sample_workgroups((1, 1, 1), 5, None).tolist() == [0]
    assert sample_workgroups(grid, 2, numbers(grid, [3, 4, 5, 6])).tolist() == [4, 6]
    assert sample_workgroups(grid, 0, None).tolist() == []


def test_a_wave_is_recorded_up_to_its_limit() -> None:
    memory = aligned(1024)
    found = trace(
        "gfx942", WALK, memory, groups=2, threads=128, lds=1024, streams=[0, 1], limit_entries=6
    )
    assert len(found.streams) == 4
    for stream in found.streams:
        assert not stream.complete
        assert stream.blocks.tolist() == [0, 1, 1]
        assert len(stream.instructions) == 3
    assert found.executions(index(found, "ds_write")) == 12
