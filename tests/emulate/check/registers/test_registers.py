"""Planted reads of registers nothing has written, one kind each, and code that only looks like it.

In every kernel v5, v6, s30, s31 and a3 are written by nobody; the emulator's registers start as
zeros, so that the kernels run to their end.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.check.support import checked, of_kind
from tests.emulate.memory_support import lanes_of, masked, whole
from wavecast.emulate.reports import Kind, Report

_ALL = tuple(range(64))
_STORE = "global_store_dword v1, {}, s[8:9]\n"


def _found(body: str, target: str = "gfx942", lds: int = 0) -> list[Report]:
    """Reports of undefined registers; the body may store to 4 KiB at s[8:9]."""
    wait = "s_waitcnt lgkmcnt(0)\n" if not target.startswith("gfx12") else "s_wait_kmcnt 0x0\n"
    reports = checked(target, wait + body, np.zeros(1024, np.uint32), lds=lds)
    return of_kind(reports, Kind.UNINITIALISED_REGISTER)


def _one(body: str, text: str, target: str = "gfx942", lds: int = 0) -> Report:
    """The only report, which is at the instruction that starts with `text`."""
    (report,) = _found(body, target, lds)
    assert report.text.startswith(text)
    return report


def test_address() -> None:
    report = _one("global_load_dword v2, v5, s[8:9]\n", "global_load")
    assert report.message == "uses v5, which nothing has written in these lanes"
    assert report.lanes == _ALL


def test_stored_data() -> None:
    assert "v5" in _one(_STORE.format("v5"), "global_store").message


@pytest.mark.parametrize("target", ["gfx90a", "gfx950", "gfx1100", "gfx1201"])
def test_stored_data_on_other_targets(target: str) -> None:
    store = "global_store_dword" if target.startswith("gfx9") else "global_store_b32"
    report = _one(f"{store} v1, v5, s[8:9]\n", "global_store", target)
    assert len(report.lanes) == lanes_of(target)


def test_it_is_reported_once() -> None:
    _one(_STORE.format("v5") * 3, "global_store")


def test_arithmetic_carries_it_on() -> None:
    body = "v_mov_b32_e32 v2, v5\nv_add_f32_e32 v3, v1, v2\nv_pk_mul_f32 v[8:9], v[2:3], v[2:3]\n"
    assert "v9" in _one(body + _STORE.format("v9"), "global_store").message


def test_what_nobody_uses_is_no_error() -> None:
    assert not _found("v_add_u32_e32 v2, v5, v6\ns_add_u32 s20, s30, s31\n" + _STORE.format("v1"))


def test_branch() -> None:
    body = "v_cmp_eq_u32_e32 vcc, 0, v5\ns_cbranch_vccz .LEND\n" + _STORE.format("v1") + ".LEND:\n"
    _one(body, "s_cbranch_vccz")


def test_branch_that_a_defined_lane_decides() -> None:
    body = (
        masked("gfx942", 1) + "v_mov_b32_e32 v5, 0\n" + whole("gfx942")
        + "v_cmp_eq_u32_e32 vcc, 0, v5\ns_cbranch_vccz .LEND\n" + _STORE.format("v1") + ".LEND:\n"
    )  # fmt: skip
    assert not _found(body)


def test_scalar_condition() -> None:
    _one("s_cmp_lt_u32 s30, 7\ns_cbranch_scc0 .LEND\ns_nop 0\n.LEND:\n", "s_cbranch_scc0")


def test_exec() -> None:
    _one("s_and_saveexec_b64 s[20:21], s[30:31]\n", "s_and_saveexec")
    _one("v_cmpx_eq_u32_e32 0, v5\n", "v_cmpx", "gfx1100")


def test_scalar_address() -> None:
    body = "s_add_u32 s20, s8, s30\ns_addc_u32 s21, s9, 0\n"
    assert "s20" in _one(body + "s_load_dword s22, s[20:21], 0x0\n", "s_load_dword").message
    assert "s20" in _one(body + "global_load_dword v2, v1, s[20:21]\n", "global_load").message


def test_bits_that_are_masked_out() -> None:
    body = "s_and_b32 s20, s30, 0\ns_or_b32 s20, s8, s20\ns_mov_b32 s21, s9\n"
    assert not _found(body + "global_load_dword v2, v1, s[20:21]\n")
    body = "s_lshr_b32 s20, s30, 16\ns_pack_ll_b32_b16 s20, 0, s20\n"
    branch = "s_cmp_eq_u32 s20, {}\ns_cbranch_scc0 .LEND\n.LEND:\n"
    _one(body + branch.format(0), "s_cbranch")
    assert not _found(body + branch.format(9))
    assert not _found(body + "s_and_b32 s20, s20, 0xffff\n" + branch.format(0))


def test_lanes_that_were_masked_off() -> None:
    target = "gfx942"
    body = masked(target, 0xFFFF) + "v_mov_b32_e32 v5, 0\n" + whole(target) + _STORE.format("v5")
    assert _one(body, "global_store").lanes == tuple(range(16, 64))


def test_lanes_of_a_condition() -> None:
    body = (
        "v_cmp_gt_u32_e32 vcc, 20, v0\ns_and_saveexec_b64 s[20:21], vcc\n{}"
        "s_or_b64 exec, exec, s[20:21]\nv_add_u32_e32 v6, 1, v5\n{}" + _STORE.format("v6")
    )
    load = "v_mov_b32_e32 v5, 3\n"
    assert _one(body.format(load, ""), "global_store").lanes == tuple(range(20, 64))
    assert not _found(body.format(load, "s_and_b64 exec, exec, vcc\n"))


def test_both_sides_of_a_condition() -> None:
    body = (
        "v_cmp_gt_u32_e32 vcc, 20, v0\ns_and_saveexec_b64 s[20:21], vcc\n"
        "s_xor_b64 s[20:21], exec, s[20:21]\ns_cbranch_execz .LELSE\nv_mov_b32_e32 v5, 3\n"
        ".LELSE:\ns_andn2_saveexec_b64 s[20:21], s[20:21]\ns_cbranch_execz .LJOIN\n{}"
        ".LJOIN:\ns_or_b64 exec, exec, s[20:21]\n" + _STORE.format("v5")
    )
    assert not _found(body.format("v_mov_b32_e32 v5, 4\n"))
    assert _one(body.format("s_nop 0\n"), "global_store").lanes == tuple(range(20, 64))


def test_a_loop_that_writes_later() -> None:
    body = (
        "s_mov_b32 s20, 0\n.LLOOP:\n" + _STORE.format("v5") + "v_mov_b32_e32 v5, v1\n"
        "s_add_u32 s20, s20, 1\ns_cmp_lt_u32 s20, 3\ns_cbranch_scc1 .LLOOP\n"
    )
    assert _one(body, "global_store").count == 1


def test_halves() -> None:
    load = "global_load_short_d16 v5, v1, s[8:9]\n"
    assert not _found(load + "global_store_short v1, v5, s[8:9]\n")
    _one(load + "global_store_short_d16_hi v1, v5, s[8:9]\n", "global_store_short_d16_hi")
    _one(load + _STORE.format("v5"), "global_store_dword")
    assert not _found(load + "v_and_b32_e32 v5, 0xffff, v5\n" + _STORE.format("v5"))
    upper = "global_load_short_d16_hi v5, v1, s[8:9]\n"
    assert not _found(load + upper + _STORE.format("v5"))


def test_halves_of_registers_in_16_bit_code() -> None:
    body = "v_mov_b16_e32 v5.l, v1.l\n{}global_store_b32 v1, v5, s[8:9]\n"
    _one(body.format(""), "global_store", "gfx1100")
    assert not _found(body.format("v_mov_b16_e32 v5.h, v1.h\n"), "gfx1100")


def test_bytes_picked_by_a_register() -> None:
    body = "s_mov_b32 s20, {}\nv_perm_b32 v2, v1, v5, s20\n" + _STORE.format("v2")
    assert not _found(body.format("0x07060504"))
    _one(body.format("0x07060100"), "global_store")


def test_bytes_of_a_block_of_small_floats() -> None:
    """A conversion of eight values for one of them; the other bytes are not stored."""
    body = (
        "v_mov_b32_e32 v{}, 0\nv_cvt_scalef32_pk8_bf8_f32 v[4:5], v[8:15], 1.0\n"
        "s_wait_alu depctr_va_vdst(0)\n{} v1, v{}, s[8:9]\n"
    )
    assert not _found(body.format(8, "global_store_b8", 4), "gfx1250")
    _one(body.format(9, "global_store_b8", 4), "global_store_b8", "gfx1250")
    _one(body.format(8, "global_store_b8", 5), "global_store_b8", "gfx1250")
    assert not _found(body.format(12, "global_store_b8", 5), "gfx1250")


def test_selection() -> None:
    body = "v_cmp_gt_u32_e32 vcc, {}, v0\nv_cndmask_b32_e32 v2, v5, v1, vcc\n" + _STORE.format("v2")
    assert not _found(body.format("0x80"))
    assert _one(body.format("40"), "global_store").lanes == tuple(range(40, 64))


def test_accumulation_registers() -> None:
    _one("v_accvgpr_read_b32 v2, a3\n" + _STORE.format("v2"), "global_store")
    body = "v_accvgpr_write_b32 a3, v1\nv_accvgpr_read_b32 v2, a3\n"
    assert not _found(body + _STORE.format("v2"))


def test_matrix_instructions() -> None:
    defined = "".join(f"v_mov_b32_e32 v{index}, 0\n" for index in range(8, 16))
    body = defined + "v_mfma_f32_4x4x4_16b_f16 v[16:19], {}, v[10:11], {}\n" + _STORE.format("v17")
    assert not _found(body.format("v[8:9]", "v[12:15]"))
    _one(body.format("v[4:5]", "v[12:15]"), "global_store")
    report = _one(body.format("v[8:9]", "v[4:7]"), "global_store")
    assert report.lanes == _ALL
    whole_c = defined + "v_mfma_f32_4x4x4_16b_f16 v[16:19], v[8:9], v[10:11], 0\n"
    assert not _found(whole_c + _STORE.format("v17"))


def test_what_goes_to_lds() -> None:
    _one("ds_write_b32 v1, v5\n", "ds_write", lds=256)


def test_one_lane_to_a_scalar() -> None:
    body = "v_readfirstlane_b32 s20, {}\ns_cmp_eq_u32 s20, 0\ns_cbranch_scc0 .LEND\n.LEND:\n"
    _one(body.format("v5"), "s_cbranch")
    first = masked("gfx942", 1) + "v_mov_b32_e32 v5, 0\n" + whole("gfx942")
    assert not _found(first + body.format("v5"))


def test_registers_spilled_to_lanes() -> None:
    body = (
        "v_writelane_b32 v5, s8, 3\nv_readlane_b32 s20, v5, {}\ns_mov_b32 s21, s9\n"
        "s_and_b32 s20, s20, s8\ns_or_b32 s20, s20, s8\nglobal_load_dword v2, v1, s[20:21]\n"
    )
    assert not _found(body.format(3))
    _one("v_writelane_b32 v5, s8, 3\nv_readlane_b32 s20, v5, 4\ns_cmp_eq_u32 s20, 0\n"
         "s_cbranch_scc0 .LEND\n.LEND:\n", "s_cbranch")  # fmt: skip


def test_lanes_moved_within_rows() -> None:
    body = "v_mov_b32_dpp v5, v1 row_shr:1 row_mask:0xf bank_mask:0xf {}\n" + _STORE.format("v5")
    assert _one(body.format(""), "global_store").lanes == (0, 16, 32, 48)
    assert not _found(body.format("bound_ctrl:0"))
    part = masked("gfx942", 1 << 5) + "v_mov_b32_e32 v6, 0\n" + whole("gfx942")
    body = "v_mov_b32_dpp v2, v6 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0\n"
    report = _one(part + body + _STORE.format("v2"), "global_store")
    assert report.lanes == tuple(lane for lane in _ALL if lane % 16 and lane != 6)


def test_lanes_exchanged() -> None:
    part = masked("gfx942", 1 << 9) + "v_mov_b32_e32 v5, 0\n" + whole("gfx942")
    for exchange, source in (
        ("v_mov_b32_e32 v2, 36\nds_bpermute_b32 v3, v2, v5\n", [9] * 64),
        ("v_xor_b32_e32 v2, 4, v1\nds_bpermute_b32 v3, v2, v5\n", [lane ^ 1 for lane in _ALL]),
        ("ds_swizzle_b32 v3, v5 offset:0x041F\n", [lane ^ 1 for lane in _ALL]),
    ):
        undefined = tuple(lane for lane in _ALL if source[lane] != 9)
        body = part + exchange + "s_waitcnt lgkmcnt(0)\n" + _STORE.format("v3")
        assert [report.lanes for report in _found(body)] == ([undefined] if undefined else [])


def test_pairs_read_before_they_write() -> None:
    body = "v_dual_mov_b32 v4, v5 :: v_dual_mov_b32 v5, v4\nglobal_store_b32 v1, v{}, s[8:9]\n"
    start = "v_mov_b32_e32 v4, 0\n"
    _one(start + body.format(4), "global_store", "gfx1100")
    assert not _found(start + body.format(5), "gfx1100")


def test_it_survives_a_barrier() -> None:
    _one("s_barrier\n" + _STORE.format("v5"), "global_store")
    target = "gfx942"
    part = masked(target, 1) + "v_mov_b32_e32 v5, 0\n" + whole(target) + "s_barrier\n"
    assert _one(part + _STORE.format("v5"), "global_store").lanes == tuple(range(1, 64))


def test_every_wave_and_workgroup_starts_anew() -> None:
    body = "s_waitcnt lgkmcnt(0)\n" + _STORE.format("v5")
    found = checked("gfx942", body, np.zeros(1024, np.uint32), threads=128, groups=3)
    (report,) = of_kind(found, Kind.UNINITIALISED_REGISTER)
    assert report.count == 6
