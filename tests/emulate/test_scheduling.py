"""Waves and workgroups that wait for each other, and those that wait for ever."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.memory_support import run
from wavecast.emulate import resident
from wavecast.emulate.errors import ExecutionError
from wavecast.errors import LaunchError

TARGET = "gfx942"


def _words(count: int = 64) -> np.ndarray:
    return np.zeros(count, np.uint32)


SPIN_ON_LDS = """
	v_mov_b32_e32 v2, 0
	ds_write_b32 v2, v2
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_readfirstlane_b32 s20, v0
	s_cmp_eq_u32 s20, 0
	s_cbranch_scc0 .Lset
.Lwait:
	ds_read_b32 v3, v2
	s_waitcnt lgkmcnt(0)
	v_readfirstlane_b32 s21, v3
	s_cmp_eq_u32 s21, 7
	s_cbranch_scc0 .Lwait
	global_store_dword v1, v3, s[8:9]
	s_endpgm
.Lset:
	s_movk_i32 s22, 0x7fff
.Lwork:
	s_sub_u32 s22, s22, 1
	s_cmp_eq_u32 s22, 0
	s_cbranch_scc0 .Lwork
	v_mov_b32_e32 v4, {value}
	ds_write_b32 v2, v4
	s_waitcnt lgkmcnt(0)
"""


def test_a_wave_may_wait_for_a_later_one() -> None:
    out = _words()
    run(TARGET, SPIN_ON_LDS.format(value=7), out, threads=128, lds=64)
    assert (out == 7).all()


def test_waves_that_wait_for_nothing_are_a_deadlock() -> None:
    with pytest.raises(
        ExecutionError, match=r"deadlock.*workgroup \(0, 0, 0\), wave 0 in the loop"
    ):
        run(TARGET, SPIN_ON_LDS.format(value=8), _words(), threads=128, lds=64)


LATER_FIRST = """
	v_mov_b32_e32 v2, 0
	s_sub_u32 s20, {last}, s2
.Lwait:
	global_load_dword v3, v2, s[8:9] sc1
	s_waitcnt vmcnt(0)
	v_readfirstlane_b32 s21, v3
	s_cmp_eq_u32 s21, s20
	s_cbranch_scc0 .Lwait
	v_mov_b32_e32 v4, s2
	s_lshl_b32 s22, s20, 2
	v_mov_b32_e32 v5, s22
	s_mov_b64 exec, 1
	global_store_dword v5, v4, s[10:11]
	v_mov_b32_e32 v6, 1
	global_atomic_add v2, v6, s[8:9]
"""


@pytest.mark.parametrize("host_threads", [1, 2])
def test_workgroups_may_wait_for_later_ones(host_threads: int) -> None:
    groups = 40
    turn, order = _words(1), _words()
    body = LATER_FIRST.format(last=groups - 1)
    run(TARGET, body, turn, order, groups=groups, host_threads=host_threads)
    assert turn[0] == groups
    assert order[:groups].tolist() == list(range(groups))[::-1]


@pytest.mark.parametrize("host_threads", [1, 2])
def test_workgroups_that_wait_for_one_that_is_missing(host_threads: int) -> None:
    with pytest.raises(ExecutionError, match=r"deadlock.*s_sub_u32|deadlock.*global_load_dword"):
        run(TARGET, LATER_FIRST.format(last=9), _words(1), _words(), groups=8,
            host_threads=host_threads)  # fmt: skip


COUNTING = """
	s_mov_b32 s20, 0
.Lloop:
	s_add_u32 s20, s20, 1
	s_cmp_eq_u32 s20, {end}
	s_cbranch_scc0 .Lloop
	v_mov_b32_e32 v3, s20
	global_store_dword v1, v3, s[8:9]
"""


def test_slices_do_not_change_a_result() -> None:
    out = _words()
    run(TARGET, COUNTING.format(end=1_000_000), out)
    assert (out == 1_000_000).all()


def test_too_many_instructions() -> None:
    with pytest.raises(ExecutionError, match=r"wave 0: the loop of 's_add_u32.*29\d\d\d instr"):
        run(TARGET, COUNTING.format(end=1_000_000), _words(), budget=30_000)
    run(TARGET, COUNTING.format(end=9_900), _words(), budget=30_000)


def test_a_cycle_with_two_entries_ends_too() -> None:
    body = """
	s_cmp_eq_u32 s2, 0
	s_cbranch_scc1 .Lb
.La:
	s_add_u32 s20, s20, 1
.Lb:
	s_add_u32 s21, s21, 1
	s_branch .La
"""
    with pytest.raises(ExecutionError, match="longer than allowed"):
        run(TARGET, body, _words(), budget=50_000, groups=2)


def test_a_wave_that_ends_does_not_hold_up_a_barrier() -> None:
    out = _words(128)
    body = """
	v_readfirstlane_b32 s20, v0
	s_cmp_eq_u32 s20, 0
	s_cbranch_scc1 .Lend
	s_barrier
	v_mov_b32_e32 v3, 5
	global_store_dword v1, v3, s[8:9]
