"""Offsets in units of the access (gfx1250, `scale_offset`)."""

from __future__ import annotations

import numpy as np

from tests.emulate.memory_support import run


def test_vector_offsets_count_elements() -> None:
    source, out = np.arange(32, dtype=np.uint64) * 3, np.zeros(32, np.uint64)
    body = (
        "\tglobal_load_b64 v[2:3], v0, s[8:9] scale_offset\n\ts_wait_loadcnt 0x0\n"
        "\tglobal_store_b64 v0, v[2:3], s[10:11] scale_offset\n"
    )
    run("gfx1250", body, source, out)
    assert (out == source).all()


def test_scalar_offsets_count_accesses() -> None:
    source, out = np.arange(32, dtype=np.uint32) + 100, np.zeros(32, np.uint32)
    body = (
        "\ts_mov_b32 s4, 7\n\ts_load_b32 s5, s[8:9], s4 offset:0x4 scale_offset nv\n"
        "\ts_wait_kmcnt 0x0\n\tv_mov_b32_e32 v2, s5\n"
        "\tglobal_store_b32 v0, v2, s[10:11] scale_offset\n"
    )
    run("gfx1250", body, source, out)
    assert (out == 108).all()
