"""Text to instructions: labels, modifiers, pairs, source lines, errors."""

from __future__ import annotations

import pytest

from wavecast import isa
from wavecast.errors import ParseError, UnknownOpcode
from wavecast.isa.instruction import OperandClass
from wavecast.isa.opcode import MemoryKind
from wavecast.isa.registers import register_names


def function(body: str, target: str = "gfx942", name: str = "k"):
    text = f"\t.text\n\t.type {name},@function\n{name}:\n{body}\n\ts_endpgm\n.Lfunc_end0:\n"
    return isa.parse(text, target, file="k.s").functions[name]


def one(line: str, target: str = "gfx942"):
    return function(f"\t{line}", target).instructions[0]


def reads(line: str, target: str = "gfx942") -> set[str]:
    return set(register_names(one(line, target).reads))


def writes(line: str, target: str = "gfx942") -> set[str]:
    return set(register_names(one(line, target).writes))


EXEC = {"exec_lo", "exec_hi"}


@pytest.mark.parametrize(
    ("line", "target", "expected_reads", "expected_writes"),
    [
        ("v_add_f32_e32 v1, v2, v3", "gfx942", {"v2", "v3"} | EXEC, {"v1"}),
        ("v_fmac_f32_e32 v1, s2, v3", "gfx942", {"v1", "s2", "v3"} | EXEC, {"v1"}),
        ("v_add_f32_e64 v1, -|v2|, 1.0", "gfx942", {"v2"} | EXEC, {"v1"}),
        ("s_add_u32 s0, s1, 0x10", "gfx942", {"s1"}, {"s0", "scc"}),
        ("s_addc_u32 s0, s1, s2", "gfx942", {"s1", "s2", "scc"}, {"s0", "scc"}),
        ("s_load_dwordx4 s[4:7], s[0:1], 0x10", "gfx942", {"s0", "s1"}, {"s4", "s5", "s6", "s7"}),
        ("s_and_saveexec_b64 s[2:3], vcc", "gfx942", {"vcc_lo", "vcc_hi"} | EXEC,
         {"s2", "s3", "scc"} | EXEC),
        ("s_and_saveexec_b32 s2, vcc_lo", "gfx1100", {"vcc_lo", "exec_lo"},
         {"s2", "scc", "exec_lo"}),
        ("v_cmp_eq_u32_e64 s[2:3], v1, v2", "gfx942", {"v1", "v2"} | EXEC, {"s2", "s3"}),
        ("v_cmp_eq_u32_e32 vcc_lo, v1, v2", "gfx1100", {"v1", "v2", "exec_lo"}, {"vcc_lo"}),
        ("v_div_fmas_f32 v1, v2, v3, v4", "gfx942",
         {"v2", "v3", "v4", "vcc_lo", "vcc_hi"} | EXEC, {"v1"}),
        ("ds_write_b64 v1, v[2:3] offset:8", "gfx942", {"v1", "v2", "v3"} | EXEC, set()),
        ("ds_read_b128 v[4:7], v1", "gfx942", {"v1"} | EXEC, {"v4", "v5", "v6", "v7"}),
        ("buffer_load_dwordx2 v[2:3], v1, s[8:11], 0 offen", "gfx942",
         {"v1", "s8", "s9", "s10", "s11"} | EXEC, {"v2", "v3"}),
        ("buffer_load_dword v1, s[8:11], 0 offen lds", "gfx942",
         {"v1", "m0", "s8", "s9", "s10", "s11"} | EXEC, set()),
        ("global_store_dword v[0:1], v2, off", "gfx942", {"v0", "v1", "v2"} | EXEC, set()),
        ("global_load_b32 v1, v2, s[4:5] offset:16", "gfx1100",
         {"v2", "s4", "s5", "exec_lo"}, {"v1"}),
        ("global_atomic_add v1, v2, s[4:5]", "gfx942", {"v1", "v2", "s4", "s5"} | EXEC, set()),
        ("global_atomic_add v0, v1, v2, s[4:5] sc0", "gfx942",
         {"v1", "v2", "s4", "s5"} | EXEC, {"v0"}),
        ("v_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[2:3], a[0:15]", "gfx942",
         {"v0", "v1", "v2", "v3", *(f"a{i}" for i in range(16))} | EXEC,
         {f"a{i}" for i in range(16)}),
        ("v_mov_b32_sdwa v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD",
         "gfx942", {"v1", "v2"} | EXEC, {"v1"}),
        ("v_mov_b32_dpp v1, v2 row_ror:8 row_mask:0xf bank_mask:0xf bound_ctrl:1",
         "gfx942", {"v2"} | EXEC, {"v1"}),
        ("v_mov_b32_dpp v1, v2 row_ror:8 row_mask:0xf bank_mask:0xf", "gfx942",
         {"v1", "v2"} | EXEC, {"v1"}),
        ("v_mov_b16_e32 v1.h, v2.l", "gfx1100", {"v1", "v2", "exec_lo"}, {"v1"}),
        ("v_readfirstlane_b32 s4, v1", "gfx942", {"v1"} | EXEC, {"s4"}),
        ("v_writelane_b32 v1, s2, 3", "gfx942", {"v1", "s2"}, {"v1"}),
    ],
)  # fmt: skip
def test_reads_and_writes(line, target, expected_reads, expected_writes) -> None:
    found = reads(line, target)
    if "v_writelane" in line:
        found -= EXEC
    assert found == expected_reads
    assert writes(line, target) == expected_writes


