"""Values without a documented result that go through memory to what they decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wavecast
from tests.emulate.memory_support import kernel_of
from tests.emulate.trace.support import aligned, index, trace
from wavecast.emulate.trace.fidelity import open_instructions
from wavecast.emulate.trace.memory_flow import FlowPlan
from wavecast.emulate.trace.result import Trace

TARGETS = ("gfx942", "gfx1100")
OPEN = """	v_cvt_f32_u32_e32 v2, v0
	v_exp_f32_e32 v2, v2
	v_lshlrev_b32_e32 v3, 2, v0
	v_mov_b32_e32 v8, 0
"""
"""The open value in v2, four times the lane in v3, 0 in v8."""
USED = """	v_and_b32_e32 v4, 60, v4
	global_store_dword v4, v0, s[8:9]
"""
"""An address made of v4."""
WAIT = "\ts_waitcnt vmcnt(0) lgkmcnt(0)\n"
BARRIER = WAIT + "\ts_barrier\n"
_GFX11 = (("ds_write_", "ds_store_"), ("ds_write2_", "ds_store_2addr_"), ("ds_read_", "ds_load_"),
          ("ds_read2_", "ds_load_2addr_"), ("_dwordx2", "_b64"), ("_dword", "_b32"),
          ("_short", "_b16"), ("ds_wrxchg_rtn", "ds_storexchg_rtn"),
          ("global_atomic_swap v", "global_atomic_swap_b32 v"),
          ("global_atomic_add v", "global_atomic_add_u32 v"), (" sc0", " glc"))  # fmt: skip


def traced(target: str, body: str, **options: Any) -> Trace:
    """Run code in the names of gfx942."""
    if target == "gfx1100":
        for old, new in _GFX11:
            body = body.replace(old, new)
    memory = options.pop("arrays", (aligned(4096),))
    return trace(target, body, *memory, memory=False, values=True, **options)


def decided(target: str, body: str, **options: Any) -> set[str]:
    """What the values of `v_exp_f32` decide."""
    return {
        decision.kind
        for entry in open_instructions(traced(target, body, **options))
        for decision in entry.decisions
    }


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("store", "load"),
    [
        ("ds_write_b32 v3, v2", "ds_read_b32 v4, v3"),
        ("ds_write_b32 v3, v2", "ds_read_b32 v4, v8"),  # of another lane
        ("ds_write_b16 v3, v2 offset:2", "ds_read_b32 v4, v3"),
        ("ds_write_b8 v3, v2 offset:3", "ds_read_b32 v4, v3"),
        (
            "ds_write2_b32 v3, v8, v2 offset0:8 offset1:9",
            "ds_read2_b32 v[4:5], v3 offset0:9 offset1:0",
        ),
        (
            "ds_write2_b32 v3, v8, v2 offset0:8 offset1:9",
            "ds_read2_b32 v[3:4], v3 offset0:0 offset1:9",
        ),
        ("ds_add_f32 v3, v2", "ds_read_b32 v4, v3"),
        ("ds_write_b32 v3, v2", "ds_add_rtn_f32 v4, v3, v8"),
        ("ds_write_b32 v3, v2", "ds_wrxchg_rtn_b32 v4, v3, v8"),
        ("ds_write_b32 v3, v2\n\tds_add_u32 v3, v8", "ds_read_b32 v4, v3"),
    ],
)
def test_lds(target: str, store: str, load: str) -> None:
    body = f"{OPEN}\t{store}\n{WAIT}\t{load}\n{WAIT}{USED}"
    assert decided(target, body, lds=4096) == {"address"}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("store", "load"),
    [
        ("ds_write_b32 v3, v2\n\tds_write_b32 v3, v8", "ds_read_b32 v4, v3"),
        ("ds_write_b32 v3, v2\n\tds_write_b64 v3, v[8:9]", "ds_read_b32 v4, v3"),
        ("ds_write_b32 v3, v2", "ds_read_b32 v4, v3 offset:1024"),
        ("ds_write_b16 v3, v2 offset:2", "ds_read_u16 v4, v3"),
        ("ds_write_b32 v3, v2\n\tds_wrxchg_rtn_b32 v5, v3, v8", "ds_read_b32 v4, v3"),
        # the value comes to the register that is not used
        ("ds_write2_b32 v3, v8, v2 offset0:64 offset1:128",
         "ds_read2_b32 v[4:5], v3 offset0:64 offset1:128"),
        ("ds_write2_b32 v3, v2, v8 offset0:64 offset1:128",
         "ds_read2_b32 v[3:4], v3 offset0:64 offset1:128"),
    ],
)  # fmt: skip
def test_what_does_not_go_through_lds(target: str, store: str, load: str) -> None:
    body = f"{OPEN}\t{store}\n{WAIT}\t{load}\n{WAIT}{USED}"
    assert decided(target, body, lds=4096) == set()


@pytest.mark.parametrize("target", TARGETS)
def test_lds_of_the_workgroup_before(target: str) -> None:
    """Only the first workgroup stores the value, and only the others load: the marks are gone."""
    body = f"""{OPEN}	s_cmp_lg_u32 s2, 0
	s_cbranch_scc1 other
	ds_write_b32 v3, v2
	s_endpgm
