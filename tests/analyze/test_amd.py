"""Analyses of AMD kernels small enough to work out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.analyze.support import code, descriptor, program, read
from wavecast import arch
from wavecast.analyze import analyze
from wavecast.compile.codeobject import Launch

LOOP = """
	s_mov_b32 s0, 0
.LBB0_1:
{body}
	s_add_i32 s0, s0, 1
	s_cmp_lt_i32 s0, s1
	s_cbranch_scc1 .LBB0_1
"""


def loop(body: str) -> str:
    return LOOP.format(body="\n".join(f"\t{line.strip()}" for line in body.split(";")))


def test_instructions_are_counted_by_class() -> None:
    found = read(
        """
	s_load_dwordx2 s[0:1], s[2:3], 0x0
	s_waitcnt lgkmcnt(0)
	global_load_dwordx4 v[0:3], v4, s[0:1]
	buffer_load_dword v5, v6, s[4:7], 0 offen lds
	buffer_store_dword v5, v6, s[4:7], 0 offen
	global_atomic_add_f32 v4, v5, s[0:1]
	scratch_load_dword v7, off, off
	ds_read_b128 v[8:11], v4
	ds_bpermute_b32 v12, v4, v5
	v_exp_f32_e32 v0, v1
	v_add_f32_e32 v0, v0, v1
	v_accvgpr_read_b32 v0, a0
	v_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[2:3], a[0:15]
	s_barrier
	s_nop 0
	s_branch .LBB0_1
.LBB0_1:
"""
    )
    assert found.instructions == {
        "matrix": 1,
        "valu": 2,
        "trans": 1,
        "smem": 1,
        "lds": 2,
        "vmem_load": 2,
        "vmem_store": 1,
        "vmem_atomic": 1,
        "scratch": 1,
        "branch": 1,
        "wait": 1,
        "barrier": 1,
        "other": 2,
    }
    assert found.matrix_kinds == {"v_mfma_f32_32x32x8_bf16": 1}
    assert found.matrix_flops_static == {"bf16": 2 * 32 * 32 * 8}


def test_a_matrix_loop_is_bound_by_the_matrix_pipe() -> None:
    body = "; ".join(
        f"v_mfma_f32_32x32x8_bf16 a[{16 * i}:{16 * i + 15}], v[0:1], v[2:3], "
        f"a[{16 * i}:{16 * i + 15}]"
        for i in range(4)
    )
    found = read(loop(body), vgprs=128, agprs=64).loops[0]
    # 32 clocks each at 1024 operations per clock and SIMD, two waves resident.
    assert found.cycles["matrix"] == 4 * 32 * 2
    assert (found.limiter, found.waves_per_simd) == ("matrix", 2)
    assert found.flops == {"bf16": 4 * 16384}
    assert found.matrix_density == pytest.approx(4 / 7)
    # The four chains are independent; each instruction waits only for its own accumulator.
    assert found.critical_path == 32


def test_vector_instructions_take_four_clocks_of_a_16_lane_simd() -> None:
    found = read(loop("v_add_f32 v0, v1, v2; v_mul_f32 v3, v1, v2"), vgprs=128).loops[0]
    assert found.waves_per_simd == 4
    assert found.cycles["valu"] == 2 * 4 * 4
    # Issue: 2 vector, 2 scalar, 1 branch; the fullest category over 4 waves against 5 of one wave.
    assert found.cycles["issue"] == 4 * max(2 * 4, 5)


def test_one_wave_cannot_issue_faster_than_every_fourth_clock() -> None:
    found = read(loop("v_add_f32 v0, v1, v2"), vgprs=512 // 2, threads=64, lds_bytes=65536)
    assert found.loops[0].waves_per_simd == 1
    assert found.loops[0].cycles["issue"] == 4 * 4


def test_no_ops_idle_their_own_wave_only() -> None:
    few = read(loop("v_add_f32 v0, v1, v2; s_nop 7"), vgprs=256).loops[0]
    assert few.waves_per_simd == 2
    assert few.cycles["issue"] == 4 * (4 + 8)
    many = read(loop("v_add_f32 v0, v1, v2; s_nop 1"), vgprs=16).loops[0]
    assert many.waves_per_simd == 8
    assert many.cycles["issue"] == 4 * 2 * 8


def test_a_dual_instruction_counts_once() -> None:
    dual = "v_dual_add_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5"
    single = "v_add_f32 v0, v1, v2; v_mul_f32 v3, v4, v5"
    one = read(loop(dual), "gfx1100", vgprs=192).loops[0]
    two = read(loop(single), "gfx1100", vgprs=192).loops[0]
    assert one.cycles["valu"] * 2 == two.cycles["valu"]
    assert one.instructions["valu"] == 1
    assert two.cycles["issue"] - one.cycles["issue"] == one.waves_per_simd


def test_lds_data_passes_one_path_for_the_whole_unit() -> None:
    found = read(loop("ds_read_b128 v[0:3], v4"), vgprs=128).loops[0]
    # 64 lanes of 16 bytes at 128 bytes per clock, for 4 waves on each of 4 SIMDs.
    assert found.cycles["lds"] == 64 * 16 / 128 * 4 * 4
    assert found.bytes_lds == 64 * 16


def test_global_bytes_count_all_lanes_and_scalar_loads_once() -> None:
    body = "global_load_dwordx2 v[0:1], v4, s[0:1]; s_load_dwordx4 s[4:7], s[2:3], 0x0"
    found = read(loop(body)).loops[0]
    assert found.bytes_global == 64 * 8 + 16


def test_full_waits_are_counted_in_their_loop() -> None:
    body = "s_waitcnt vmcnt(2) lgkmcnt(0); s_waitcnt vmcnt(3)"
    found = read("\ts_waitcnt vmcnt(0)\n" + loop(body))
    assert [(dict(wait.counters), wait.full, wait.loop) for wait in found.waits] == [
        ({"vmcnt": 0}, True, None),
        ({"vmcnt": 2, "lgkmcnt": 0}, True, 0),
        ({"vmcnt": 3}, False, 0),
    ]
    assert found.loops[0].waits_full == 1


def test_pressure_peaks_where_most_registers_are_live() -> None:
    found = read(
        """
	v_mov_b32_e32 v1, 1
	v_mov_b32_e32 v2, 2
	v_add_f32_e32 v3, v1, v2
	global_store_dword v0, v3, s[0:1]
