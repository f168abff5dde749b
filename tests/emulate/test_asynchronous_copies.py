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


def test_lanes_with_an_lds_address_out_of_range_touch_no_memory() -> None:
    """Odd lanes are masked as Triton does it; their memory addresses are no memory at all."""
    source = np.arange(1, LANES + 1, dtype=np.uint32)
    loaded, stored = np.zeros(LANES, np.uint32), np.zeros(LANES, np.uint32)
    body = """
	v_mov_b32_e32 v4, -1
	ds_store_b32 v1, v4
	v_and_b32_e32 v5, 1, v0
	v_cmp_eq_u32_e32 vcc_lo, 1, v5
	v_cndmask_b32_e64 v2, v1, 0x7fffffff, vcc_lo
	v_cndmask_b32_e64 v3, v1, 0x70000000, vcc_lo
	global_load_async_to_lds_b32 v2, v3, s[8:9]
	s_wait_asynccnt 0x0
	ds_load_b32 v6, v1
	s_wait_dscnt 0x0
	global_store_b32 v1, v6, s[10:11]
	global_store_async_from_lds_b32 v3, v2, s[12:13]
	s_wait_asynccnt 0x0
"""
    run("gfx1250", body, source, loaded, stored, threads=LANES, lds=4 * LANES)
    odd = np.arange(LANES) % 2 == 1
    np.testing.assert_array_equal(loaded, np.where(odd, 0xFFFFFFFF, source))
    np.testing.assert_array_equal(stored, np.where(odd, 0, source))
