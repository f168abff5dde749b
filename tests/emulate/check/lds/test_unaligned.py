"""Stores to LDS that are not aligned: the bytes they write, and no others, have been written."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.check.support import checked, of_kind
from tests.targets import swept
from wavecast.emulate.reports import Kind

STORES = {
    "b64": ("ds_write_b64 v1, v[2:3] offset:2\n", range(2, 10)),
    "b32": ("ds_write_b32 v1, v2 offset:7\n", range(7, 11)),
    "b16": ("ds_write_b16 v1, v2 offset:3\n", range(3, 5)),
    "b128": ("ds_write_b128 v1, v[2:5] offset:1\n", range(1, 17)),
}


def body(store: str, byte: int) -> str:
    return (
        "s_waitcnt lgkmcnt(0)\nv_mov_b32 v1, 0\nv_mov_b32 v2, 1\nv_mov_b32 v3, 2\n"
        f"v_mov_b32 v4, 3\nv_mov_b32 v5, 4\n{store}s_waitcnt lgkmcnt(0)\n"
        f"ds_read_u8 v2, v1 offset:{byte}\ns_waitcnt lgkmcnt(0)\n"
        "global_store_dword v1, v2, s[8:9]\n"
    )


@pytest.mark.parametrize("target", swept(("gfx942", "gfx1100")))
@pytest.mark.parametrize("name", STORES)
def test_the_bytes_of_an_unaligned_store_are_written(name: str, target: str) -> None:
    store, written = STORES[name]
    edges = {written[0] - 1, written[0], written[-1], written[-1] + 1}
    for byte in sorted(edges):
        reports = checked(target, body(store, byte), np.zeros(64, np.uint32), lds=64)
        assert bool(of_kind(reports, Kind.UNINITIALISED_LDS)) == (byte not in written), byte
        assert not of_kind(reports, Kind.LDS_RACE)
