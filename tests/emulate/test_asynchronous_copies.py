"""Copies between memory and LDS of gfx1250, with an LDS address per lane.

Source: LLVM, "AMDGPU DMA Operations": the offset applies to both addresses.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import run

LANES = 32


@pytest.mark.parametrize(("suffix", "dwords"), [("b32", 1), ("b64", 2), ("b128", 4)])
def test_lanes_copy_to_and_from_lds(suffix: str, dwords: int) -> None:
    """Lane n writes LDS where lane 31 - n reads it, and stores from there."""
    source = np.arange((LANES + 1) * dwords, dtype=np.uint32)
    found, stored = np.zeros(LANES * dwords, np.uint32), np.zeros(LANES * dwords, np.uint32)
    size, shift = 4 * dwords, {1: 2, 2: 3, 4: 4}[dwords]
    registers = "v4" if dwords == 1 else f"v[4:{3 + dwords}]"
    body = (
        f"\tv_lshlrev_b32_e32 v2, {shift}, v0\n\tv_sub_nc_u32_e32 v3, {size * (LANES - 1)}, v2\n"
        f"\tglobal_load_async_to_lds_{suffix} v3, v2, s[8:9] offset:{size}\n"
        "\ts_wait_asynccnt 0x0\n"
        f"\tds_load_{suffix} {registers}, v2 offset:{size}\n\ts_wait_dscnt 0x0\n"
        f"\tglobal_store_{suffix} v2, {registers}, s[10:11]\n"
        f"\tv_add_nc_u32_e32 v3, {size}, v3\n"
        f"\tglobal_store_async_from_lds_{suffix} v2, v3, s[12:13]\n\ts_wait_asynccnt 0x0\n"
    )
    run("gfx1250", body, source, found, stored, threads=LANES, lds=1024)
    rows = source.reshape(LANES + 1, dwords)[1:]
    np.testing.assert_array_equal(found.reshape(LANES, dwords), rows[::-1])
    np.testing.assert_array_equal(stored.reshape(LANES, dwords), rows)