def test_a_pair_is_one_instruction_with_both_halves() -> None:
    line = "v_dual_mov_b32 v2, v4 :: v_dual_add_f32 v3, v5, v6"
    pair = one(line, "gfx1100")
    assert pair.second is not None
    assert set(register_names(pair.writes)) == {"v2", "v3"}
    assert set(register_names(pair.reads)) == {"v4", "v5", "v6", "exec_lo"}
    assert isa.print_instruction(pair.decoded) == line


def test_names_of_earlier_targets_are_understood() -> None:
    load = one("ds_read_b32 v1, v2 offset:4", "gfx1100")
    assert load.opcode is one("ds_load_b32 v1, v2 offset:4", "gfx1100").opcode
    assert isa.print_instruction(load.decoded) == "ds_read_b32 v1, v2 offset:4"


def test_registers_above_255_are_numbered_by_their_comment() -> None:
    move = one("v_dual_mov_b32 v2 /*v258*/, v4 :: v_dual_mov_b32 v3 /*v259*/, v5", "gfx1250")
    assert set(register_names(move.writes)) == {"v258", "v259"}
    load = one("ds_load_b64 v[0:1] /*v[256:257]*/, v2", "gfx1250")
    assert set(register_names(load.writes)) == {"v256", "v257"}
    half = one("v_lshlrev_b16 v4.h /*v260.h*/, 8, v2.l /*v258.l*/", "gfx1250")
    assert set(register_names(half.writes)) == {"v260"}
    assert set(register_names(half.reads)) >= {"v258"}
    assert [operand.half for operand in half.operands] == ["h", "", "l"]


def test_writes_of_a_half_do_not_kill() -> None:
    half = one("v_mov_b16_e32 v1.h, v2.l", "gfx1100")
    assert half.decoded.kills == 0
    full = one("v_mov_b32_e32 v1, v2", "gfx1100")
    assert register_names(full.decoded.kills) == ["v1"]


def test_lds_modifier_makes_a_load_to_lds() -> None:
    load = one("buffer_load_dword v1, s[8:11], 0 offen lds")
    assert load.memory is not None
    assert load.memory.kind is MemoryKind.LOAD_TO_LDS


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("s_waitcnt vmcnt(0) lgkmcnt(3)", "gfx942"),
        ("s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_1)", "gfx1100"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 2), 1", "gfx942"),
        ("s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)", "gfx1100"),
        ("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel_hi:[1,0,1]", "gfx942"),
        ("v_mov_b32_dpp v3, v3 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf bound_ctrl:1",
         "gfx942"),
        ("ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,\"00p0p\")", "gfx942"),
        ("global_load_dwordx4 v[0:3], v[4:5], off offset:-16 sc0 nt", "gfx942"),
        ("v_cndmask_b32_e64 v1, -v2, |v3|, s[4:5]", "gfx942"),
        ("buffer_wbl2 sc1", "gfx942"),
        ("s_wait_loadcnt_dscnt 0x103", "gfx1201"),
    ],
)  # fmt: skip
def test_prints_what_it_read(line: str, target: str) -> None:
    assert isa.print_instruction(one(line, target).decoded) == line


