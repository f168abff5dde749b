"""Wait states of CDNA: the smallest gap that is accepted equals the published number.

Numbers: "Manually Inserted Wait States" of AMD's CDNA 2, 3 and 4 ISA documents and LLVM 23.1.1
GCNHazardRecognizer.cpp; those of matrix instructions were compared with gaps llc leaves.
"""

from __future__ import annotations

import pytest

from tests.analyze.support import program
from tests.analyze.sync.test_waits import lines
from wavecast.analyze.sync import hazards
from wavecast.arch.cost import matrix_table
from wavecast.isa import table

MOST = 21
MI100 = ("gfx908",)
UNIFIED = ("gfx90a", "gfx942", "gfx950")
ALL = MI100 + UNIFIED
LATER = ("gfx942", "gfx950")


def gap(target: str, producer: str, user: str) -> int:
    """Wait states the check wants between two instructions."""
    for states in range(MOST):
        between = [f"s_nop {states - 1}"] if states else []
        if not hazards(program(lines(producer, *between, user), target)):
            return states
    raise AssertionError(f"no gap is enough between {producer} and {user}")


PAIRS = (
    (ALL, "v_readlane_b32 s2, v0, 3", "buffer_load_dword v1, v2, s[0:3], 0 offen", 5),
    (ALL, "v_cmp_eq_u32_e64 s[2:3], v0, v1", "global_load_dword v1, v2, s[2:3]", 5),
    (ALL, "s_mov_b32 s2, 0", "global_load_dword v1, v2, s[2:3]", 0),
    (ALL, "v_mov_b32_e32 v1, 0", "v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf", 2),
    (ALL, "v_mov_b32_e32 v2, 0", "v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf", 0),
    (ALL, "v_cmpx_eq_u32_e64 s[0:1], v8, v9",
     "v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf", 5),
    (ALL, "v_cmp_eq_u32_e32 vcc, v0, v1", "v_div_fmas_f32 v2, v3, v4, v5", 4),
    (ALL, "v_readfirstlane_b32 s2, v0", "v_readlane_b32 s3, v1, s2", 4),
    (ALL, "v_readfirstlane_b32 s2, v0", "v_writelane_b32 v1, s5, s2", 4),
    (ALL, "s_mov_b32 m0, 0", "s_sendmsg sendmsg(MSG_INTERRUPT)", 1),
    (ALL, "s_mov_b32 m0, 0", "buffer_load_dword v1, s[0:3], 0 offen lds", 1),
    (ALL, "s_mov_b32 m0, 0", "ds_read_addtid_b32 v1", 1),
    (ALL, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 1", "s_getreg_b32 s0, hwreg(HW_REG_MODE)",
     2),
    (ALL, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 1",
     "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1", 2),
    (ALL, "s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS), 1", "s_getreg_b32 s0, hwreg(HW_REG_MODE)", 0),
    (ALL, "s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS), 1", "s_rfe_b64 s[0:1]", 1),
    (("gfx90a",), "global_store_dwordx4 v0, v[4:7], s[0:1]", "v_mov_b32_e32 v5, 0", 1),
    (LATER, "global_store_dwordx4 v0, v[4:7], s[0:1]", "v_mov_b32_e32 v5, 0", 2),
    (LATER, "global_store_dwordx4 v0, v[4:7], s[0:1]", "v_mov_b32_e32 v0, 0", 0),
    (ALL, "global_store_dwordx2 v0, v[4:5], s[0:1]", "v_mov_b32_e32 v5, 0", 0),
    (ALL, "buffer_store_dwordx4 v[4:7], v0, s[0:3], s9 offen", "v_mov_b32_e32 v5, 0", 0),
    (("gfx90a",), "v_exp_f32_e32 v1, v0", "v_add_f32_e32 v2, v1, v1", 0),
    (LATER, "v_exp_f32_e32 v1, v0", "v_add_f32_e32 v2, v1, v1", 1),
    (LATER, "v_exp_f32_e32 v1, v0", "v_log_f32_e32 v2, v1", 0),
    (LATER, "v_add_u16_sdwa v1, v0, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE",
     "v_mov_b32_e32 v3, v1", 1),
    (LATER, "v_add_u16_sdwa v1, v0, v2 dst_sel:DWORD dst_unused:UNUSED_PAD",
     "v_mov_b32_e32 v3, v1", 0),
    (LATER, "v_cvt_pk_fp8_f32 v1, v2, v3 op_sel:[0,0,1]", "v_mov_b32_e32 v3, v1", 1),
    (LATER, "v_cvt_pk_fp8_f32 v1, v2, v3", "v_mov_b32_e32 v3, v1", 0),
    (LATER, "v_cvt_sr_fp8_f32 v1, v2, v3 op_sel:[0,0,1,1]", "v_mov_b32_e32 v1, 0", 1),
    (LATER, "v_pk_mul_f16 v1, v2, v3 op_sel:[1,1] op_sel_hi:[0,0]", "v_mov_b32_e32 v3, v1", 0),
    (("gfx950",), "v_cvt_scalef32_pk_fp4_f32 v1, v2, v3, 1.0", "v_mov_b32_e32 v3, v1", 1),
    (LATER, "v_cmp_eq_u32_e32 vcc, v0, v1", "v_cndmask_b32_e32 v2, v3, v4, vcc", 2),
    (LATER, "v_readlane_b32 s2, v0, 3", "v_mov_b32_e32 v1, s2", 2),
    (("gfx90a",), "v_readlane_b32 s2, v0, 3", "v_mov_b32_e32 v1, s2", 0),
    (LATER, "v_mov_b32_e32 v1, 0", "v_readfirstlane_b32 s0, v1", 1),
    (LATER, "v_cmpx_eq_u32_e64 s[0:1], v8, v9", "v_readlane_b32 s2, v1, 3", 4),
    (("gfx950",), "v_mov_b32_e32 v1, 0", "v_permlane32_swap_b32_e32 v1, v2", 2),
    (("gfx950",), "v_cmpx_eq_u32_e64 s[0:1], v8, v9", "v_permlane16_swap_b32_e32 v1, v2", 4),
    (MI100, "v_dot2_f32_f16 v1, v2, v3, v4", "v_add_f32_e32 v5, 1.0, v1", 0),
    (MI100, "v_accvgpr_write_b32 a0, v5", "v_accvgpr_read_b32 v6, a0", 3),
    (MI100, "v_accvgpr_read_b32 v6, a0", "v_accvgpr_write_b32 a0, v5", 0),
    (MI100, "v_accvgpr_read_b32 v6, a0", "global_store_dword v0, v6, s[0:1]", 2),
    (MI100, "v_accvgpr_read_b32 v6, a0", "v_mov_b32_e32 v7, v6", 0),
    (UNIFIED, "v_dot2_f32_f16 v1, v2, v3, v4", "v_add_f32_e32 v5, 1.0, v1", 3),
    (UNIFIED, "v_dot2_f32_f16 v1, v2, v3, v4", "v_mov_b32_e32 v1, 0", 3),
    (UNIFIED, "v_dot2_f32_f16 v1, v2, v3, v4", "v_dot2_f32_f16 v1, v5, v6, v1", 0),
    (UNIFIED, "v_dot2_f32_f16 v1, v2, v3, v4", "v_dot2_f32_f16 v6, v1, v5, v6", 3),
    (UNIFIED, "v_dot2_f32_f16 v1, v2, v3, v4", "global_store_dword v0, v1, s[0:1]", 3),
)  # fmt: skip


