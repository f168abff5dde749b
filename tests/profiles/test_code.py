"""Kernels of a profile whose code is at hand: predicted figures next to counters, and why they
differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wavecast.arch.select import load
from wavecast.errors import InputError, UsageError
from wavecast.profiles.answer import profiles
from wavecast.profiles.code import ExplainedKernel, explain_kernels, same_name
from wavecast.profiles.code_differences import difference
from wavecast.profiles.counters import CounterUnit
from wavecast.profiles.profile import Profile, ProfiledKernel
from wavecast.profiles.summary import summarise

_MATMUL = """
import torch, triton, triton.language as tl

@triton.jit
def matmul(a, b, c, N, K, BLOCK: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offs_n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    offs_k = tl.arange(0, 32)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, 32):
        x = tl.load(a + offs_m[:, None] * K + (offs_k + k)[None, :])
        y = tl.load(b + (offs_k + k)[:, None] * N + offs_n[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16))

a, b, c = (torch.empty((2048, 2048), dtype=torch.float16, device="cuda") for _ in range(3))
matmul[(32, 32)](a, b, c, 2048, 2048, 64)
"""
_COPY = """
#include <hip/hip_runtime.h>
__global__ void vecCopy(double *a, double *b, double *c, int n, int stride) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id < n) c[id] = a[id];
}
"""


@pytest.mark.parametrize(
    ("profiled", "symbol", "same"),
    [
        ("matmul", "matmul", True),
        ("vecCopy(double*, double*, double*, int, int)", "_Z7vecCopyPdS_S_ii", True),
        ("void scale<float>(float*, int)", "_Z5scaleIfEvPT_i", True),
        ("void gpu::scale<float, 4>(float*)", "_ZN3gpu5scaleIfLi4EEEvPT_", True),
        ("_Z7vecCopyPdS_S_ii", "_Z7vecCopyPdS_S_ii", True),
        ("vecCopy2(double*)", "_Z7vecCopyPdS_S_ii", False),
        ("matmul_kernel", "matmul", False),
    ],
)
def test_names_of_profilers_and_symbols(profiled: str, symbol: str, same: bool) -> None:
    assert same_name(profiled, symbol) == same


def _profile(kernel: ProfiledKernel, counters: dict[str, float], duration: int) -> Profile:
    profile = Profile("test")
    number = profile.kernels.number(kernel)
    for start in range(2):
        profile.launches.add(number, 0, 0, start * 10 * duration, duration)
        profile.counters[start] = counters
    return profile


@pytest.fixture(scope="module")
def matmul(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ExplainedKernel]:
    """A GEMM whose counters say that workgroups found little of each other's data."""
    file = tmp_path_factory.mktemp("code") / "script.py"
    file.write_text(_MATMUL)
    kernel = ProfiledKernel("matmul", (32, 32, 1), (256, 1, 1), registers=4)
    counters = {"TCC_HIT": 20.0, "TCC_MISS": 80.0, "GRBM_GUI_ACTIVE": 8 * 200_000 * 1.5}
    profile = _profile(kernel, counters, 200_000)
    answer = explain_kernels(profile, summarise(profile), load("mi300x"), [file])
    assert answer.notes == ()
    (found,) = answer.kernels
    return file, found


@pytest.mark.torch
def test_a_script_explains_its_kernel(matmul: tuple[Path, ExplainedKernel]) -> None:
    found = matmul[1]
    assert found.seconds == pytest.approx(200e-6)
    assert found.prediction is not None
    figures = {one.name: one for one in found.figures}
    hit = figures["L2 hit"]
    assert hit.measured == pytest.approx(0.2)
    assert hit.predicted is not None
    assert hit.predicted > 0.6
    assert hit.why.startswith("workgroup order: without what other workgroups fetch the L2 hits")
    clock = figures["clock"]  # cycles of eight dies, added up
    assert clock.measured == pytest.approx(1.5)
    assert clock.predicted == pytest.approx(2.1, abs=0.7)
    assert figures["occupancy"].measured is None
    assert found.notes[0].startswith("another build: 4 registers in the profile,")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "measured", "predicted", "notes", "figures", "why"),
    [
        ("L2 hit", 0.5, 0.55, (), {}, ""),
        ("L2 hit", 0.9, 0.5, (), {}, "data of an earlier launch is still in the L2"),
        ("memory read", 3e6, 1e6, (), {"L2 hit": 0.2}, "the L2 hits 20%: what is fetched"),
        ("memory read", 1e6, 3e6, (), {}, "data of an earlier launch"),
        ("memory written", 3e6, 1e6, (), {}, "lines are written in part"),
        ("memory written", 1e6, 3e6, (), {}, "part of what is written stays in the L2"),
        ("vector instructions of a wave", 90.0, 60.0, ("x",), {}, "another build ran"),
        ("vector instructions of a wave", 90.0, 60.0, (), {}, "waves execute more"),
        ("vector instructions of a wave", 60.0, 90.0, (), {}, "waves execute fewer"),
        ("LDS conflicts", 0.5, 0.0, ("x",), {}, "another build ran"),
        ("LDS conflicts", 0.5, 0.0, (), {}, "the addresses that ran are not those"),
        ("occupancy", 0.2, 0.5, (), {}, "1,024 workgroups are"),
        ("occupancy", 0.9, 0.5, (), {}, "the launch is not the one of the profile"),
        ("clock", 1.2, 2.1, (), {}, "the power limit"),
        ("clock", 2.4, 2.1, (), {}, "the chip is above the clock"),
        ("L1 hit", 0.1, 0.9, (), {}, ""),
    ],
)
def test_what_explains_a_difference(
    matmul: tuple[Path, ExplainedKernel],
    name: str,
    measured: float,
    predicted: float,
    notes: tuple[str, ...],
    figures: dict[str, float],
    why: str,
) -> None:
    found = difference(name, measured, predicted, matmul[1].explanation, notes, figures)
    assert found.startswith(why) if why else found == ""


