"""Blocks, dominators, loops, liveness and def-use on programs small enough to work out by hand."""

from __future__ import annotations

import pytest

from wavecast import isa
from wavecast.isa.defuse import ENTRY
from wavecast.isa.registers import AGPRS, SGPRS, VGPRS, register_names

NESTED = """
	.text
	.type k,@function
k:
	s_mov_b32 s0, 0
.LBB0_1:
	s_mov_b32 s1, 0
	v_mov_b32_e32 v0, s0
.LBB0_2:
	v_add_u32_e32 v1, v0, v2
	s_add_i32 s1, s1, 1
	s_cmp_lt_i32 s1, 4
	s_cbranch_scc1 .LBB0_2
	s_add_i32 s0, s0, 1
	s_cmp_lt_i32 s0, s2
	s_cbranch_scc1 .LBB0_1
	v_mov_b32_e32 v3, v1
	s_endpgm
.Lfunc_end0:
"""


def nested():
    return isa.parse(NESTED, "gfx942").functions["k"]


def test_blocks_and_edges() -> None:
    program = nested()
    spans = [(block.start, block.stop, block.successors) for block in program.blocks]
    assert spans == [(0, 1, (1,)), (1, 3, (2,)), (3, 7, (3, 2)), (7, 10, (4, 1)), (10, 12, ())]
    assert program.immediate_dominators == (-1, 0, 1, 2, 3)


def test_loops_nest() -> None:
    outer, inner = nested().loops
    assert (outer.header, outer.depth, outer.children) == (1, 1, (inner.index,))
    assert (inner.header, inner.depth, inner.parent) == (2, 2, outer.index)
    assert outer.blocks == {1, 2, 3}
    assert nested().innermost_loop == (None, 0, 1, 0, None)


def test_unreachable_code_is_in_no_loop() -> None:
    text = NESTED.replace("\ts_endpgm", "\ts_endpgm\n.LBB0_9:\n\ts_branch .LBB0_2")
    outer, inner = isa.parse(text, "gfx942").functions["k"].loops
    assert outer.blocks == {1, 2, 3}
    assert inner.blocks == {2}


def test_liveness_through_the_loops() -> None:
    program = nested()
    live = isa.liveness(program)
    names = [set(register_names(bits & (VGPRS | SGPRS | AGPRS))) for bits in live.before]
    assert names[0] == {"v2", "s2"}
    assert names[3] == {"v0", "v2", "s0", "s1", "s2"}
    assert names[10] == {"v1"}
    assert live.after[10] & VGPRS == 0


def test_a_partial_write_keeps_the_old_value_live() -> None:
    text = """
	.text
	.type k,@function
k:
	v_mov_b16_e32 v1.h, v2.l
	v_mov_b32_e32 v3, v1
	s_endpgm
"""
    program = isa.parse(text, "gfx1100").functions["k"]
    assert {"v1", "v2"} <= set(register_names(isa.liveness(program).before[0]))


def test_definitions_reach_around_loops() -> None:
    program = nested()
    chains = isa.definitions(program)
    s1 = next(iter(chains.sources(4, program.instructions[4].reads & SGPRS)))
    assert chains.definitions(4, s1) == {1, 4}
    v2 = (program.instructions[3].operands[2]).bits.bit_length() - 1
    assert chains.definitions(3, v2) == {ENTRY}
    assert chains.uses(2) == {3}
    assert chains.uses(3) == {10}
    assert chains.block_of(8) == 3


FAR_JUMPS = {
    "difference": """
	s_add_u32 s4, s4, (.LBB0_3-.Lpost_getpc0)&4294967295
	s_addc_u32 s5, s5, (.LBB0_3-.Lpost_getpc0)>>32""",
    "relocation": """
	s_add_u32 s4, s4, .LBB0_3@rel32@lo+4
	s_addc_u32 s5, s5, .LBB0_3@rel32@hi+12""",
    "register": """
	s_add_i32 s6, .LBB0_3, 0x4
	s_add_u32 s4, s4, s6
	s_addc_u32 s5, s5, 0""",
}
"""What compilers and people write between `s_getpc_b64` and `s_setpc_b64`."""


@pytest.mark.parametrize("form", FAR_JUMPS)
def test_far_jumps_are_followed(form: str) -> None:
    text = f"""
	.text
	.type k,@function
k:
	s_cbranch_scc0 .LBB0_2
	s_getpc_b64 s[4:5]
.Lpost_getpc0:{FAR_JUMPS[form]}
	s_setpc_b64 s[4:5]
.LBB0_2:
	s_nop 0
.LBB0_3:
	s_endpgm
"""
    program = isa.parse(text, "gfx942").functions["k"]
    far = next(
        b for b in program.blocks if program.instructions[b.stop - 1].mnemonic == "s_setpc_b64"
    )
    assert [program.blocks[s].label for s in far.successors] == [".LBB0_3"]
