"""The opcode table itself: what every row must satisfy, and the rows that are easy to get wrong."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from wavecast.errors import UnknownName
from wavecast.isa import table
from wavecast.isa.opcode import (
    VECTOR_MEMORY_FORMS,
    Control,
    MemoryForm,
    MemoryKind,
    OpcodeFlag,
    OperandAccess,
    OperandKind,
    OperandRole,
    Role,
)
from wavecast.isa.targets import TARGET_SETS, TARGETS

ROOT = Path(__file__).parents[2]
FACTS = ROOT.parent / "shared" / "facts"
needs_facts = pytest.mark.skipif(not FACTS.is_dir(), reason="needs ../shared/facts")

R, W, RW, RET = (
    OperandAccess.READ,
    OperandAccess.WRITE,
    OperandAccess.READ_WRITE,
    OperandAccess.RETURN,
)


def accesses(name: str) -> list[OperandAccess]:
    return [role.access for role in table.opcode(name).operands]


def test_cost_classes_are_the_documented_ones() -> None:
    text = (ROOT / "docs" / "system.md").read_text(encoding="utf-8")
    listed = re.search(r"## Cost classes\n\n`([^`]+)`", text)
    assert listed is not None
    assert {row.cost_class for row in table.rows()} <= set(listed[1].split())


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_one_mnemonic_differ_in_shape(target: str) -> None:
    """The parser tells them apart by the number of operands."""
    for mnemonic, rows in table.by_mnemonic(target).items():
        counts = [len(row.operands) for row in rows]
        assert len(set(counts)) == len(counts), mnemonic


@needs_facts
@pytest.mark.corpus
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_every_mnemonic_of_the_corpus_has_a_row(target: str) -> None:
    known = table.by_mnemonic(target)
    with (FACTS / "opcodes.csv").open(encoding="utf-8") as file:
        emitted = {row["base"] for row in csv.DictReader(file) if int(row[target])}
    assert emitted - known.keys() == set()


@needs_facts
@pytest.mark.corpus
def test_every_matrix_instruction_has_a_row_with_its_shape() -> None:
    with (FACTS / "mfma_wmma.csv").open(encoding="utf-8") as file:
        facts = [row for row in csv.DictReader(file) if row["gfx"] in TARGETS]
    for fact in facts:
        (row,) = table.by_mnemonic(fact["gfx"])[fact["mnemonic"]]
        shape = row.matrix
        assert shape is not None
        assert [shape.m, shape.n, shape.k, shape.blocks] == [
            int(fact[key]) for key in ("m", "n", "k", "blocks")
        ], row.name
        assert shape.sparse == (fact["sparse"] == "True")
        chosen_by_modifiers = "f8f6f4" in row.name
        if fact["wave"] == ("64" if fact["gfx"] in TARGET_SETS["gfx9"] else "32"):
            d, a, b = (role.dwords for role in row.operands[:3])
            assert d == int(fact["vgprs_cd"]), row.name
            if not chosen_by_modifiers:
                assert [a, b] == [int(fact["vgprs_a"]), int(fact["vgprs_b"])], row.name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("v_fmac_f32", [RW, R, R]),
        ("v_dot2c_f32_bf16", [RW, R, R]),
        ("v_mfma_f32_32x32x8_f16", [W, R, R, R]),
        ("v_smfmac_f32_16x16x32_f16", [RW, R, R, R]),
        ("v_swmmac_f32_16x16x32_f16", [RW, R, R, R]),
        ("v_swap_b32", [RW, RW]),
        ("v_permlane32_swap_b32", [RW, RW]),
        ("v_writelane_b32", [RW, R, R]),
        ("v_fma_mixhi_f16", [RW, R, R, R]),
        ("v_cvt_pk_fp8_f32", [RW, R, R]),
        ("ds_load_u16_d16_hi", [RW, R]),
        ("global_load_d16_b16", [RW, R, R]),
        ("v_div_scale_f32", [W, W, R, R, R]),
        ("v_add_co_ci_u32", [W, W, R, R, R]),
        ("s_cmov_b32", [RW, R]),
        ("s_addk_co_i32", [RW, R]),
        ("buffer_atomic_add_u32", [RET, R, R, R]),
        ("global_atomic_add_u32", [W, R, R, R]),
        ("ds_add_u32", [R, R]),
        ("ds_add_rtn_u32", [W, R, R]),
    ],
)
def test_access_of_operands(name: str, expected: list[OperandAccess]) -> None:
    assert accesses(name) == expected


@pytest.mark.parametrize(
    ("name", "reads", "writes"),
    [
        ("s_add_co_u32", set(), {"scc"}),
        ("s_add_co_ci_u32", {"scc"}, {"scc"}),
        ("s_cselect_b32", {"scc"}, set()),
        ("s_mov_b32", set(), set()),
        ("s_mul_i32", set(), set()),
        ("s_and_saveexec_b64", {"exec"}, {"exec", "scc"}),
        ("s_cbranch_vccz", {"vcc"}, set()),
        ("v_div_fmas_f32", {"vcc", "exec"}, set()),
        ("v_cmpx_eq_f32", {"exec"}, {"exec"}),
        ("v_readlane_b32", set(), set()),
        ("v_readfirstlane_b32", {"exec"}, set()),
        ("v_dual_cndmask_b32", {"exec", "vcc"}, set()),
        ("v_dual_cndmask_b32_mask", {"exec"}, set()),
        ("buffer_load_b32_lds", {"exec", "m0"}, set()),
        ("global_load_lds_dword", {"exec", "m0"}, set()),
        ("ds_load_b32", {"exec"}, set()),
        ("ds_load_addtid_b32", {"exec", "m0"}, set()),
    ],
)
def test_implicit_registers(name: str, reads: set[str], writes: set[str]) -> None:
    row = table.opcode(name)
    assert (set(row.implicit_reads), set(row.implicit_writes)) == (reads, writes)


def test_one_instruction_has_one_row_under_all_its_names() -> None:
    row = table.opcode("ds_load_b128")
    assert row.mnemonics["gfx942"] == "ds_read_b128"
    assert row.mnemonics["gfx1201"] == "ds_load_b128"
    mfma = table.opcode("v_mfma_f32_32x32x8_bf16")
    assert mfma.mnemonics["gfx90a"] == "v_mfma_f32_32x32x8bf16_1k"
    assert mfma.mnemonics["gfx950"] == "v_mfma_f32_32x32x8_bf16"


def test_cmpx_prints_its_mask_on_gfx9_only() -> None:
    (old,) = table.by_mnemonic("gfx942")["v_cmpx_gt_i32"]
    (new,) = table.by_mnemonic("gfx1100")["v_cmpx_gt_i32"]
    assert old.operands[0].kind is OperandKind.LANE_MASK
    assert len(new.operands) == 2


def test_a_load_with_the_lds_modifier_has_no_data_operand() -> None:
    rows = {len(row.operands): row for row in table.by_mnemonic("gfx950")["buffer_load_dwordx4"]}
    assert rows[4].memory is not None
    assert rows[4].memory.kind is MemoryKind.LOAD
    assert rows[3].memory is not None
    assert (rows[3].memory.kind, rows[3].memory.bytes) == (MemoryKind.LOAD_TO_LDS, 16)


def test_compare_and_swap_carries_two_values() -> None:
    data = table.opcode("global_atomic_cmpswap_b64").operands[2]
    assert data == OperandRole(OperandKind.VECTOR, R, "b64x2", 4)


def test_memory_rows_move_the_bytes_of_their_data() -> None:
    """Bytes per lane equal the width of the data operand, but for atomics and packed formats."""
    for row in table.rows():
        memory = row.memory
        if memory is None or memory.kind not in (MemoryKind.LOAD, MemoryKind.STORE):
            continue
        data = [role for role in row.operands if role.type and role.kind is not OperandKind.ADDRESS]
        if row.form == "SMEM":
            data = data[:1]
        elif row.form in VECTOR_MEMORY_FORMS or row.form == "DS":
            data = [role for role in data if role.kind is OperandKind.VECTOR]
        width = sum(role.dwords for role in data) * 4
        assert width - 4 < memory.bytes <= width, row.name


def test_flops_count_useful_operations() -> None:
    flops = {
        "v_add_f32": 1,
        "v_fma_f32": 2,
        "v_pk_fma_f32": 4,
        "v_pk_mul_f16": 2,
        "v_dot2_f32_f16": 4,
        "v_dual_fmac_f32": 2,
        "v_exp_f32": 1,
        "v_max_num_f32": 0,
        "v_cvt_f32_f16": 0,
        "v_add_nc_u32": 0,
        "v_dot4_i32_i8": 0,
    }
    assert {name: table.opcode(name).flops for name in flops} == flops
    matrix = table.opcode("v_mfma_f32_32x32x8_f16").matrix
    assert matrix is not None
    assert matrix.flops == 2 * 32 * 32 * 8


@pytest.mark.parametrize(
    ("name", "control", "role"),
    [
        ("s_branch", Control.BRANCH, Role.NONE),
        ("s_cbranch_scc1", Control.CONDITIONAL, Role.NONE),
        ("s_endpgm", Control.END, Role.NONE),
        ("s_swap_pc_i64", Control.CALL, Role.NONE),
        ("s_set_pc_i64", Control.INDIRECT, Role.NONE),
        ("s_waitcnt", Control.NONE, Role.WAIT),
        ("s_wait_asynccnt", Control.NONE, Role.WAIT),
        ("s_barrier_wait", Control.NONE, Role.BARRIER),
        ("s_delay_alu", Control.NONE, Role.HINT),
        ("s_nop", Control.NONE, Role.NOP),
        ("v_nop", Control.NONE, Role.NOP),
        ("s_sendmsg", Control.NONE, Role.MESSAGE),
        ("global_inv", Control.NONE, Role.CACHE),
        ("s_prefetch_inst", Control.NONE, Role.PREFETCH),
    ],
)
def test_controls_and_roles(name: str, control: Control, role: Role) -> None:
    row = table.opcode(name)
    assert (row.control, row.role) == (control, role)


def test_roles_without_a_result_write_no_vector_register() -> None:
    for row in table.rows():
        if row.role in (Role.WAIT, Role.HINT, Role.NOP, Role.CACHE, Role.PREFETCH):
            assert not any(role.access is not R for role in row.operands), row.name


def test_an_unknown_opcode_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="v_fma_f32"):
        table.opcode("v_fma_f23")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("v_x | =v:f32 | - | valu | -", "6 columns"),
        ("v_x | =q:f32 | - | valu | - | all", "bad operand"),
        ("v_x | =v:f3z | - | valu | - | all", "operand"),
        ("v_x | =v:f32 | <carry | valu | - | all", "implicit"),
        ("v_x | =v:f32 | - | valu() | - | all", "bad cost"),
        ("v_x | =v:f32 | - | valu | - | gfx7", "target set"),
        ("v_x | =v:f32 | - | valu | - | all gfx942=v_y", "named twice"),
        ("v_x | =v:f32 | - | valu | - | all !loud", "unknown flag"),
        ("v_x | =v:f32 | - | valu | - | all !arrive", "needs !barrier"),
        ("v_x | =v:f32 | - | valu | - | all !setreg", "writes MODE"),
        ("v_x | =v:f32 | - | valu | - | all !m0_source", "reads M0"),
        ("v_x | =v:f32 | - | valu | - | all !nop=vmcnt[5:0]", "only a wait"),
        ("s_x | imm | - | wait | - | all !wait=vmcnt[0:5]", "bad bits"),
        ("s_x | imm | - | wait | - | all !wait=vmcnt(5)", "bad counters"),
        ("ds_x | v:b32 | - | lds_load(lds load 4 upside_down) | - | all", "unknown word"),
        ("ds_x | v:b32 | - | lds_load(lds load 4 add) | - | all", "for atomics"),
        ("ds_x | v:b32 | - | lds_load(lds load 4 swizzle) | - | all", "for permutes"),
        ("ds_x | v:b32 | - | lds_atomic(lds atomic 4 add or) | - | all", "given twice"),
    ],
)
def test_a_row_that_breaks_the_format_is_refused(line: str, message: str) -> None:
    with pytest.raises(table.TableError, match=message):
        table._row("VOP1", line, "here:1")


def test_a_wait_has_the_fields_of_its_immediate() -> None:
    """LLVM AMDGPUBaseInfo.cpp, getVmcntBitShiftLo: vmcnt of gfx9 is in two parts."""
    vmcnt = table.opcode("s_waitcnt_gfx9").waits[0]
    assert (vmcnt.counter, vmcnt.parts, vmcnt.ones) == ("vmcnt", ((0, 4), (14, 2)), 63)
    assert vmcnt.value(0xC00F) == 63
    assert vmcnt.value(0x8003) == 0x23
    loads, lds = table.opcode("s_wait_loadcnt_dscnt").waits
    assert (loads.value(0x0305), lds.value(0x0305)) == (3, 5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ds_load_2addr_stride64_b64", MemoryForm(offsets=2, stride=64)),
        ("ds_cmpstore_b32", MemoryForm(operation="cmpswap")),
        ("buffer_atomic_max_num_f32", MemoryForm(operation="max_num")),
        ("global_load_d16_hi_b16", MemoryForm(high=True)),
        ("ds_bpermute_b32", MemoryForm(exchange="bpermute")),
        ("buffer_load_i8_lds", MemoryForm(sign_extended=True)),
        ("global_load_b128", MemoryForm()),
    ],
)
def test_form_of_memory_rows(name: str, expected: MemoryForm) -> None:
    assert table.opcode(name).memory_form == expected


def test_every_atomic_names_its_operation() -> None:
    """Those without one have no meaning in the emulator."""
    missing = {
        row.name
        for row in table.rows()
        if row.memory is not None
        and row.memory.kind is MemoryKind.ATOMIC
        and not row.memory_form.operation
    }
    assert missing == {
        "ds_condxchg32_rtn_b64",
        "ds_wrap_rtn_b32",
    }


def test_every_flag_is_used() -> None:
    assert {flag for row in table.rows() for flag in row.flags} == set(OpcodeFlag)