@pytest.mark.parametrize(
    ("target", "producer", "user", "states"),
    [(target, *pair[1:]) for pair in PAIRS for target in pair[0]],
)
def test_pairs(target: str, producer: str, user: str, states: int) -> None:
    assert gap(target, producer, user) == states


C = "v[0:3]"
MATRIX = {
    # target: (instruction, passes, on the matrix core proper, registers of D)
    "gfx90a": (
        ("v_mfma_f32_4x4x4f16 {d}, v[16:17], v[18:19], {c}", 2, True, 4),
        ("v_mfma_f32_16x16x16f16 {d}, v[16:17], v[18:19], {c}", 8, True, 4),
        ("v_mfma_f32_32x32x8f16 {d}, v[16:17], v[18:19], {c}", 16, True, 16),
    ),
    "gfx942": (
        ("v_mfma_f32_4x4x4_16b_f16 {d}, v[16:17], v[18:19], {c}", 2, True, 4),
        ("v_mfma_f32_16x16x16_f16 {d}, v[16:17], v[18:19], {c}", 4, True, 4),
        ("v_mfma_f32_32x32x8_f16 {d}, v[16:17], v[18:19], {c}", 8, True, 16),
        ("v_mfma_f32_4x4x1_16b_f32 {d}, v16, v18, {c}", 2, False, 4),
        ("v_mfma_f32_16x16x4_f32 {d}, v16, v18, {c}", 8, False, 4),
        ("v_mfma_f32_32x32x2_f32 {d}, v16, v18, {c}", 16, False, 16),
    ),
    "gfx950": (
        ("v_mfma_f32_4x4x4_16b_f16 {d}, v[16:17], v[18:19], {c}", 2, True, 4),
        ("v_mfma_f32_16x16x32_f16 {d}, v[16:19], v[20:23], {c}", 4, True, 4),
        ("v_mfma_f32_16x16x128_f8f6f4 {d}, v[16:23], v[24:31], {c}", 8, True, 4),
        ("v_mfma_f32_16x16x128_f8f6f4 {d}, v[16:19], v[24:27], {c} cbsz:4 blgp:4", 4, True, 4),
        ("v_mfma_f32_16x16x4_f32 {d}, v16, v18, {c}", 8, False, 4),
    ),
}


