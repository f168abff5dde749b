"""Tuples of registers that begin below v256 and end above it (gfx1250)."""

from __future__ import annotations

import numpy as np

from tests.emulate.memory_support import kernel_of, run
from wavecast.isa.liveness import liveness
from wavecast.isa.registers import VGPR_BASE, span

# The 128 bits of a lane are read into v[254:257], its two lower dwords swap with the upper ones
# by single registers, and 128 bits are stored from v[510:513].
BODY = """
	s_wait_kmcnt 0x0
	v_lshlrev_b32_e32 v1, 4, v0
	global_load_b128 v[254:257], v1, s[8:9]
	s_wait_loadcnt 0x0
	s_set_vgpr_msb 0x41
	v_mov_b32_e32 v254 /*v510*/, v0 /*v256*/
	v_mov_b32_e32 v255 /*v511*/, v1 /*v257*/
	s_set_vgpr_msb 0x80
	v_mov_b32_e32 v0 /*v512*/, v254
	v_mov_b32_e32 v1 /*v513*/, v255
	s_set_vgpr_msb 0x4
	global_store_b128 v1, v[254:257] /*v[510:513]*/, s[10:11]
	s_set_vgpr_msb 0x0
"""


def test_dwords_on_both_sides_move() -> None:
    data = np.random.default_rng(7).integers(0, 1 << 32, (32, 4), np.uint32)
    out = np.zeros_like(data)
    run("gfx1250", BODY, data, out)
    np.testing.assert_array_equal(out, data[:, [2, 3, 0, 1]])


def test_all_dwords_are_live() -> None:
    program = kernel_of("gfx1250", BODY).program
    live = liveness(program).after
    wait = next(i for i in program.instructions if i.decoded.mnemonic == "s_wait_loadcnt")
    assert live[wait.index] & span(VGPR_BASE, 254, 4) == span(VGPR_BASE, 254, 4)