@pytest.mark.parametrize(
    ("line", "target", "expected"),
    [
        ("s_waitcnt vmcnt(2) lgkmcnt(0)", "gfx942", {"vmcnt": 2, "lgkmcnt": 0}),
        ("s_waitcnt 0xc07f", "gfx942", {"lgkmcnt": 0}),
        ("s_waitcnt 0x3f7", "gfx1100", {"vmcnt": 0}),
        ("s_waitcnt_vscnt null, 0x0", "gfx1100", {"vscnt": 0}),
        ("s_wait_loadcnt 0x4", "gfx1201", {"loadcnt": 4}),
        ("s_wait_loadcnt_dscnt 0x103", "gfx1201", {"loadcnt": 1, "dscnt": 3}),
        ("s_wait_alu depctr_va_sdst(0)", "gfx1201", {}),
        ("s_nop 0", "gfx942", {}),
    ],
)
def test_wait_counters(line: str, target: str, expected: dict[str, int]) -> None:
    assert isa.wait_counters(one(line, target), target) == expected


def test_source_lines_with_inlining() -> None:
    program = function(
        '\t.file 1 "/src" "kernel.py"\n\t.file 2 "/lib" "standard.py"\n'
        "\t.loc 1 7 0 ; kernel.py:7:0\n\ts_nop 0\n"
        "\t.loc 2 43 13 is_stmt 1 ; standard.py:43:13 @[ kernel.py:5:48 @[ kernel.py:9:2 ] ]\n"
        "\ts_nop 1\n\t.loc 1 0 0\n\ts_nop 2"
    )
    first, second, third = (i.location for i in program.instructions[:3])
    assert str(first) == "/src/kernel.py:7"
    assert str(second) == "/lib/standard.py:43"
    assert second.inlined_at.line == 5
    assert str(second.outermost) == "/src/kernel.py:9"
    assert third is None


def test_operands_of_matrix_instructions_are_as_wide_as_their_format() -> None:
    wide = (
        "v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], v[72:79], v[8:15], a[0:3], v1, v2 cbsz:0 blgp:0"
    )
    narrow = wide.replace("v[72:79], v[8:15]", "v[72:75], v[8:11]")
    narrow = narrow.replace("cbsz:0 blgp:0", "op_sel_hi:[0,0,0] cbsz:4 blgp:4")
    assert [operand.count for operand in one(wide, "gfx950").operands] == [4, 8, 8, 4, 1, 1]
    assert [operand.count for operand in one(narrow, "gfx950").operands] == [4, 4, 4, 4, 1, 1]


def test_operands_know_their_class() -> None:
    operands = one("v_fma_f32 v1, s2, -1, 0.5").operands
    assert [operand.kind for operand in operands] == [
        OperandClass.VGPR,
        OperandClass.SGPR,
        OperandClass.CONSTANT,
        OperandClass.CONSTANT,
    ]
    assert operands[2].value == -1
    assert operands[3].value == 0x3F000000


