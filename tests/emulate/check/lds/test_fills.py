"""Loads from memory to LDS, and code of the same wave that does not wait for them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.check.support import checked, of_kind
from tests.targets import swept
from wavecast.emulate.reports import Kind

TARGETS = ("gfx942", "gfx950", "gfx90a")
_READ = "ds_read_b32 v2, v1{}\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[8:9]\n"
_LOADS = {
    "global": "global_load_lds_dword v1, s[10:11]\n",
    "buffer": "s_mov_b64 s[20:21], s[10:11]\ns_mov_b32 s22, 0x1000\ns_mov_b32 s23, 0x00020000\n"
    "buffer_load_dword v1, s[20:23], 0 offen lds\n",
}


def _found(target: str, body: str):
    start = "s_waitcnt lgkmcnt(0)\ns_mov_b32 m0, 0\n"
    out, data = np.zeros(1024, np.uint32), np.arange(1024, dtype=np.uint32)
    return [
        report
        for report in checked(target, start + body, out, data, lds=4096)
        if report.kind in (Kind.MISSING_WAIT, Kind.UNINITIALISED_LDS, Kind.LDS_RACE)
    ]


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize("kind", _LOADS)
def test_a_read_waits_for_the_load_that_fills_lds(target: str, kind: str) -> None:
    if kind == "global" and target == "gfx90a":
        pytest.skip("no loads to LDS but those of buffers")
    wait = "s_waitcnt vmcnt({})\n"
    assert _found(target, _LOADS[kind] + wait.format(0) + _READ.format("")) == []
    (report,) = _found(target, _LOADS[kind] + _READ.format(""))
    assert report.kind is Kind.MISSING_WAIT
    assert report.text.startswith("ds_read_b32")
    assert report.other_text.endswith(" lds") or "load_lds" in report.other_text
    assert "touches LDS byte 0x0 while the load to LDS" in report.message


def test_a_wait_that_leaves_the_load_outstanding() -> None:
    second = "s_mov_b32 m0, 0x100\n" + _LOADS["global"]
    early = _LOADS["global"] + second + "s_waitcnt vmcnt(1)\n"
    assert _found("gfx942", early + _READ.format("")) == []
    (report,) = _found("gfx942", early + _READ.format(" offset:256"))
    assert report.kind is Kind.MISSING_WAIT
    assert len(report.lanes) == 64


def test_a_barrier_does_not_wait_for_the_load() -> None:
    (report,) = _found("gfx942", _LOADS["global"] + "s_barrier\n" + _READ.format(""))
    assert report.kind is Kind.MISSING_WAIT


def test_a_store_waits_for_the_load_too() -> None:
    store = "ds_write_b32 v1, v0\ns_waitcnt vmcnt(0)\n"
    reports = of_kind(_found("gfx942", _LOADS["global"] + store), Kind.MISSING_WAIT)
    assert [report.text for report in reports] == ["ds_write_b32 v1, v0"]
    assert _found("gfx942", _LOADS["global"] + "s_waitcnt vmcnt(0)\n" + store) == []


_TILE = """
s_mov_b32 s20, 1
s_mov_b32 s21, 0
s_mov_b64 s[22:23], s[10:11]
s_mov_b32 s24, 0x20000
s_mov_b32 s25, 0x200000
s_mov_b32 s26, 0
s_mov_b32 s27, 0x200000
s_mov_b64 s[28:29], 0
s_mov_b64 s[30:31], 0
"""
"""The descriptor of 32 dwords, to LDS byte 0."""
_COPIES = {
    "asynccnt": "global_load_async_to_lds_b32 v1, v1, s[10:11]\n",
    "tensorcnt": _TILE + "tensor_load_to_lds s[20:23], s[24:31]\n",
}
_LOAD = "ds_load_b32 v2, v1\ns_wait_dscnt 0x0\nglobal_store_b32 v1, v2, s[8:9]\n"
_MEET = "s_barrier_signal -1\ns_barrier_wait -1\n"


def _copied(body: str, waves: int = 1):
    out, data = np.zeros(1024, np.uint32), np.arange(1, 1025, dtype=np.uint32)
    body = "s_wait_kmcnt 0x0\n" + body
    reports = checked("gfx1250", body, out, data, lds=4096, threads=32 * waves)
    return [(report.kind, report.text.split()[0]) for report in reports]


@pytest.mark.parametrize("counter", _COPIES)
def test_a_read_waits_for_the_copy_that_fills_lds(counter: str) -> None:
    other = "asynccnt" if counter == "tensorcnt" else "tensorcnt"
    copy, wait = _COPIES[counter], "s_wait_{} {}\n"
    assert _copied(copy + wait.format(counter, 0) + _LOAD) == []
    missing = [(Kind.MISSING_WAIT, "ds_load_b32")]
    assert _copied(copy + _LOAD) == missing
    assert _copied(copy + wait.format(counter, 1) + _LOAD) == missing
    assert _copied(copy + wait.format(other, 0) + _LOAD) == missing
    assert _copied(copy + _MEET + _LOAD) == missing


@pytest.mark.parametrize("counter", _COPIES)
def test_another_wave_reads_what_was_waited_for_before_the_barrier(counter: str) -> None:
    """The second wave copies, the first reads."""
    guard = "v_cmp_lt_u32_e32 vcc_lo, 31, v0\ns_cbranch_vccz .Lskip\n"
    copy = "v_and_b32_e32 v1, 0x7c, v1\n" + guard + _COPIES[counter]
    wait, skip = f"s_wait_{counter} 0x0\n", ".Lskip:\n"
    assert _copied(copy + wait + skip + _MEET + _LOAD, waves=2) == []
    found = _copied(copy + skip + _MEET + wait + _LOAD, waves=2)
    assert (Kind.LDS_RACE, "ds_load_b32") in found


_MASKED = "v_mov_b32_e32 v4, 0x7fffffff\nglobal_load_async_to_lds_b32 v4, v1, s[10:11]\n"


def test_what_no_copy_has_filled_may_be_dropped() -> None:
    """As in a pipeline whose loop has no iterations: every lane of the copy is masked off."""
    wait = "s_wait_asynccnt 0x0\n"
    dropped = "v_cndmask_b32_e64 v2, v0, v2, s20\n"
    load, store = "ds_load_b32 v2, v1\ns_wait_dscnt 0x0\n", "global_store_b32 v1, v2, s[8:9]\n"
    never = "s_mov_b32 s20, 0\n"
    assert _copied(_MASKED + wait + never + load + dropped + store) == []
    found = _copied(_MASKED + wait + load + store)
    assert found == [(Kind.UNINITIALISED_LDS, "global_store_b32")]
    used = _copied(_MASKED + wait + "s_mov_b32 s20, -1\n" + load + dropped + store)
    assert used == found


def test_a_load_of_which_some_is_filled_counts_as_written() -> None:
    """Lanes beyond the edge of a tile, whose results are not stored."""
    some = "v_cmp_gt_u32_e32 vcc_lo, 8, v0\nv_cndmask_b32_e32 v4, 0x7fffffff, v1, vcc_lo\n"
    copy = "global_load_async_to_lds_b32 v4, v1, s[10:11]\ns_wait_asynccnt 0x0\n"
    assert _copied("v_mov_b32_e32 v5, 0x7fffffff\n" + some + copy + _LOAD) == []