def used(target: str, passes: int, xdl: bool) -> int:
    """Wait states until D may be read as anything but C, or overwritten."""
    if target == "gfx90a" or (xdl and (target == "gfx942" or passes == 2)):
        return passes + 3
    return passes + 4 if xdl else passes + 2


def accumulated(target: str, passes: int, xdl: bool) -> int:
    """Wait states until a matrix instruction of the same kind takes part of D as C."""
    if target == "gfx90a" or not xdl:
        return passes
    return passes + (1 if target == "gfx942" else 2)


@pytest.mark.parametrize(
    ("target", "form", "passes", "xdl", "size"),
    [(target, *row) for target, rows in MATRIX.items() for row in rows],
)
def test_matrix_results(target: str, form: str, passes: int, xdl: bool, size: int) -> None:
    last = f"v{40 + size - 1}"
    result, other, part = (
        f"v[40:{40 + size - 1}]",
        f"v[80:{80 + size - 1}]",
        f"v[42:{42 + size - 1}]",
    )
    producer = form.format(d=result, c=other)
    late = used(target, passes, xdl)
    assert gap(target, producer, f"v_mov_b32_e32 v9, {last}") == late
    assert gap(target, producer, f"v_mov_b32_e32 {last}, 0") == late
    assert gap(target, producer, f"global_store_dword v9, {last}, s[0:1]") == late
    assert gap(target, producer, f"ds_write_b32 v9, {last}") == late
    assert gap(target, producer, f"global_load_dword {last}, v9, s[0:1]") == late
    same = 2 if passes == 2 and target != "gfx90a" else 0
    assert gap(target, producer, form.format(d=result, c=result)) == same
    assert gap(target, producer, form.format(d=part, c=part)) == accumulated(target, passes, xdl)
    as_a = form.replace("v[16:", "v[40:").replace("v16", "v40").replace(":17]", ":41]")
    as_a = as_a.replace("v[40:19]", "v[40:43]").replace("v[40:23]", "v[40:47]")
    assert gap(target, producer, as_a.format(d=other, c=other)) == late
    over = 0 if target != "gfx90a" and not xdl else passes - 1
    assert gap(target, form.format(d=result, c=other), "v_mov_b32_e32 v80, 0") == over


@pytest.mark.parametrize(
    ("form", "passes", "size"),
    [
        ("v_mfma_f32_4x4x1f32 {d}, {a}, v1, {c}", 2, 4),
        ("v_mfma_f32_16x16x4f32 {d}, {a}, v1, {c}", 8, 4),
        ("v_mfma_f32_32x32x2f32 {d}, {a}, v1, {c}", 16, 16),
    ],
)
def test_separate_accumulation_registers(form: str, passes: int, size: int) -> None:
    """The numbers are what llc-22 leaves between these pairs on gfx908."""
    one, two = f"a[0:{size - 1}]", f"a[32:{31 + size}]"
    producer = form.format(d=one, a="v0", c=one)
    assert gap("gfx908", producer, "v_accvgpr_read_b32 v5, a0") == passes + 2
    assert gap("gfx908", producer, "v_accvgpr_write_b32 a0, v5") == passes - 1
    assert gap("gfx908", producer, producer) == 0
    shifted = f"a[2:{1 + size}]"
    assert gap("gfx908", producer, form.format(d=shifted, a="v0", c=shifted)) == 2
    assert gap("gfx908", producer, form.format(d=two, a="a0", c=two)) == 4
    late = form.format(d=one, a="v0", c=two)
    assert gap("gfx908", late, "v_accvgpr_write_b32 a32, v5") == max(0, passes - 3)
    assert gap("gfx908", "v_mov_b32_e32 v0, 0", producer) == 2
    assert gap("gfx908", "v_accvgpr_write_b32 a0, v5", producer) == 1
    copied = form.format(d=one, a="a40", c=one)
    assert gap("gfx908", "v_accvgpr_write_b32 a40, v5", copied) == 3
    assert gap("gfx908", "v_cmpx_eq_u32_e64 s[0:1], v8, v9", producer) == 4


