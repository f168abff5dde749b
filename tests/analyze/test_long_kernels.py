"""Kernels of thousands of instructions: the work of an analysis grows as the kernel does.

Counted are the lines that the analysis executes, so that the test does not depend on the machine.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from wavecast.analyze import analyze
from wavecast.arch import resolve
from wavecast.compile.assembly import load
from wavecast.compile.codeobject import Launch
from wavecast.compile.parsing import parse_kernel

_UNITS = {
    "branches": """
	s_cmp_eq_u32 s7, {number}
	s_cbranch_scc1 .LX{number}
	v_add_f32_e32 v3, v{register}, v3
.LX{number}:""",
    "loops": """
	s_mov_b32 s10, 0
.LX{number}:
	v_fma_f32 v{register}, v{register}, v3, 1.0
	s_add_i32 s10, s10, 1
	s_cmp_lt_i32 s10, 4
	s_cbranch_scc1 .LX{number}""",
    "memory": """
	global_load_dword v{register}, v1, s[2:3]
	ds_write_b32 v1, v3
	s_waitcnt vmcnt(0) lgkmcnt(0)
	s_barrier
	v_add_f32_e32 v3, v{register}, v3
	global_store_dword v1, v3, s[2:3]""",
}


def kernel(unit: str, count: int) -> str:
    """A loop of three iterations around a unit repeated so many times, closed by a far jump."""
    body = "".join(_UNITS[unit].format(number=i, register=4 + i % 12) for i in range(count))
    return f"""
	.text
	.type	k,@function
k:
	s_load_dwordx2 s[2:3], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_mov_b32_e32 v3, 0
	s_mov_b32 s7, 0
	s_waitcnt lgkmcnt(0)
.LBB0_1:{body}
	s_add_i32 s7, s7, 1
	s_cmp_ge_i32 s7, 3
	s_cbranch_scc1 .LBB0_2
	s_getpc_b64 s[8:9]
.Lpost_getpc0:
	s_add_u32 s8, s8, (.LBB0_1-.Lpost_getpc0)&4294967295
	s_addc_u32 s9, s9, (.LBB0_1-.Lpost_getpc0)>>32
	s_setpc_b64 s[8:9]
.LBB0_2:
	global_store_dword v1, v3, s[2:3]
	s_endpgm
.Lfunc_end0:
	.amdhsa_kernel k
		.amdhsa_group_segment_fixed_size 4096
		.amdhsa_kernarg_size 8
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 2
		.amdhsa_next_free_vgpr 32
		.amdhsa_next_free_sgpr 16
		.amdhsa_accum_offset 32
	.end_amdhsa_kernel
"""


def lines_executed(unit: str, count: int) -> int:
    """Python lines that parsing and analysing the kernel takes."""
    (code,) = load(kernel(unit, count), "gfx942")
    launch = Launch(code=code, grid=(64, 1, 1), block=(256, 1, 1))
    device = resolve("gfx942").device
    executed = 0

    def counted(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal executed
        executed += event == "line"
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        found = parse_kernel(code)
        analyze(code, device, found.program, found.descriptor, launch)
    finally:
        sys.settrace(before)
    return executed


@pytest.mark.parametrize("unit", _UNITS)
def test_work_grows_with_the_length(unit: str) -> None:
    lines_executed(unit, 4)  # fills what is cached per process
    once, twice = lines_executed(unit, 60), lines_executed(unit, 120)
    assert twice < 2.3 * once