.Lend:
"""
    run(TARGET, body, out, threads=128)
    assert out.tolist() == [0] * 64 + [5] * 64


RUNNING_ON = """
	v_mov_b32_e32 v3, 1
	global_store_dword v1, v3, s[8:9]
""" + COUNTING.format(end="0x7fffffff")


def test_an_interrupt_ends_a_launch_and_leaves_things_usable() -> None:
    ident = threading.main_thread().ident
    assert ident is not None
    out, ended = _words(), threading.Event()

    def interrupt() -> None:
        # not before the kernel runs: Python drops what is raised in a destructor of the compiler
        while not out[0] and not ended.wait(0.005):
            pass
        if not ended.wait(0.05):
            signal.pthread_kill(ident, signal.SIGINT)

    # a shell starts what runs in the background with interrupts ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    sender = threading.Thread(target=interrupt)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(TARGET, RUNNING_ON, out, groups=64, host_threads=2)
    finally:
        ended.set()
        sender.join()
        signal.signal(signal.SIGINT, before)
    test_slices_do_not_change_a_result()


@pytest.mark.parametrize("threads", [0, 1025])
def test_workgroups_no_hardware_runs(threads: int) -> None:
    with pytest.raises(LaunchError, match="work-items"):
        run(TARGET, "", _words(), threads=threads or -1)


def test_scratch_beyond_all_memory() -> None:
    with pytest.raises(ExecutionError, match="registers, LDS and scratch"):
        run(TARGET, "", _words(), scratch=(1 << 32) - 4)


def test_what_another_host_thread_raises_ends_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    from wavecast.emulate.resident import Resident

    running = Resident.run

    def failing(resident: Resident) -> int:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("broken")
        return running(resident)

    monkeypatch.setattr(Resident, "run", failing)
    with pytest.raises(RuntimeError, match="broken"):
        run(TARGET, "\tglobal_store_dword v1, v0, s[8:9]\n", _words(), groups=64, host_threads=2)


def test_a_grid_of_more_work_items_than_a_dispatch_packet_holds() -> None:
    with pytest.raises(LaunchError, match="67108864 workgroups of 64"):
        run(TARGET, "", _words(), groups=1 << 26)


def test_waves_that_are_cut_end_without_holding_up_the_others() -> None:
    out = _words()
    body = COUNTING.format(end=1_000_000)
    run(TARGET, body, out, budget=30_000, cut=True, groups=3)
    assert (out == 0).all()
    run(TARGET, COUNTING.format(end=900), out, budget=30_000, cut=True, groups=3)
    assert (out == 900).all()


COUNTING_SPIN = """
	s_mov_b32 s20, 0
	v_mov_b32_e32 v2, 0
.Lwait:
	s_add_u32 s20, s20, 1
	{store}
	s_load_dword s21, s[10:11], 0x0
	s_waitcnt lgkmcnt(0)
	s_cmp_eq_u32 s21, s20
	s_cbranch_scc0 .Lwait
	v_mov_b32_e32 v3, s20
	global_store_dword v1, v3, s[8:9]
"""


def test_a_wave_that_counts_while_it_waits_for_nothing_ends(monkeypatch) -> None:
    monkeypatch.setattr(resident, "STALLED", 1 << 22)
    pattern = r"wave 0 in the loop of .*; for [45],\d+,\d+ instructions nothing in memory"
    with pytest.raises(ExecutionError, match=pattern):
        run(TARGET, COUNTING_SPIN.format(store=""), _words(), _words(1))


def test_a_long_loop_that_stores_does_not_count_as_endless(monkeypatch) -> None:
    monkeypatch.setattr(resident, "STALLED", 1 << 21)
    out, last = _words(), np.array([1 << 20], np.uint32)
    store = "v_mov_b32_e32 v3, s20\n\tglobal_store_dword v2, v3, s[8:9]"
    run(TARGET, COUNTING_SPIN.format(store=store), out, last)
    assert (out == 1 << 20).all()


def test_a_limit_that_was_given_lets_a_long_loop_run(monkeypatch) -> None:
    monkeypatch.setattr(resident, "STALLED", 1 << 20)
    spin = COUNTING_SPIN.format(store="")
    with pytest.raises(ExecutionError, match="runs longer than allowed: 8388"):
        run(TARGET, spin, _words(), _words(1), budget=1 << 23)


def test_a_deadlock_names_the_barrier_and_for_whom_waves_wait() -> None:
    body = """
	v_mov_b32_e32 v2, 0
	v_readfirstlane_b32 s20, v0
	s_cmp_eq_u32 s20, 0
	s_cbranch_scc0 .Lmeet
.Lwait:
	s_load_dword s21, s[8:9], 0x0
	s_waitcnt lgkmcnt(0)
	s_cmp_eq_u32 s21, 0
	s_cbranch_scc1 .Lwait
.Lmeet:
	s_barrier
"""
    pattern = r"wave 0 in the loop of .*wave 1 at the barrier 's_barrier'.*, for wave 0"
    with pytest.raises(ExecutionError, match=pattern):
        run(TARGET, body, _words(), threads=128)
