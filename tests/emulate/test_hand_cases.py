"""Instructions worked out by hand, a few per family, through native code.

Each row: target, instructions, expected v4 (and v5). v2 and v3 hold the two values given. Source:
AMD instruction set architecture guides of CDNA3, RDNA3 and RDNA4, the entry of the instruction.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.emulate.memory_support import lanes_of, run

GFX9, GFX11, GFX12 = "gfx942", "gfx1100", "gfx1201"
Case = tuple[str, str, int, int, int]


def _f(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def _lane_zero(target: str, body: str, first: int, second: int) -> tuple[int, int]:
    """v4 and v5 of lane 0."""
    out = np.zeros(128, np.uint32)
    store = "dwordx2" if target.startswith("gfx9") else "b64"
    text = (
        f"\tv_mov_b32_e32 v2, {first:#x}\n\tv_mov_b32_e32 v3, {second:#x}\n"
        f"\tv_mov_b32_e32 v4, 0\n\tv_mov_b32_e32 v5, 0\n\t{body}\n"
        f"\tv_lshlrev_b32_e32 v1, 1, v1\n\tglobal_store_{store} v1, v[4:5], s[8:9]\n"
    )
    run(target, text, out)
    return int(out[0]), int(out[1])


INTEGERS: list[Case] = [
    (GFX9, "v_bfe_u32 v4, v2, 4, 8", 0xABCDE123, 0, 0x12),
    (GFX9, "v_bfe_i32 v4, v2, 4, 8", 0xABCDEF23, 0, 0xFFFFFFF2),
    (GFX9, "v_bfe_u32 v4, v2, 36, 8", 0xABCDE123, 0, 0x12),  # the offset is taken modulo 32
    (GFX9, "v_bfi_b32 v4, v2, v3, -1", 0x0000FFFF, 0x12345678, 0xFFFF5678),
    (GFX11, "v_bfm_b32 v4, 4, v2", 8, 0, 0xF00),
    (GFX9, "v_alignbit_b32 v4, v2, v3, 8", 0x11223344, 0x55667788, 0x44556677),
    (GFX9, "v_alignbyte_b32 v4, v2, v3, 3", 0x11223344, 0x55667788, 0x22334455),
    (GFX11, "v_perm_b32 v4, v2, v3, 0x070c0100", 0x11223344, 0x55667788, 0x11007788),
    (GFX9, "v_sad_u8 v4, v2, v3, 5", 0x01020304, 0x04030201, 13),
    (GFX11, "v_msad_u8 v4, v2, v3, 5", 0x01020304, 0x04030001, 5 + 3 + 1 + 3),
    (GFX9, "v_mad_u32_u24 v4, v2, v3, 7", 0xFF000003, 0x01000005, 22),
    (GFX9, "v_mul_hi_u32 v4, v2, v3", 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE),
    (GFX9, "v_mul_hi_i32 v4, v2, v3", 0xFFFFFFFF, 0xFFFFFFFF, 0),
    (GFX9, "v_lshl_add_u32 v4, v2, 4, v3", 0x10, 5, 0x105),
    (GFX9, "v_xad_u32 v4, v2, -1, v3", 0xFFFFFFF0, 1, 0x10),
    (GFX12, "v_add3_u32 v4, v2, v3, 1", 0xFFFFFFFF, 2, 2),
    (GFX9, "v_ffbh_u32_e32 v4, v2", 0x00010000, 0, 15),
    (GFX9, "v_ffbh_u32_e32 v4, v2", 0, 0, 0xFFFFFFFF),
    (GFX11, "v_cls_i32_e32 v4, v2", 0xFFFF0000, 0, 16),
    (GFX11, "v_ctz_i32_b32_e32 v4, v2", 0x80, 0, 7),
    (GFX9, "v_bcnt_u32_b32 v4, v2, v3", 0xF0F0, 100, 108),
    (GFX9, "v_med3_i32 v4, v2, v3, 0", 0xFFFFFFFF, 7, 0),
    (GFX9, "v_sub_u32_e64 v4, v2, v3 clamp", 1, 2, 0),
    (GFX9, "v_add_i32 v4, v2, v3 clamp", 0x7FFFFFFF, 1, 0x7FFFFFFF),
    (GFX9, "v_lerp_u8 v4, v2, v3, 0x01000100", 0x01010101, 0x02020202, 0x02010201),
]

WIDE: list[tuple[str, str, int, int, int, int]] = [
    (GFX9, "v_mad_u64_u32 v[4:5], vcc, v2, v3, 1", 0xFFFFFFFF, 0xFFFFFFFF, 2, 0xFFFFFFFE),
    (GFX9, "v_lshlrev_b64 v[4:5], 33, v[2:3]", 1, 0, 0, 2),
    (GFX9, "v_ashrrev_i64 v[4:5], 4, v[2:3]", 0, 0x80000000, 0, 0xF8000000),
    (GFX9, "v_add_co_u32_e32 v4, vcc, v2, v3\n\tv_addc_co_u32_e32 v5, vcc, v5, v5, vcc",
     0xFFFFFFFF, 2, 1, 1),
    (GFX9, "v_sub_co_u32_e32 v4, vcc, v2, v3\n\tv_cndmask_b32_e64 v5, 0, 1, vcc", 1, 2,
     0xFFFFFFFF, 1),
    (GFX11, "v_dual_mov_b32 v4, v2 :: v_dual_add_f32 v5, v3, v3", 9, _f(1.5), 9, _f(3.0)),
    (GFX11, "v_dual_mov_b32 v2, v3 :: v_dual_mov_b32 v3, v2\n\tv_mov_b32_e32 v4, v2\n"
     "\tv_mov_b32_e32 v5, v3", 1, 2, 2, 1),
    (GFX9, "v_swap_b32 v2, v3\n\tv_mov_b32_e32 v4, v2\n\tv_mov_b32_e32 v5, v3", 1, 2, 2, 1),
]  # fmt: skip

FLOATS: list[Case] = [
    (GFX9, "v_add_f32_e64 v4, |v2|, -v3", _f(-2.0), _f(0.5), _f(1.5)),
    (GFX9, "v_add_f32_e64 v4, v2, v3 clamp", _f(2.0), _f(0.5), _f(1.0)),
    (GFX9, "v_add_f32_e64 v4, v2, v3 clamp", 0x7FC00000, _f(0.5), 0),
    (GFX9, "v_mul_f32_e64 v4, v2, v3 mul:4", _f(1.5), _f(2.0), _f(12.0)),
    (GFX9, "v_mul_f32_e64 v4, v2, v3 div:2", _f(1.5), _f(2.0), _f(1.5)),
    (GFX9, "v_ldexp_f32 v4, v2, v3", _f(1.5), 3, _f(12.0)),
    (GFX9, "v_frexp_mant_f32_e32 v4, v2", _f(12.0), 0, _f(0.75)),
    (GFX9, "v_frexp_exp_i32_f32_e32 v4, v2", _f(12.0), 0, 4),
    (GFX9, "v_fract_f32_e32 v4, v2", _f(-1.25), 0, _f(0.75)),
    (GFX9, "v_rndne_f32_e32 v4, v2", _f(2.5), 0, _f(2.0)),
    (GFX9, "v_med3_f32 v4, v2, v3, 1.0", _f(-3.0), _f(5.0), _f(1.0)),
    (GFX9, "v_mul_legacy_f32 v4, v2, v3", 0, 0x7F800000, 0),
    (GFX9, "v_cubeid_f32 v4, v2, v3, 0", _f(-2.0), _f(1.0), _f(1.0)),
    (GFX9, "v_pk_add_f16 v4, v2, v3 op_sel:[1,0] op_sel_hi:[0,1]", 0x40003C00, 0x3C003C00,
     0x40004200),
    (GFX9, "v_pk_fma_f16 v4, v2, v3, 1.0 op_sel_hi:[1,1,0] neg_lo:[1,0,0]", 0x40004000, 0x3C003C00,
     0x4200BC00),
    (GFX9, "v_dot4_i32_i8 v4, v2, v3, 10", 0x01FF0203, 0x01020304, 10 + 12 + 6 - 2 + 1),
    (GFX9, "v_fma_mixhi_f16 v4, v2, v3, 1.0", _f(2.0), _f(3.0), 0x47000000),
]  # fmt: skip

PARTS: list[Case] = [
    (GFX9, "v_add_u32_sdwa v4, v2, v3 dst_sel:DWORD src0_sel:BYTE_1 src1_sel:WORD_1", 0x1234,
     0x50000, 0x17),
    (GFX9, "v_mov_b32_sdwa v4, v2 dst_sel:BYTE_2 dst_unused:UNUSED_PAD src0_sel:BYTE_0", 0xAB, 0,
     0xAB0000),
    (GFX9, "v_mov_b32_sdwa v4, sext(v2) dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0",
     0x80, 0, 0xFF800000),
    (GFX11, "v_mov_b16_e32 v4.h, v2.l", 0x12345678, 0, 0x56780000),
    (GFX11, "v_add_nc_u16 v4.h, v2.l, v3.h", 0xFFFF, 0x20000, 0x10000),
    (GFX11, "v_pack_b32_f16 v4, v2.h, v3.l", 0xAAAA1111, 0x2222BBBB, 0xBBBBAAAA),
]  # fmt: skip

SCALARS: list[Case] = [
    (GFX9, "s_bfe_u32 s4, 0x12345678, 0x80008\n\tv_mov_b32_e32 v4, s4", 0, 0, 0x56),
    (GFX9, "s_bfe_i32 s4, 0x1234f678, 0x80008\n\tv_mov_b32_e32 v4, s4", 0, 0, 0xFFFFFFF6),
    (GFX9, "s_bfm_b32 s4, 4, 8\n\tv_mov_b32_e32 v4, s4", 0, 0, 0xF00),
    (GFX9, "s_flbit_i32_b32 s4, 0x10000\n\tv_mov_b32_e32 v4, s4", 0, 0, 15),
    (GFX9, "s_pack_lh_b32_b16 s4, 0x1234, 0xabcd0000\n\tv_mov_b32_e32 v4, s4", 0, 0, 0xABCD1234),
    (GFX9, "s_lshl3_add_u32 s4, 3, 5\n\tv_mov_b32_e32 v4, s4", 0, 0, 29),
    (GFX9, "s_absdiff_i32 s4, 3, 5\n\tv_mov_b32_e32 v4, s4", 0, 0, 2),
    (GFX9, "s_mul_hi_u32 s4, -1, -1\n\tv_mov_b32_e32 v4, s4", 0, 0, 0xFFFFFFFE),
    (GFX9, "s_mov_b32 s4, 5\n\ts_addk_i32 s4, 0x8000\n\tv_mov_b32_e32 v4, s4", 0, 0, 0xFFFF8005),
    (GFX9, "s_sub_u32 s4, 0, 1\n\ts_subb_u32 s4, 0, 0\n\tv_mov_b32_e32 v4, s4", 0, 0, 0xFFFFFFFF),
    (GFX9, "s_cmp_gt_i32 -1, 0\n\ts_cselect_b32 s4, 7, 9\n\tv_mov_b32_e32 v4, s4", 0, 0, 9),
    (GFX9, "s_bitreplicate_b64_b32 s[4:5], 5\n\tv_mov_b32_e32 v4, s4", 0, 0, 0x33),
    (GFX9, "s_quadmask_b32 s4, 0x10f\n\tv_mov_b32_e32 v4, s4", 0, 0, 5),
    (GFX9, "s_wqm_b32 s4, 0x102\n\tv_mov_b32_e32 v4, s4", 0, 0, 0xF0F),
    (GFX12, "s_add_f32 s4, 1.0, 0.5\n\tv_mov_b32_e32 v4, s4", 0, 0, _f(1.5)),
    (GFX12, "s_cvt_i32_f32 s4, 0xc0700000\n\tv_mov_b32_e32 v4, s4", 0, 0, 0xFFFFFFFD),
    (GFX12, "s_fmac_f32 s4, 2.0, 4.0\n\tv_mov_b32_e32 v4, 0", 0, 0, 0),
]

LANES: list[Case] = [
    (GFX9, "v_readlane_b32 s4, v0, 5\n\tv_mov_b32_e32 v4, s4", 0, 0, 5),
    (GFX9, "v_mbcnt_lo_u32_b32 v4, -1, 3", 0, 0, 3),
    (GFX9, "v_mov_b32_dpp v4, v0 row_shl:3 row_mask:0xf bank_mask:0xf", 0, 0, 3),
    (GFX9, "v_mov_b32_dpp v4, v0 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf", 0, 0, 3),
    (GFX9, "v_mov_b32_dpp v4, v0 row_mirror row_mask:0xf bank_mask:0xf", 0, 0, 15),
    (GFX9, "v_mov_b32_dpp v4, v0 wave_rol:1 row_mask:0xf bank_mask:0xf", 0, 0, 1),
    (GFX11, "v_mov_b32_dpp v4, v0 row_xmask:6 row_mask:0xf bank_mask:0xf", 0, 0, 6),
    (GFX11, "v_mov_b32_dpp v4, v0 dpp8:[7,6,5,4,3,2,1,0]", 0, 0, 7),
    (GFX11, "v_permlanex16_b32 v4, v0, 0, 0", 0, 0, 16),
    (GFX11, "v_permlane64_b32 v4, v0", 0, 0, 0),
]

FAMILIES = {
    "integers": INTEGERS, "floats": FLOATS, "parts": PARTS, "scalars": SCALARS, "lanes": LANES
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    for target, body, first, second, expected in FAMILIES[family]:
        found, _ = _lane_zero(target, body, first, second)
        assert found == expected, (target, body, hex(found), hex(expected))


def test_pairs_of_registers() -> None:
    for target, body, first, second, low, high in WIDE:
        found = _lane_zero(target, body, first, second)
        assert found == (low, high), (target, body, [hex(x) for x in found])


def test_waves_have_the_lanes_the_cases_assume() -> None:
    assert (lanes_of(GFX9), lanes_of(GFX11), lanes_of(GFX12)) == (64, 32, 32)
