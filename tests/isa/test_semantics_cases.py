"""Hand-computed cases from the instruction set guides; SCC and carries above all."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from wavecast.isa import semantics
from wavecast.isa.semantics import IntegerOps, LaneOps

OPS = IntegerOps()
TOP = 0x80000000
ALL = 0xFFFFFFFF


def _f(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def run(name: str, *inputs: int) -> tuple[object, ...]:
    return semantics.registry()[name].evaluate(OPS, *inputs)


CASES = [
    ("s_add_co_u32", (ALL, 1), (0, 1)),
    ("s_add_co_u32", (1, 2), (3, 0)),
    ("s_add_co_i32", (0x7FFFFFFF, 1), (TOP, 1)),
    ("s_add_co_i32", (ALL, 1), (0, 0)),
    ("s_sub_co_u32", (1, 2), (ALL, 1)),
    ("s_sub_co_i32", (TOP, 1), (0x7FFFFFFF, 1)),
    ("s_sub_co_i32", (1, 2), (ALL, 0)),
    ("s_add_co_ci_u32", (ALL, 0, 1), (0, 1)),
    ("s_sub_co_ci_u32", (0, 0, 1), (ALL, 1)),
    ("s_addk_co_i32", (5, 0xFFFF), (4, 0)),
    ("s_movk_i32", (0x8000,), (0xFFFF8000,)),
    ("s_mul_hi_u32", (ALL, ALL), (0xFFFFFFFE,)),
    ("s_mul_hi_i32", (ALL, ALL), (0,)),
    ("s_lshl2_add_u32", (0x40000000, 7), (7, 1)),
    ("s_abs_i32", (ALL,), (1, 1)),
    ("s_abs_i32", (0,), (0, 0)),
    ("s_min_i32", (ALL, 0), (ALL, 1)),
    ("s_min_u32", (ALL, 0), (0, 0)),
    ("s_max_i32", (ALL, 0), (0, 0)),
    ("s_and_b64", (0xF0, 0x0F), (0, 0)),
    ("s_and_not1_b32", (0xFF, 0x0F), (0xF0, 1)),
    ("s_lshl_b32", (1, 33), (2, 1)),
    ("s_lshr_b64", (1 << 40, 40), (1, 1)),
    ("s_ashr_i32", (TOP, 31), (ALL, 1)),
    ("s_bfe_u32", (0xABCD1234, 8 | 8 << 16), (0x12, 1)),
    ("s_bfe_i32", (0x80, 7 | 1 << 16), (ALL, 1)),
    ("s_bfe_u32", (0xABCD1234, 0), (0, 0)),
    ("s_bfe_u32", (0xABCD1234, 32 << 16), (0xABCD1234, 1)),
    ("s_bfe_u64", (0xFF00000000, 32 | 4 << 16), (0xF, 1)),
    ("s_bfm_b32", (4, 8), (0xF00,)),
    ("s_bcnt1_i32_b64", ((1 << 64) - 1,), (64, 1)),
    ("s_ctz_i32_b32", (8,), (3,)),
    ("s_ctz_i32_b32", (0,), (ALL,)),
    ("s_clz_i32_u32", (1,), (31,)),
    ("s_cls_i32", (0xFFFF0000,), (16,)),
    ("s_cls_i32", (ALL,), (ALL,)),
    ("s_brev_b32", (1,), (TOP,)),
    ("s_sext_i32_i8", (0x80,), (0xFFFFFF80,)),
    ("s_sext_i32_i16", (0x8000,), (0xFFFF8000,)),
    ("s_pack_lh_b32_b16", (0x11112222, 0x33334444), (0x33332222,)),
    ("s_bitcmp1_b32", (8, 3), (1,)),
    ("s_bitcmp0_b32", (8, 3), (0,)),
    ("s_bitset1_b32", (0, 35), (8,)),
    ("s_cselect_b32", (1, 2, 0), (2,)),
    ("s_cmp_lt_i32", (ALL, 0), (1,)),
    ("s_cmp_lt_u32", (ALL, 0), (0,)),
    ("s_cmpk_gt_i32", (0, 0xFFFF), (1,)),
    ("s_cmpk_gt_u32", (0, 0xFFFF), (0,)),
    ("s_and_saveexec_b64", (0xF0, 0x0F), (0x0F, 0, 0)),
    ("s_and_not1_saveexec_b32", (0xFF, 0x0F), (0x0F, 1, 0xF0)),
    ("s_or_saveexec_b64", (0xF0, 0x0F), (0x0F, 1, 0xFF)),
    ("s_and_not1_wrexec_b64", (0xFF, 0x0F), (0xF0, 1, 0xF0)),
    ("v_sub_nc_u32", (1, 2), (ALL,)),
    ("v_subrev_nc_u32", (1, 2), (1,)),
    ("v_add_co_u32", (ALL, 1), (0, 1)),
    ("v_subrev_co_u32", (1, 0), (ALL, 1)),
    ("v_subrev_co_ci_u32", (1, 2, 1), (0, 0)),
    ("v_lshlrev_b32", (4, 1), (16,)),
    ("v_lshlrev_b64", (33, 1), (1 << 33,)),
    ("v_ashrrev_i32", (31, TOP), (ALL,)),
    ("v_lshl_add_u32", (3, 2, 5), (17,)),
    ("v_add_lshl_u32", (3, 2, 5), (160,)),
    ("v_lshl_or_b32", (3, 4, 5), (0x35,)),
    ("v_and_or_b32", (0xFF, 0x0F, 0x30), (0x3F,)),
    ("v_xad_u32", (6, 3, 1), (6,)),
    ("v_lshl_add_u64", (1 << 40, 1, 3), ((1 << 41) + 3,)),
    ("v_bfi_b32", (0xFF00, 0x1234, 0x5678), (0x1278,)),
    ("v_bfe_u32", (0xABCD, 4, 8), (0xBC,)),
    ("v_bfe_i32", (0x80, 0, 8), (0xFFFFFF80,)),
    ("v_bfe_i32", (0x80, 0, 0), (0,)),
    ("v_alignbit_b32", (1, 0, 4), (0x10000000,)),
    ("v_alignbyte_b32", (0x11223344, 0x55667788, 1), (0x44556677,)),
    ("v_perm_b32", (0x11223344, 0x55667788, 0x07030C0D), (0x115500FF,)),
    ("v_perm_b32", (0x80000000, 0, 0x0B0A0908), (0xFF000000,)),
    ("v_mul_u32_u24", (0xFF000002, 3), (6,)),
    ("v_mul_i32_i24", (0x00FFFFFF, 3), (0xFFFFFFFD,)),
    ("v_mad_co_u64_u32", (ALL, ALL, 0xFFFFFFFFFFFFFFFF), (0xFFFFFFFE00000000, 1)),
    ("v_mad_co_i64_i32", (ALL, 5, 0), (0xFFFFFFFFFFFFFFFB, 0)),
    ("v_cndmask_b32", (1, 2, 1), (2,)),
    ("v_cmp_ne_u16", (0x10001, 0x20001), (0,)),
    ("v_med3_i32", (5, ALL, 3), (3,)),
    ("v_bcnt_u32_b32", (0xFF, 2), (10,)),
    ("v_clz_i32_u32", (0,), (ALL,)),
    ("v_lshrrev_b16", (20, 0xFFFF8000), (0x0800,)),
    ("v_ashrrev_i16", (4, 0x8000), (0xF800,)),
    ("v_sub_nc_u16", (1, 2), (0xFFFF,)),
    ("v_min_i16", (0x8000, 1), (0x8000,)),
    ("v_mad_i32_i16", (0xFFFF, 3, 10), (7,)),
    ("v_cvt_f32_u32", (3,), (_f(3.0),)),
    ("v_rcp_iflag_f32", (_f(4.0),), (_f(0.25),)),
    ("v_fmac_f32", (_f(1.0), _f(2.0), _f(3.0)), (_f(7.0),)),
    ("v_cmp_nlt_f32", (_f(float("nan")), 0), (1,)),
    ("v_cmp_u_f32", (_f(float("nan")), 0), (1,)),
    ("v_cmp_lg_f32", (_f(float("nan")), 0), (0,)),
]


@pytest.mark.parametrize(("name", "inputs", "expected"), CASES)
def test_case(name: str, inputs: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert run(name, *inputs) == expected


@pytest.mark.parametrize("table", [0x00, 0x54, 0x80, 0x96, 0xC0, 0xEC, 0xFE])
def test_boolean_of_three_follows_its_truth_table(table: int) -> None:
    a, b, c = 0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA  # every row, four times
    assert run("v_bitop3_b32", a, b, c, table) == (table * 0x01010101,)


def test_division_by_reciprocal_as_compilers_expand_it() -> None:
    """n // d by an f32 reciprocal, one Newton step and two corrections, as LLVM emits it."""
    for n, d in ((100, 7), (0xFFFFFFFF, 3), (12345678, 999), (5, 9)):
        (f,) = run("v_cvt_f32_u32", d)
        (f,) = semantics.registry()["v_rcp_iflag_f32"].evaluate(OPS, f)
        (f,) = semantics.registry()["v_mul_f32"].evaluate(OPS, 0x4F7FFFFE, f)
        (r,) = semantics.registry()["v_cvt_u32_f32"].evaluate(OPS, f)
        error = -d * r & ALL
        r = (r + (r * error >> 32)) & ALL
        q = n * r >> 32
        rest = n - q * d
        for _ in range(2):
            if rest >= d:
                q, rest = q + 1, rest - d
        assert q == n // d


def test_lane_operations() -> None:
    active = np.zeros(64, dtype=np.bool_)
    active[5:] = True
    ops = LaneOps(64, active)
    lanes = np.arange(64, dtype=np.uint32) * np.uint32(3)
    rows = semantics.registry()
    (first,) = rows["v_readfirstlane_b32"].evaluate(ops, lanes)
    assert first.tolist() == [15]
    (third,) = rows["v_readlane_b32"].evaluate(ops, lanes, ops.const(3, 32))
    assert third.tolist() == [9]
    (written,) = rows["v_writelane_b32"].evaluate(ops, lanes, ops.const(7, 32), ops.const(2, 32))
    assert written[:4].tolist() == [0, 3, 7, 9]


@pytest.mark.parametrize("lanes", [32, 64])
def test_mbcnt_numbers_the_lanes(lanes: int) -> None:
    ops = LaneOps(lanes)
    rows = semantics.registry()
    (low,) = rows["v_mbcnt_lo_u32_b32"].evaluate(ops, ops.ones(32), ops.zero(32))
    (both,) = rows["v_mbcnt_hi_u32_b32"].evaluate(ops, ops.ones(32), low)
    assert both.tolist() == list(range(lanes))
