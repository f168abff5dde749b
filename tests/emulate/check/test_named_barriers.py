"""Named barriers of gfx1250 in check mode: what they order, in LDS and in global memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import wavecast
from tests.emulate.check.support import checked
from tests.emulate.test_named_barriers import LANES, ROUNDS, SET_UP, WAVES, rounds
from wavecast.emulate.errors import ChecksFailed, ExecutionError
from wavecast.emulate.reports import Kind

_WAIT_LDS = "\ts_wait_dscnt 0x0\n"
_MEET = "\ts_barrier_signal m0\n\ts_barrier_wait 1\n"
_STORE_LDS = "\tds_store_b32 v3, v5\n"
_LOAD_LDS = "\tds_load_b32 v7, v4\n"
_STORE = """
	s_lshl_b32 s25, ttmp9, 9
	v_add_nc_u32_e32 v1, s25, v1
	global_store_b32 v1, v6, s[8:9]
"""


def _kinds(body: str, groups: int = 3) -> set[tuple[Kind, str]]:
    """The kinds and the opcodes of what is reported; the number of the workgroup is in ttmp9."""
    out = np.zeros(groups * WAVES * LANES, np.uint32)
    reports = checked(
        "gfx1250", body + _STORE, out, threads=WAVES * LANES, groups=groups, lds=512
    )  # fmt: skip
    return {(report.kind, report.text.split()[0]) for report in reports}


def _exchange(before: str = "", after: str = "") -> str:
    body = SET_UP.format(members=2) + rounds("s_barrier_signal m0")
    assert before in body
    return body.replace(before, after) if before else body


def test_pairs_of_waves_are_clean() -> None:
    assert not _kinds(_exchange())


@pytest.mark.parametrize(
    ("before", "after", "race"),
    [
        # the store, then the load, may not be done when the wave signals
        (_STORE_LDS + _WAIT_LDS, _STORE_LDS, "ds_load_b32"),
        (_LOAD_LDS + _WAIT_LDS, _LOAD_LDS, "ds_store_b32"),
        # nobody waits for the stores, or for the loads
        (_WAIT_LDS + _MEET + "\n" + _LOAD_LDS, _WAIT_LDS + "\n" + _LOAD_LDS, "ds_load_b32"),
        ("v6, v6, v7\n" + _MEET, "v6, v6, v7\n", "ds_store_b32"),
        # the barrier of the others: waves 0 and 2 exchange with 1 and 3
        ("s_xor_b32 s22, s20, 2", "s_xor_b32 s22, s20, 1", "ds_load_b32"),
    ],
)
def test_what_no_barrier_orders_is_a_race(before: str, after: str, race: str) -> None:
    assert (Kind.LDS_RACE, race) in _kinds(_exchange(before, after))


def test_a_deadlock_stays_one_under_checks() -> None:
    body = SET_UP.format(members=3) + rounds("s_barrier_signal m0")
    with pytest.raises(ExecutionError, match="s_barrier_wait 1"):
        _kinds(body)


_GLOBAL = """
	s_lshl_b32 s25, ttmp9, 9
	v_add_nc_u32_e32 v3, s25, v3
	v_add_nc_u32_e32 v4, s25, v4
	global_store_b32 v3, v0, s[10:11]
{wait}{meet}
	global_load_b32 v6, v4, s[10:11]
	s_wait_loadcnt 0x0
"""


@pytest.mark.parametrize(("waits", "meets"), [(True, True), (True, False), (False, True)])
def test_global_memory_is_ordered_behind_a_wait_for_the_stores(waits: bool, meets: bool) -> None:
    wait = "\ts_wait_storecnt 0x0\n" if waits else ""
    body = SET_UP.format(members=2) + _GLOBAL.format(wait=wait, meet=_MEET if meets else "")
    out, between = (np.zeros(3 * WAVES * LANES, np.uint32) for _ in range(2))
    reports = checked(
        "gfx1250", body + _STORE, out, between, threads=WAVES * LANES, groups=3, lds=512
    )  # fmt: skip
    expected = set() if waits and meets else {Kind.GLOBAL_RACE}
    assert {report.kind for report in reports} == expected


@pytest.mark.hip
def test_compiled_code_is_clean() -> None:
    source = Path(__file__).parents[1] / "named_barriers.hip"
    out = np.zeros((2, WAVES * LANES), np.int32)
    wavecast.load(source, "gfx1250", check=True)["exchange_in_pairs"](2, WAVES * LANES, out)
    assert out[0].sum() == out[1].sum() > ROUNDS


@pytest.mark.hip
@pytest.mark.parametrize("name", ["relay", "relay_unordered_store", "relay_unordered_load"])
def test_what_waves_release_and_acquire_passes_a_named_barrier(name: str) -> None:
    source = Path(__file__).parents[1] / "named_barriers.hip"
    data, flag, out = (np.zeros(size, np.int32) for size in (32, 1, 32))
    kernel = wavecast.load(source, "gfx1250", check=True)[name]
    if name == "relay":
        kernel(2, 64, data, flag, out)
        np.testing.assert_array_equal(out, np.arange(1, 33))
        return
    with pytest.raises(ChecksFailed, match="race"):
        kernel(2, 64, data, flag, out)
