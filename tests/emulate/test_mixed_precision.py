"""Mixed-precision FMA: sources are single or half precision by modifier, constants included."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate import memory_support

BODY = """
	global_load_dword v2, v1, s[8:9]
	global_load_dword v3, v1, s[10:11]
	s_waitcnt vmcnt(0)
	v_fma_mix_f32 v4, -v2, 1.0, v3 op_sel_hi:[0,1,1]
	v_fma_mix_f32 v5, v2, 2.0, v3 op_sel_hi:[0,0,1]
	global_store_dword v1, v4, s[12:13]
	global_store_dword v1, v5, s[14:15]
"""


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950"])
def test_constants_take_the_precision_of_their_source(target: str) -> None:
    lanes = memory_support.lanes_of(target)
    single = np.linspace(-3, 3, lanes).astype(np.float32)
    half = np.linspace(5, -5, lanes).astype(np.float16)
    packed = half.view(np.uint16).astype(np.uint32)
    first, second = np.zeros(lanes, np.float32), np.zeros(lanes, np.float32)
    memory_support.run(target, BODY, single, packed, first, second)
    np.testing.assert_array_equal(first, half.astype(np.float32) - single)
    np.testing.assert_array_equal(second, 2 * single + half.astype(np.float32))


def test_halves_of_constants_are_brain_floats() -> None:
    """op_sel takes the upper half of the 32 bits of 1.0, which is 1 in bfloat16."""
    pairs = np.linspace(-3, 3, 32).astype(np.float32).view(np.uint32) >> 16
    single, out = np.linspace(5, -5, 32).astype(np.float32), np.zeros(32, np.float32)
    body = """
	global_load_b32 v2, v1, s[8:9]
	global_load_b32 v3, v1, s[10:11]
	s_wait_loadcnt 0x0
	v_fma_mix_f32_bf16 v4, v2, 1.0, v3 op_sel:[0,1,0] op_sel_hi:[1,1,0]
	global_store_b32 v1, v4, s[12:13]
"""
    memory_support.run("gfx1250", body, pairs, single, out)
    np.testing.assert_array_equal(out, (pairs << 16).view(np.float32) + single)