@pytest.mark.torch
def test_a_launch_that_the_script_does_not_make(matmul: tuple[Path, ExplainedKernel]) -> None:
    kernels = [ProfiledKernel("matmul", (7, 1, 1)), ProfiledKernel("other")]
    profile = Profile("test")
    for kernel in kernels:
        profile.launches.add(profile.kernels.number(kernel), 0, 0, 0, 10)
    found = explain_kernels(profile, summarise(profile), load("mi300x"), [matmul[0]])
    assert found.kernels == ()
    assert found.notes == (
        "script.py: matmul: the grid is 7x1x1 in the profile and 32x32x1 in the script",
        "script.py: no kernel of the profile is in it",
    )


@pytest.mark.hip
def test_counters_of_a_copy_are_those_of_the_code(tmp_path: Path) -> None:
    """Counters of 8 MiB copied on MI300X, as rocprof-compute's own test has them: requests of 128
    bytes to read, of 64 to write."""
    file = tmp_path / "copy.hip"
    file.write_text(_COPY)
    columns = "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Arch_VGPR,Kernel_Name"
    counters = {"TCC_HIT_sum": 68_496, "TCC_MISS_sum": 131_168, "SQ_INSTS_VALU": 98_304,
                "SQ_WAVES": 16_384, "TCC_EA0_RDREQ_sum": 65_704, "TCC_BUBBLE_sum": 65_536,
                "TCC_EA0_RDREQ_32B_sum": 0, "TCC_EA0_WRREQ_sum": 131_072,
                "TCC_EA0_WRREQ_64B_sum": 131_072}  # fmt: skip
    table = tmp_path / "pmc_perf.csv"
    table.write_text(
        f"{columns},Start_Timestamp,End_Timestamp,{','.join(counters)}\n"
        '1,2,1048576,256,0,4,"vecCopy(double*, double*, double*, int, int)",1000,9000,'
        f"{','.join(map(str, counters.values()))}\n"
    )
    (answer,) = profiles(table, "mi300x", code=[file])
    (found,) = answer.code.kernels
    for one in found.figures:
        assert one.why == ""
        if one.measured is not None:
            assert one.predicted == pytest.approx(one.measured, rel=0.05), one.name
    assert {one.name for one in found.figures if one.measured is not None} == {
        "L2 hit", "memory read", "memory written", "vector instructions of a wave",
    }  # fmt: skip
    assert {one.unit for one in found.figures} >= {CounterUnit.BYTES, CounterUnit.CLOCK}


@pytest.mark.hip
def test_dynamic_lds_is_that_of_the_profile(tmp_path: Path) -> None:
    file = tmp_path / "copy.hip"
    file.write_text(_COPY)
    kernel = ProfiledKernel("vecCopy", (4096, 1, 1), (256, 1, 1), lds_bytes=32768)
    profile = _profile(kernel, {}, 8000)
    device = load("mi300x")
    (found,) = explain_kernels(profile, summarise(profile), device, [file]).kernels
    assert found.explanation.analysis.lds_bytes == 32768
    assert found.explanation.analysis.occupancy.workgroups == 2
    less = replace(kernel, lds_bytes=0)
    profile = _profile(less, {}, 8000)
    (found,) = explain_kernels(profile, summarise(profile), device, [file]).kernels
    assert found.explanation.analysis.occupancy.workgroups == 8


def test_code_needs_a_chip_and_a_file(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("Kernel_Name,Start_Timestamp,End_Timestamp\nk,10,20\n")
    with pytest.raises(UsageError, match="the chip is not known"):
        profiles(table, code=[tmp_path / "k.hip"])
    with pytest.raises(InputError, match="no such file"):
        profiles(table, "mi300x", code=[tmp_path / "k.hip"])
