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
