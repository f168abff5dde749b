"""Listings side by side: renumbered registers are no change, other operands are."""

from __future__ import annotations

from wavecast.benchmarking.diff.assembly import side_by_side
from wavecast.isa import parse
from wavecast.isa.instruction import Instruction

HEAD = """
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.text
	.type k,@function
k:
"""
TAIL = """
	s_endpgm
	.amdhsa_kernel k
		.amdhsa_next_free_vgpr 64
		.amdhsa_next_free_sgpr 32
		.amdhsa_accum_offset 64
	.end_amdhsa_kernel
"""
BODY = """
	global_load_dwordx2 v[2:3], v0, s[4:5]
	v_mov_b32_e32 v4, 1.0
	s_waitcnt vmcnt(0)
	v_fma_f32 v5, v2, v3, v4
	global_store_dword v0, v5, s[6:7]
"""


def code(body: str) -> tuple[Instruction, ...]:
    return parse(HEAD + body + TAIL, "gfx942").kernels["k"].program.instructions


def kinds(before: str, after: str) -> list[str]:
    return [row.kind for row in side_by_side(code(before), code(after))]


def test_equal_code_is_the_same() -> None:
    assert set(kinds(BODY, BODY)) == {"same"}


def test_renumbered_registers_are_no_change() -> None:
    renamed = """
	global_load_dwordx2 v[10:11], v7, s[14:15]
	v_mov_b32_e32 v2, 1.0
	s_waitcnt vmcnt(0)
	v_fma_f32 v2, v10, v11, v2
	global_store_dword v7, v2, s[6:7]
"""
    assert set(kinds(BODY, renamed)) == {"same"}


def test_another_source_of_an_operand_is_seen_once() -> None:
    swapped = BODY.replace("v5, v2, v3, v4", "v5, v3, v2, v4")
    assert kinds(BODY, swapped) == ["same", "same", "same", "operands", "same", "same"]


def test_a_register_from_outside_keeps_its_meaning() -> None:
    twice = "\tv_add_f32_e32 v5, v1, v1\n\tv_add_f32_e32 v6, v2, v2\n"
    other = "\tv_add_f32_e32 v5, v1, v1\n\tv_add_f32_e32 v6, v1, v1\n"
    assert kinds(twice, other) == ["same", "operands", "same"]
    assert kinds(other, twice) == ["same", "operands", "same"]


def test_what_replaces_an_instruction_stands_beside_it() -> None:
    wider = BODY.replace("s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(0) lgkmcnt(0)")
    rows = side_by_side(code(BODY), code(wider))
    (changed,) = [row for row in rows if row.kind == "changed"]
    assert (changed.before_text, changed.after_text) == (
        "s_waitcnt vmcnt(0)",
        "s_waitcnt vmcnt(0) lgkmcnt(0)",
    )
    assert sum(row.kind != "same" for row in rows) == 1


def test_an_instruction_more_is_new_and_nothing_else() -> None:
    more = BODY.replace("\ts_waitcnt", "\ts_nop 0\n\ts_waitcnt")
    assert [kind for kind in kinds(BODY, more) if kind != "same"] == ["new"]
    assert [kind for kind in kinds(more, BODY) if kind != "same"] == ["gone"]


def test_every_instruction_of_both_sides_is_in_a_row() -> None:
    shorter = "\ts_nop 0\n" + "".join(BODY.splitlines(keepends=True)[2:4])
    rows = side_by_side(code(BODY), code(shorter))
    assert [row.before for row in rows if row.before is not None] == list(range(6))
    assert [row.after for row in rows if row.after is not None] == list(range(4))