@pytest.mark.parametrize(
    ("line", "error", "says"),
    [
        (
            "v_ad_f32 v1, v2, v3",
            UnknownOpcode,
            r"k\.s:4: unknown instruction 'v_ad_f32'.*v_add_f32",
        ),
        ("v_add_f32_e32 v1, v2", ParseError, r"k\.s:4: .* has 2 operands, expected 3"),
        ("s_load_dword v4, s[0:1], 0x0", ParseError, r"k\.s:4: v4 cannot be this operand in "),
        ("global_load_dword s1, v[2:3], off", ParseError, r"s1 cannot be this operand in "),
        ("v_lshlrev_b64 v[2:3], 2, v0", ParseError, r"v0 is not 2 wide, in "),
        ("v_cmp_le_i32_e32 vcc, v[0:1], v0", ParseError, r"v\[0:1\] is not 1 wide, in "),
        ("v_add_f32_e32 v1, v2,", ParseError, "operand is missing"),
        ("v_mov_b32_e32 v9999, v2", ParseError, "no such register 'v9999'"),
        ("s_branch .LBB0_77", ParseError, "branch to unknown label"),
        ("ds_load_b128 v[0:3], v1", UnknownOpcode, "unknown instruction"),
    ],
)
def test_errors_name_kernel_and_line(line: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        one(line)
    assert "kernel k" in str(caught.value)


SEVERAL = """
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.file 1 "a.hip"
	.text
	.type first,@function
first:
	.loc 1 3 1
	s_nop 1
.LBB0_1:
	s_cbranch_scc0 .LBB0_1
	.file 2 "b.hip"
	s_endpgm
.Lfunc_end0:
	.section .rodata
second:
	.long 1
	.section .text.second
	.type .Lsecond,@function
.Lsecond: s_nop 2
	.loc 2 5 1
within:
	s_nop 3
	s_cbranch_scc0 within
	s_endpgm
.Lfunc_end1:
	.type "third",@function
"third":
	s_nop 4
	.loc 1 9 1
	s_endpgm
"""


@pytest.mark.parametrize("kernel", ["first", ".Lsecond", "third"])
def test_one_function_is_that_of_the_whole_text(kernel: str) -> None:
    """Lines, labels and source locations included."""
    whole = isa.parse(SEVERAL, "gfx942", file="k.s").functions[kernel]
    alone = isa.parse(SEVERAL, "gfx942", file="k.s", kernel=kernel).functions[kernel]
    assert len(alone.instructions) > 1
    lines, expected = (
        [(str(i), i.line, i.location) for i in program.instructions] for program in (alone, whole)
    )
    assert lines == expected
    assert [b.successors for b in alone.blocks] == [b.successors for b in whole.blocks]


def test_an_instruction_outside_a_function_is_an_error() -> None:
    with pytest.raises(ParseError, match="outside a function"):
        isa.parse("\t.text\n\tv_mov_b32_e32 v0, v1\n", "gfx942")


def test_registers_behind_a_selection_of_upper_ones_need_their_numbers() -> None:
    """The text of an operand is not its register there; LLVM says which in a comment."""
    text = "\t.text\n\t.type k,@function\nk:\n\ts_set_vgpr_msb 0x40\n\tv_mov_b32_e32 v1{}, 9\n"
    with pytest.raises(ParseError, match=r"code.s:4: s_set_vgpr_msb without the complete numbers"):
        isa.parse(text.format(""), "gfx1250", "code.s", is_source=True)
    module = isa.parse(text.format(" /*v257*/"), "gfx1250", "code.s", is_source=True)
    assert "v257" in module.functions["k"].instructions[1].decoded.text


ALIASES = """\
	.text
	.globl callee
	.type callee,@function
callee:
	.type ".Lcallee$local",@function
.Lcallee$local:
	s_nop 1
	s_setpc_b64 s[30:31]
.Lfunc_end0:
	.type kernel,@function
.Lkernel$local:
	.type .Lkernel$local,@function
; %bb.0:
kernel:                                 ; @kernel
	s_getpc_b64 s[4:5]
	s_add_u32 s4, s4, {name}@rel32@lo+4
	s_addc_u32 s5, s5, {name}@rel32@hi+12
	s_swappc_b64 s[30:31], s[4:5]
	s_endpgm
.Lfunc_end1:
	.section .rodata
	.amdhsa_kernel kernel
	.end_amdhsa_kernel
	.text
	.type empty,@function
empty:
.Lfunc_end2:
	.type other,@function
other:
	s_endpgm
	.type second,@function
	.set second, callee
	third = second
	.set first, last
	.set last, first
"""
"""Other names of functions: labels of LLVM's `dso_local` functions, aliases of LLVM IR. A function
without code is no other name of the one behind it."""


@pytest.mark.parametrize(
    "name", ["callee", ".Lcallee$local", '".Lcallee$local"', "second", "third"]
)
def test_other_names_of_a_function_are_the_function(name: str) -> None:
    whole = isa.parse(ALIASES.format(name=name), "gfx942", file="k.s")
    assert sorted(whole.functions) == ["callee", "other"]
    assert [i.line for i in whole.functions["callee"].instructions] == [7, 8]
    assert [i.line for i in whole.kernels["kernel"].program.instructions] == [15, 16, 17, 18, 19]
    linked = isa.parse(ALIASES.format(name=name), "gfx942", kernel="kernel", link=True)
    program = linked.kernels["kernel"].program
    assert len(program.instructions) == 5 + 2
    assert "callee@rel32@lo+4" in str(program.instructions[1])
