"""Files without a launch: HIP, assembly and code objects, with and without a grid."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.errors import InputError
from wavecast.pipeline import SourceOptions, explain_path, select

COPY = """
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.text
	.globl copy
	.p2align 8
	.type copy,@function
copy:
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_mov_b32 s8, 4
	s_waitcnt lgkmcnt(0)
.LBB0_1:
	global_load_dword v2, v1, s[4:5]
	s_waitcnt vmcnt(0)
	global_store_dword v1, v2, s[6:7]
	s_add_i32 s8, s8, -1
	s_cmp_lg_u32 s8, 0
	s_cbranch_scc1 .LBB0_1
	s_endpgm
.Lfunc_end0:
	.section .rodata,"a",@progbits
	.amdhsa_kernel copy
		.amdhsa_next_free_vgpr 3
		.amdhsa_next_free_sgpr 9
		.amdhsa_accum_offset 4
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 2
	.end_amdhsa_kernel
"""


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    path = tmp_path / "copy.s"
    path.write_text(COPY)
    return path


def explain(path: Path, arch: str = "gfx942", **options):
    return explain_path(path, select([arch]), SourceOptions(**options))


def test_without_a_grid_nothing_is_made_up(assembly: Path) -> None:
    (found,) = explain(assembly, block=(64, 1, 1)).explanations
    assert found.analysis.loops[0].trip_count == 4
    assert found.roofline.work.flops == {}
    assert found.roofline.work.bytes is None
    assert found.roofline.bound == "unknown"
    assert not [f for f in found.findings if "grid" in f.rule]


def test_given_work_makes_a_roofline(assembly: Path) -> None:
    from wavecast.pipeline import Given

    given = Given(flops=1e9, bytes=1e9, dtype="bf16")
    (found,) = explain(assembly, block=(64, 1, 1), given=given).explanations
    roofline = found.roofline
    assert roofline.intensity == 1.0
    assert roofline.bound == "memory"
    assert roofline.floor_seconds == pytest.approx(1e9 / roofline.memory.rate)


def test_a_foreign_target_is_refused(assembly: Path) -> None:
    with pytest.raises(InputError, match="gfx942"):
        explain(assembly, arch="gfx1100")


def test_one_bad_kernel_does_not_lose_the_other(assembly: Path) -> None:
    second = COPY.replace("copy", "other").replace("v_lshlrev_b32_e32 v1, 2, v0", "v_oops v1")
    body = second.partition(".text\n")[2]
    assembly.write_text(COPY + "\n\t.text\n" + body.replace(".LBB0_1", ".LBB1_1"))
    report = explain(assembly, block=(64, 1, 1))
    assert [e.code.kernel for e in report.explanations] == ["copy"]
    (failure,) = report.failures
    assert failure.kernel == "other"
    assert "v_oops" in failure.message
