"""Flat accesses whose address is a scalar base and offsets of lanes (gfx1250)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import run


@pytest.mark.parametrize("modifier", ["", " scale_offset"])
@pytest.mark.parametrize("shared", [False, True])
def test_the_base_may_be_of_lds(modifier: str, shared: bool) -> None:
    """The base is that of LDS or of memory; 64 bytes further on what was stored is read back."""
    offsets = "v0" if modifier else "v1"
    base = "s_mov_b64 s[20:21], src_shared_base" if shared else "s_mov_b64 s[20:21], s[10:11]"
    body = f"""
	s_wait_kmcnt 0x0
	{base}
	v_add_nc_u32_e32 v4, 7, v0
	flat_store_b32 {offsets}, v4, s[20:21] offset:64{modifier}
	s_wait_storecnt_dscnt 0x0
	s_add_co_u32 s20, s20, 64
	s_add_co_ci_u32 s21, s21, 0
	flat_load_b32 v5, {offsets}, s[20:21]{modifier}
	s_wait_loadcnt_dscnt 0x0
	global_store_b32 v1, v5, s[8:9]
"""
    out, memory = np.zeros(32, np.uint32), np.zeros(64, np.uint32)
    run("gfx1250", body, out, memory, lds=1024)
    np.testing.assert_array_equal(out, np.arange(32) + 7)
    expected = np.zeros(64, np.uint32)
    expected[16:48] = 0 if shared else np.arange(32) + 7
    np.testing.assert_array_equal(memory, expected)