"""
    )
    assert found.pressure is not None
    assert found.pressure.vgpr == (1, 2, 3, 2, 0)
    assert (found.pressure.peak_index, found.pressure.peak_vgpr) == (2, 3)


def test_dynamic_lds_limits_occupancy() -> None:
    found = read("\ts_nop 0", dynamic_lds=40960, lds_bytes=1024)
    assert found.lds_bytes == 40960 + 1024
    assert (found.occupancy.waves_per_simd, found.occupancy.limiter) == (1, "lds")


def test_registers_and_spills_come_from_the_descriptor() -> None:
    found = read("\ts_nop 0", vgprs=40, agprs=8, vgpr_spills=3, sgpr_spills=2, scratch_bytes=20)
    assert (found.registers.vgpr, found.registers.agpr, found.registers.spilled) == (40, 8, 3)
    assert found.registers.spilled_sgpr == 2
    assert found.registers.scratch_bytes == 20


def test_executed_work_of_straight_line_code() -> None:
    launch = Launch(code(), (10, 2, 1), (256, 1, 1))
    body = "\tv_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[2:3], a[0:15]"
    found = read(body, launch=launch)
    assert found.executed == (1.0,)
    assert found.executed_flops == {"bf16": 16384.0 * 4 * 20}


def test_work_in_a_loop_of_unknown_length_is_unknown() -> None:
    launch = Launch(code(), (1, 1, 1), (256, 1, 1))
    body = loop("v_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[2:3], a[0:15]")
    found = read(body, launch=launch)
    assert found.executed_flops is None
    assert found.loops[0].trip_count is None
    assert found.loops[0].trip_note


def test_cycles_of_every_instruction() -> None:
    found = read("\tv_add_f32_e32 v0, v1, v2\n\ts_nop 0")
    assert found.instruction_cycles[0] == 4
    assert len(found.instruction_cycles) == 3


def test_unpublished_rates_are_listed() -> None:
    found = read("\tglobal_load_b128 v[0:3], v[4:5], off", "gfx1250")
    assert any("vector cache" in note for note in found.not_modelled)
    assert not any("LDS" in note for note in found.not_modelled)


def test_an_unknown_workgroup_size_is_listed() -> None:
    found = read("\ts_nop 0", threads=0)
    assert found.occupancy.waves_per_workgroup == 4
    assert any("workgroup size" in note for note in found.not_modelled)


def test_an_unknown_workgroup_is_no_larger_than_registers_allow() -> None:
    """With 1,024 registers a SIMD of gfx1250 holds one wave, and a WGP four."""
    body, few = program("\ts_nop 0", "gfx1250"), code("gfx1250", threads=0)
    many = replace(descriptor(32, vgprs=1024), max_workgroup_size=1024)
    found = analyze(few, arch.load("mi455x"), body, many)
    assert found.occupancy.fits
    assert found.occupancy.waves_per_workgroup == 4
    assert any("can run, 128, is assumed" in note for note in found.not_modelled)
    never = replace(many, lds_bytes=1 << 20)
    assert not analyze(few, arch.load("mi455x"), body, never).occupancy.fits


def test_the_launch_decides_the_workgroup() -> None:
    launch = Launch(code(), (1, 1, 1), (64, 1, 1), dynamic_lds=4096)
    found = read("\ts_nop 0", launch=launch)
    assert (found.occupancy.waves_per_workgroup, found.lds_bytes) == (1, 4096)
