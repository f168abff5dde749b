"""Named barriers of gfx1250: who waits for whom, in workgroups one after the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import wavecast
from tests.emulate.memory_support import run
from wavecast.emulate.errors import ExecutionError, Unsupported

WAVES, LANES, ROUNDS = 4, 32, 3
SET_UP = """
	s_wait_kmcnt 0x0
	s_bfe_u32 s20, ttmp8, 0x50019
	s_mov_b32 m0, 0x{members:x}0001
	s_barrier_init m0
	s_mov_b32 m0, 0x{members:x}0000
	s_barrier_init 2
	s_barrier_signal -1
	s_barrier_wait -1
	s_and_b32 s21, s20, 1
	s_add_co_i32 s21, s21, 1
	s_mov_b32 m0, s21
	s_barrier_join m0
	s_xor_b32 s22, s20, 2
	s_lshl_b32 s23, s20, 7
	s_lshl_b32 s24, s22, 7
	v_and_b32_e32 v2, 0x7c, v1
	v_add_nc_u32_e32 v3, s23, v2
	v_add_nc_u32_e32 v4, s24, v2
	v_mov_b32_e32 v6, 0
"""
"""Waves 0 and 2 join barrier 1, waves 1 and 3 barrier 2; all agree before anybody signals."""
_WAIT = "\t{signal}\n\ts_barrier_wait 1\n"
_ROUND = (
    """
	v_add_nc_u32_e32 v5, {number}, v0
	ds_store_b32 v3, v5
	s_wait_dscnt 0x0
"""
    + _WAIT
    + """
	ds_load_b32 v7, v4
	s_wait_dscnt 0x0
	v_add_nc_u32_e32 v6, v6, v7
"""
    + _WAIT
)
"""A wave stores a number for its partner, waits, adds what the partner stored, and waits."""
SUMS = ROUNDS * (np.arange(WAVES * LANES) ^ 2 * LANES) + sum(range(ROUNDS))
_STORE = "\tglobal_store_b32 v1, v6, s[8:9]\n"


def rounds(signal: str) -> str:
    """All rounds, with a text for the signals."""
    return "".join(_ROUND.format(number=number, signal=signal) for number in range(ROUNDS))


def exchange(out: np.ndarray, signal: str, members: int = 2, **options) -> None:
    body = SET_UP.format(members=members) + rounds(signal)
    run("gfx1250", body + _STORE, out, threads=WAVES * LANES, lds=512, **options)


def test_pairs_of_waves_exchange_numbers() -> None:
    out = np.zeros(WAVES * LANES, np.uint32)
    for threads in (1, 2):
        out[:] = 9
        exchange(out, "s_barrier_signal m0", groups=3, host_threads=threads)
        np.testing.assert_array_equal(out, SUMS)


def test_a_signal_may_set_the_members() -> None:
    """Three are set, of which two come; the signals say two."""
    out = np.zeros(WAVES * LANES, np.uint32)
    exchange(out, "s_bitset1_b32 m0, 17\n\ts_barrier_signal m0", members=3)
    np.testing.assert_array_equal(out, SUMS)


def test_a_barrier_that_not_all_members_reach_is_a_deadlock() -> None:
    with pytest.raises(ExecutionError, match="s_barrier_wait 1"):
        exchange(np.zeros(WAVES * LANES, np.uint32), "s_barrier_signal m0", members=3)


def deadlock(body: str) -> str:
    out = np.zeros(WAVES * LANES, np.uint32)
    with pytest.raises(ExecutionError) as caught:
        run("gfx1250", SET_UP.format(members=3) + body, out, threads=WAVES * LANES, lds=512)
    return str(caught.value)


def test_the_report_of_a_deadlock_says_what_waves_wait_for() -> None:
    """Which barrier, how many have signalled it, and whether it opened before it was joined."""
    assert "for barrier 1, which 2 of 3 waves have signalled" in deadlock(
        "\ts_barrier_signal m0\n\ts_barrier_wait 1\n"
    )
    early = """
	s_mov_b32 m0, 0x10003
	s_barrier_signal m0
	s_barrier_signal -1
	s_barrier_wait -1
	s_barrier_join m0
	s_barrier_wait 1
"""
    told = deadlock(early)
    assert "waves 0, 1, 2, 3 at the barrier 's_barrier_wait 1'" in told
    assert told.endswith("since it opened, before it was joined")
    out = np.zeros(LANES, np.uint32)
    with pytest.raises(ExecutionError, match="but has joined no barrier"):
        run("gfx1250", "\ts_barrier_wait 1\n", out)


@pytest.mark.parametrize("number", [0, 17, 63])
@pytest.mark.parametrize("what", ["init", "join", "signal"])
def test_numbers_of_no_barrier_end_the_launch(number: int, what: str) -> None:
    """They come in M0: bits 5:0."""
    out = np.zeros(LANES, np.uint32)
    body = f"\ts_mov_b32 m0, 0x{0x20000 | number:x}\n\ts_barrier_{what} m0\n"
    with pytest.raises(ExecutionError, match=f"names barrier {number}: a workgroup has 16, from 1"):
        run("gfx1250", body, out)


def test_what_is_not_described_is_refused() -> None:
    out = np.zeros(WAVES * LANES, np.uint32)
    for text in ("s_barrier_leave", "s_barrier_signal_isfirst m0", "s_barrier_signal 17"):
        with pytest.raises(Unsupported, match="barrier") as caught:
            run("gfx1250", f"\t{text}\n", out)
        if "17" in text:
            assert "the named barrier 17: a workgroup has 16, from 1 on" in str(caught.value)


@pytest.mark.hip
def test_compiled_code_uses_them() -> None:
    source = Path(__file__).with_name("named_barriers.hip")
    out = np.zeros((2, WAVES * LANES), np.int32)
    wavecast.load(source, "gfx1250")["exchange_in_pairs"](2, WAVES * LANES, out)
    np.testing.assert_array_equal(out, [SUMS, SUMS])
