"""Rules about the launch and what fits a compute unit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.support import assembly_subject, find, the_one
from wavecast.isa.instruction import SourceLocation

MATRIX_LOOP = """
.LBB0_1:
\tv_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15]
\ts_add_i32 s4, s4, 1
\ts_cmp_lt_i32 s4, s5
\ts_cbranch_scc1 .LBB0_1
"""


def test_more_lds_than_a_workgroup_may_use_is_an_error() -> None:
    found = the_one(assembly_subject("s_nop 0", dynamic_lds=98304), "lds-over-limit")
    assert found.severity == "error"
    assert "96 KiB" in found.message
    assert "64 KiB" in found.message
    assert "32,768 more" in found.evidence


@pytest.mark.parametrize(("target", "lds"), [("gfx942", 65536), ("gfx950", 163840)])
def test_all_the_lds_of_a_workgroup_may_be_used(target: str, lds: int) -> None:
    assert not find(assembly_subject("s_nop 0", target, dynamic_lds=lds), "lds-over-limit")


def test_num_stages_is_the_first_advice_about_lds() -> None:
    subject = assembly_subject("s_nop 0", dynamic_lds=98304, stages={}, options={"num_stages": 4})
    assert "num_stages (now 4)" in the_one(subject, "lds-over-limit").advice


def test_a_few_registers_from_the_next_wave() -> None:
    found = the_one(assembly_subject("s_nop 0", vgprs=132), "occupancy-one-step-away")
    assert found.severity == "note"
    assert "4 VGPRs fewer would give 4 waves per SIMD instead of 3" in found.message
    assert "132 used, 128 would do" in found.evidence
    assert "amdgpu_waves_per_eu(4)" in found.advice


def test_no_step_is_near_at_the_step_itself_or_far_above() -> None:
    assert not find(assembly_subject("s_nop 0", vgprs=128), "occupancy-one-step-away")
    assert not find(assembly_subject("s_nop 0", vgprs=160), "occupancy-one-step-away")


def test_another_wave_is_no_use_without_workgroups_or_with_spills() -> None:
    few = assembly_subject("s_nop 0", vgprs=132, grid=(304, 1, 1))
    assert not find(few, "occupancy-one-step-away")
    many = assembly_subject("s_nop 0", vgprs=132, grid=(30400, 1, 1))
    assert find(many, "occupancy-one-step-away")
    spilled = assembly_subject("s_nop 0", vgprs=132, vgpr_spills=8)
    assert not find(spilled, "occupancy-one-step-away")


def test_another_wave_is_no_use_to_a_busy_matrix_pipe() -> None:
    chain = MATRIX_LOOP.replace(
        "\ts_add_i32",
        "\tv_mfma_f32_32x32x8_bf16 v[32:47], v[16:17], v[18:19], v[32:47]\n\ts_add_i32",
    )
    assert not find(assembly_subject(chain, vgprs=132), "occupancy-one-step-away")


def test_a_grid_smaller_than_the_device() -> None:
    found = the_one(assembly_subject("s_nop 0", grid=(8, 4, 1)), "grid-too-small")
    assert found.severity == "warning"
    assert "32 workgroups cannot fill 304 CUs" in found.message
    assert "11%" in found.evidence
    assert found.location == SourceLocation("kernel.py", 1)
    nearly = the_one(assembly_subject("s_nop 0", grid=(200, 1, 1)), "grid-too-small")
    assert nearly.severity == "note"


def test_a_kernel_whose_first_line_is_not_known_has_no_line_0() -> None:
    subject = assembly_subject("s_nop 0", grid=(8, 4, 1))
    subject = replace(subject, code=replace(subject.code, source_line=0))
    assert the_one(subject, "grid-too-small").location is None


def test_a_grid_that_fills_the_device_or_none_at_all() -> None:
    assert not find(assembly_subject("s_nop 0", grid=(304, 1, 1)), "grid-too-small")
    assert not find(assembly_subject("s_nop 0", grid=(280, 1, 1)), "grid-too-small")
    assert not find(assembly_subject("s_nop 0"), "grid-too-small")


def test_split_k_is_the_advice_for_a_small_grid_of_products() -> None:
    found = the_one(assembly_subject(MATRIX_LOOP, grid=(8, 1, 1)), "grid-too-small")
    assert "split-K" in found.advice


def test_a_last_round_that_is_nearly_empty() -> None:
    # 64 KiB of LDS: one workgroup per compute unit, 304 places.
    subject = assembly_subject(MATRIX_LOOP, grid=(320, 1, 1), dynamic_lds=65536)
    found = the_one(subject, "partial-last-wave")
    assert "5%" in found.message
    assert "2 rounds, of which 1.05 hold work, 53%" in found.evidence


def test_full_rounds_and_kernels_without_products_are_fine() -> None:
    full = assembly_subject(MATRIX_LOOP, grid=(608, 1, 1), dynamic_lds=65536)
    assert not find(full, "partial-last-wave")
    many = assembly_subject(MATRIX_LOOP, grid=(3100, 1, 1), dynamic_lds=65536)
    assert not find(many, "partial-last-wave")
    stream = assembly_subject("s_nop 0", grid=(320, 1, 1), dynamic_lds=65536)
    assert not find(stream, "partial-last-wave")
