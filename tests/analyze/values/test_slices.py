"""Which instructions decisions and addresses depend on, and where lanes may be off."""

from __future__ import annotations

from tests.analyze.values.support import Kernel
from wavecast.analyze.values.masks import partial_lanes
from wavecast.analyze.values.slices import Slice, slices


def members(kernel: Kernel, which: Slice) -> list[str]:
    instructions = kernel.program.instructions
    return [i.decoded.text.split()[0] for i in instructions if which.member[i.index]]


def test_data_is_in_no_slice() -> None:
    body = """s_load_dwordx2 s[4:5], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
v_add_f32_e32 v2, 1.0, v3
v_mfma_f32_32x32x8_f16 v[16:31], v[4:5], v[6:7], v[16:31]
global_store_dword v1, v2, s[4:5]
s_cmp_lt_i32 s2, 5
s_cbranch_scc1 .LBB0_1
s_nop 0
.LBB0_1:"""
    kernel = Kernel(body, pointers=("x",))
    found = slices(kernel.program, kernel.descriptor)
    assert members(kernel, found.addresses) == ["s_load_dwordx2", "v_lshlrev_b32_e32"]
    assert members(kernel, found.decisions) == ["s_cmp_lt_i32"]


def test_a_decision_on_loaded_data_does_not_follow_its_address() -> None:
    body = """s_load_dwordx2 s[4:5], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
global_load_dword v2, v1, s[4:5]
v_readfirstlane_b32 s6, v2
s_cmp_lt_i32 s6, 5
s_cbranch_scc1 .LBB0_1
s_nop 0
.LBB0_1:"""
    kernel = Kernel(body, pointers=("x",))
    found = slices(kernel.program, kernel.descriptor)
    expected = ["global_load_dword", "v_readfirstlane_b32", "s_cmp_lt_i32"]
    assert members(kernel, found.decisions) == expected


MASKED = """v_mov_b32_e32 v1, 64
v_cmp_gt_u32_e32 vcc, 8, v0
s_and_saveexec_b64 s[4:5], vcc
v_mov_b32_e32 v1, 128
{inside}
s_or_b64 exec, exec, s[4:5]
{outside}"""


def test_lanes_that_were_off_keep_the_older_write() -> None:
    after = Kernel(MASKED.format(inside="s_nop 0", outside="ds_read_b32 v2, v1"))
    found = slices(after.program, after.descriptor).addresses
    assert members(after, found).count("v_mov_b32_e32") == 2
    within = Kernel(MASKED.format(inside="ds_read_b32 v2, v1", outside="s_nop 0"))
    found = slices(within.program, within.descriptor).addresses
    assert members(within, found).count("v_mov_b32_e32") == 1


def test_where_lanes_may_be_off() -> None:
    kernel = Kernel(MASKED.format(inside="s_nop 0", outside="s_nop 1"))
    texts = [i.decoded.text.split()[0] for i in kernel.program.instructions]
    partial = partial_lanes(kernel.program, 64)
    first, last = texts.index("s_and_saveexec_b64"), texts.index("s_or_b64")
    assert [bool(value) for value in partial] == [
        first < index <= last for index in range(len(texts))
    ]


def test_a_loop_that_switches_lanes_off_stays_partial() -> None:
    body = """.LBB0_1:
v_mov_b32_e32 v1, 0
v_cmp_gt_u32_e32 vcc, 8, v0
s_and_b64 exec, exec, vcc
s_cbranch_execnz .LBB0_1"""
    kernel = Kernel(body)
    partial = partial_lanes(kernel.program, 64)
    assert partial[0] == 1
