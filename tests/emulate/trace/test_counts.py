"""Executions of blocks and branches, active lanes, chosen workgroups: against counts by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.trace.support import Traced, aligned, index, trace
from wavecast.emulate.errors import ExecutionError
from wavecast.emulate.trace.mode import TraceMode
from wavecast.errors import UsageError

LOOP = """	s_mov_b32 s20, 5
loop:
	s_sub_u32 s20, s20, 1
	s_cmp_lg_u32 s20, 0
	s_cbranch_scc1 loop
	v_mov_b32_e32 v2, 1
"""
HALF = """	v_cmp_gt_u32_e32 vcc, {lanes}, v0
	s_and_saveexec_b64 s[20:21], vcc
	v_add_u32_e32 v2, 1, v2
	s_cbranch_execz out
	v_mov_b32_e32 v3, 2
out:
	s_mov_b64 exec, s[20:21]
	v_mov_b32_e32 v4, 3
"""


def test_a_loop_is_counted_by_iterations() -> None:
    found = trace("gfx942", LOOP, groups=7, threads=128)
    assert (found.workgroups, found.waves) == (7, 14)
    assert found.block_counts.tolist() == [14, 5 * 14, 14]
    assert found.taken.tolist() == [0, 4 * 14, 0]
    assert found.executions(index(found, "s_cmp_lg")) == 70
    assert found.instructions == 14 * (4 + 5 * 3 + 2)


@pytest.mark.parametrize(("lanes", "partial", "empty"), [(64, 0, 0), (40, 3, 0), (0, 0, 3)])
def test_active_lanes(lanes: int, partial: int, empty: int) -> None:
    found = trace("gfx942", HALF.format(lanes=lanes), groups=3)
    place = index(found, "v_add_u32_e32 v2")
    assert found.active_lanes[place] == 3 * lanes
    assert (found.partial[place], found.empty[place]) == (partial, empty)
    skipped = index(found, "v_mov_b32_e32 v3")
    assert found.executions(skipped) == (3 if lanes else 0)
    assert found.active_lanes[skipped] == 3 * lanes
    after = index(found, "v_mov_b32_e32 v4")
    assert found.active_lanes[after] == 3 * 64
    assert found.taken.sum() == empty


def test_lanes_beyond_the_workgroup_are_off() -> None:
    found = trace("gfx942", "\tv_mov_b32_e32 v2, 1", threads=100)
    place = index(found, "v_mov_b32_e32 v2")
    assert (found.active_lanes[place], found.partial[place]) == (100, 1)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201"])
def test_barriers_resume_within_a_block(target: str) -> None:
    barrier = "s_barrier" if target != "gfx1201" else "s_barrier_signal -1\n\ts_barrier_wait -1"
    body = f"\tv_mov_b32_e32 v2, 1\n\t{barrier}\n\tv_mov_b32_e32 v3, 1\n\t{barrier}"
    found = trace(target, body, threads=128, groups=2)
    assert found.block_counts.tolist() == [found.waves]
    assert found.executions(index(found, "s_barrier")) == 2 * 128 // found.lanes


def test_host_threads_count_together() -> None:
    one = trace("gfx942", LOOP, groups=50)
    four = trace("gfx942", LOOP, groups=50, host_threads=4)
    assert np.array_equal(one.block_counts, four.block_counts)
    assert one.memory == four.memory


STORE = """	s_lshl_b32 s20, s2, 2
	v_mov_b32_e32 v2, s20
	v_mov_b32_e32 v3, 1
	v_cmp_eq_u32_e32 vcc, 0, v0
	s_and_b64 exec, exec, vcc
	global_store_dword v2, v3, s[8:9]
"""


def test_chosen_workgroups_are_counted_and_all_run() -> None:
    out = aligned(16)
    found = trace("gfx942", STORE, out, groups=16, workgroups=[3, (5,), 3])
    assert (found.workgroups, found.block_counts.tolist()) == (2, [2])
    assert found.memory[index(found, "global_store")].lanes == 2
    assert out.tolist() == [1] * 16


def test_only_chosen_workgroups_run() -> None:
    out = aligned(16)
    found = trace(
        "gfx942", STORE, out, groups=16, workgroups=[3, (5, 0, 0)], only=True, host_threads=2
    )
    assert found.block_counts.tolist() == [2]
    assert np.flatnonzero(out).tolist() == [3, 5]


@pytest.mark.parametrize("workgroup", [16, -1, (0, 1), (0, 0, 0, 0), ()])
def test_workgroups_outside_the_grid_are_refused(workgroup: int | tuple[int, ...]) -> None:
    with pytest.raises(UsageError):
        trace("gfx942", STORE, aligned(16), groups=16, workgroups=[workgroup])


def test_options_that_contradict() -> None:
    with pytest.raises(UsageError, match="only=True"):
        trace("gfx942", LOOP, only=True)
    with pytest.raises(UsageError, match="names none"):
        trace("gfx942", LOOP, workgroups=[])
    with pytest.raises(UsageError, match="negative"):
        trace("gfx942", LOOP, streams=-1)


def test_a_launch_that_breaks_off_is_not_complete() -> None:
    mode = TraceMode()
    kernel = Traced("gfx942", "\tglobal_load_dword v2, v1, s[8:9]", mode)
    with pytest.raises(ExecutionError):
        kernel.run(aligned(8))
    (found,) = mode.traces
    assert not found.complete
    assert found.block_counts.tolist() == [1]


SPIN = """	s_cmp_lg_u32 s2, 0
	s_cbranch_scc1 post
wait:
	s_load_dword s20, s[8:9], 0x0 glc
	s_waitcnt lgkmcnt(0)
	s_cmp_eq_u32 s20, 0
	s_cbranch_scc1 wait
	s_branch out
post:
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v3, 1
	global_store_dword v2, v3, s[8:9]
out:
	v_mov_b32_e32 v4, 1
"""


@pytest.mark.parametrize("host_threads", [1, 2])
def test_workgroups_that_wait_for_others(host_threads: int) -> None:
    """The first waits for the second: more are resident than host threads."""
    found = trace("gfx942", SPIN, aligned(16), groups=5, streams=5, host_threads=host_threads)
    assert found.executions(index(found, "v_mov_b32_e32 v4")) == 5
    assert found.executions(index(found, "global_store")) == 4
    assert all(stream.complete for stream in found.streams)
    waits = [stream.blocks.tolist().count(1) for stream in found.streams]
    assert waits[1:] == [0] * 4
    assert waits[0] == found.block_counts[1] >= 1


def test_launches_of_one_size_count_together() -> None:
    mode = TraceMode(together=True, streams=1)
    kernel = Traced("gfx942", STORE, mode)
    out = aligned(16)
    for groups in (16, 3, 16):
        kernel.run(out, groups=groups)
    both, other = mode.traces
    assert (both.launches, both.waves, other.launches, other.waves) == (2, 32, 1, 3)
    assert both.block_counts.tolist() == [32]
    store = both.memory[index(both, "global_store")]
    assert (store.executions, store.lanes, store.blocks_32, store.least_stride) == (
        32,
        32,
        32,
        None,
    )
    place = index(both, "v_mov_b32_e32 v3")
    assert both.active_lanes[place] == 32 * 64
    assert len(both.streams) == 1