@pytest.mark.parametrize("target", UNIFIED)
def test_double_precision(target: str) -> None:
    large = "v_mfma_f64_16x16x4_f64 {d}, v[16:17], v[18:19], {c}"
    small = "v_mfma_f64_4x4x4_4b_f64 {d}, v[16:17], v[18:19], {c}"
    if target == "gfx90a":
        large, small = large.replace("4_f64", "4f64"), small.replace("_4b_f64", "f64")
    one, wide = small.format(d="v[40:41]", c="v[60:61]"), large.format(d="v[40:47]", c="v[60:67]")
    assert gap(target, one, "v_mov_b32_e32 v9, v41") == 6
    assert gap(target, one, "global_store_dword v9, v41, s[0:1]") == 9
    assert gap(target, one, small.format(d="v[40:41]", c="v[40:41]")) == 4
    assert gap(target, wide, "v_mov_b32_e32 v9, v41") == (19 if target == "gfx950" else 11)
    assert gap(target, wide, "v_mov_b32_e32 v41, 0") == 11
    assert gap(target, wide, "global_store_dword v9, v41, s[0:1]") == 18
    assert gap(target, wide, large.format(d="v[40:47]", c="v[40:47]")) == 0
    overlapping = large.format(d="v[42:49]", c="v[42:49]")
    assert gap(target, wide, overlapping) == (17 if target == "gfx950" else 9)
    assert gap(target, one, "v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]") == 2


@pytest.mark.parametrize("target", UNIFIED)
def test_before_a_matrix_instruction(target: str) -> None:
    form = MATRIX[target][0][0].format(d="v[40:43]", c="v[40:43]")
    assert gap(target, "v_mov_b32_e32 v17, 0", form) == 2
    assert gap(target, "v_mov_b32_e32 v41, 0", form) == 2
    assert gap(target, "v_cmpx_eq_u32_e64 s[0:1], v8, v9", form) == 4


def test_a_double_precision_matrix_instruction_hides_a_write_from_memory() -> None:
    body = ["v_mov_b32_e32 v1, 0", "v_mfma_f64_4x4x4f64 v[40:41], v[16:17], v[18:19], v[60:61]"]
    store = "global_store_dword v0, v1, s[0:1]"
    assert len(hazards(program(lines(*body, store), "gfx90a"))) == 1
    assert not hazards(program(lines(*body, "s_nop 0", store), "gfx90a"))
    assert not hazards(program(lines(body[0], store), "gfx90a"))


def test_other_instructions_count_one_each_and_the_shortest_path_decides() -> None:
    body = lines(
        "v_readlane_b32 s2, v0, 3",
        "s_cbranch_scc1 .Lend",
        "s_nop 7",
        ".Lend:",
        "s_mov_b32 s9, 0",
        "s_mov_b32 s9, 0",
        "global_load_dword v1, v2, s[2:3]",
    )
    (violation,) = hazards(program(body, "gfx942"))
    assert (violation.cause, violation.instruction, violation.value) == (0, 5, 2)
    assert violation.remedy == "s_nop 1"
    assert "after 3 of 5 wait states" in violation.explanation


def test_a_hazard_around_a_loop() -> None:
    body = lines(
        ".Lloop:",
        "global_load_dword v1, v2, s[2:3]",
        "v_readlane_b32 s2, v0, 3",
        "s_cbranch_scc1 .Lloop",
    )
    assert [v.instruction for v in hazards(program(body, "gfx942"))] == [0]


@pytest.mark.parametrize("target", ALL)
def test_every_matrix_instruction_has_a_number_of_passes(target: str) -> None:
    names = [row.mnemonics[target] for row in table.rows() if row.form == "MFMA"
             and target in row.mnemonics]  # fmt: skip
    rows = matrix_table()[target]
    cycles = {key[0]: row.cycles for key, row in rows.items()}
    assert names
    assert {cycles[name] // 4 for name in names} <= {2, 4, 8, 16}