other:
	ds_read_b32 v4, v3
{WAIT}{USED}"""
    launch = traced(target, body, lds=256, groups=3)
    load = index(launch, "ds_read_b32" if target == "gfx942" else "ds_load_b32")
    assert [launch.executions(i) for i in (load - 2, load)] == [1, 2]
    assert launch.links == frozenset()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("store", "load", "kinds"),
    [
        ("scratch_store_dword off, v2, off", "scratch_load_dword v4, off, off", 1),
        ("scratch_store_dword off, v2, off", "scratch_load_dword v4, off, off offset:4", 0),
        ("global_store_dword v3, v2, s[8:9]", "global_load_dword v4, v3, s[8:9]", 1),
        ("global_store_dword v3, v2, s[8:9]\n\tglobal_store_dword v3, v8, s[8:9]",
         "global_load_dword v4, v3, s[8:9]", 0),
        ("global_store_dwordx2 v3, v[8:9], s[8:9] offset:512\n\tglobal_store_short v3, v2, s[8:9]",
         "global_load_dword v4, v3, s[8:9]", 1),
        ("global_store_dword v3, v2, s[8:9]", "s_load_dword s20, s[8:9], 0x4\n"
         f"{WAIT}\tv_mov_b32_e32 v4, s20", 1),
        ("global_store_dword v3, v2, s[8:9]", "global_atomic_add v4, v3, v8, s[8:9] sc0", 1),
        ("global_store_dword v3, v2, s[8:9]\n\tglobal_atomic_swap v3, v8, s[8:9]",
         "global_load_dword v4, v3, s[8:9]", 0),
    ],
)  # fmt: skip
def test_scratch_and_global_memory(target: str, store: str, load: str, kinds: int) -> None:
    body = f"{OPEN}\t{store}\n{WAIT}\t{load}\n{WAIT}{USED}"
    assert decided(target, body, scratch=16) == ({"address"} if kinds else set())


def test_copies_to_lds() -> None:
    """A load from memory to LDS brings the value, and clears what was there."""
    copy = "s_mov_b32 m0, 0\n\tglobal_load_lds_dword v3, s[8:9]"
    used = f"{WAIT}\tds_read_b32 v4, v3\n{WAIT}{USED}"
    body = f"{OPEN}\tglobal_store_dword v3, v2, s[8:9]\n{WAIT}\t{copy}\n{used}"
    assert decided("gfx942", body, lds=256) == {"address"}
    body = f"{OPEN}\tds_write_b32 v3, v2\n{WAIT}\t{copy}\n{used}"
    assert decided("gfx942", body, lds=256) == set()


def test_waves_exchange_values() -> None:
    """Of four waves each stores one value; the first one uses those of the others."""
    body = f"""{OPEN}	ds_write_b32 v3, v2
{BARRIER}	ds_read_b32 v4, v3 offset:768
{WAIT}{USED}"""
    assert decided("gfx942", body, lds=2048, threads=256) == {"address"}


def test_a_kernel_that_only_stores_open_values_needs_no_marks() -> None:
    plain = "\tv_mov_b32_e32 v2, 1.0\n\tglobal_store_dword v0, v2, s[8:9]\n"
    assert not FlowPlan.of(kernel_of("gfx942", plain)).regions
    body = f"{OPEN}\tglobal_store_dword v3, v2, s[8:9]\n\tds_read_b32 v4, v3\n"
    assert FlowPlan.of(kernel_of("gfx942", body, lds=64)).regions == {"global"}


def test_results_are_those_without_marks() -> None:
    load = f"{WAIT}\tds_read_b32 v4, v3\n{WAIT}"
    body = f"{OPEN}\tds_write_b32 v3, v2\n{load}\tglobal_store_dword v3, v4, s[8:9]\n"
    followed, plain = aligned(4096), aligned(4096)
    traced("gfx942", body, lds=256, arrays=(followed,))
    trace("gfx942", body, plain, memory=False, lds=256)
    assert followed.any()
    assert np.array_equal(followed, plain)


HIP = """#include <hip/hip_runtime.h>
extern "C" __global__ void total(const float* x, float* y, int* z) {
    __shared__ float parts[4];
    float value = __expf(x[threadIdx.x]);
    for (int lane = 16; lane; lane >>= 1) value += __shfl_xor(value, lane);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = parts[0] + parts[1] + parts[2] + parts[3];
    if (sum > 100.0f)
        z[(int)sum & 15] = 1;
    y[threadIdx.x] = sum;
}
"""


@pytest.mark.hip
@pytest.mark.parametrize("target", TARGETS)
def test_a_sum_over_waves_of_hip(tmp_path: Path, target: str) -> None:
    source = tmp_path / "total.hip"
    source.write_text(HIP)
    arguments = ("x=f32[128]:ones", "y=f32[128]:zeros", "z=i32[16]:zeros")
    report = wavecast.run(
        source, arguments=arguments, grid="1", block="128", arch=target, fidelity=True
    )
    (kernel,) = report.to_dict()["fidelity"]
    (line,) = kernel["open"]
    assert line["mnemonic"] == "v_exp_f32"
    found = {(decision["kind"], decision["line"]) for decision in line["decides"]}
    assert ("address", 10) in found
    assert {kind for kind, _ in found} & {"branch", "lanes"}
