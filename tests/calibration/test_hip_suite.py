"""The steps of the HIP suite, and its data set."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from calibration import hip_suite
from calibration.datasets.hip_kernels import HipKernels
from calibration.hip_suite import Kernel
from tests.calibration.support import importer
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.queue import Copy, HostWait

SIZES = {
    "vectoradd": "1024", "relu": "1024", "memcopy_h2d": "1MB", "memcopy_d2h": "2MB",
    "memcopy_d2d": "4MB", "matrixtranspose": "64x64", "floydwarshall": "8_nodes",
    "fir": "1024_taps8", "simpleconvolution": "128x128_mask3", "kmeans": "pts1024_feat8_clus5",
    "bicg": "48x48", "atax": "48x48", "spmv_csr_scalar": "1024x1024_nnz4096",
    "nbody": "256_particles", "bitonicsort": "1024", "fastwalshtransform": "512",
    "fft1D_512": "512_elements", "im2col": "N1_C1_8x8_k3x3", "conv2d": "N1_C1_8x8_k3x3_OC3",
    "matrixmultiplication": "32x32x32", "nw": "length=128",
    "pagerank": "nodes64_sparsity0.5_priters2", "stencil2d": "64x64", "bfs": "nodes1024_8",
}  # fmt: skip


def kernels(program: str) -> list[Kernel]:
    steps = hip_suite.steps(program, SIZES[program])
    return [step for step in steps if isinstance(step, Kernel)]


@pytest.mark.parametrize("program", hip_suite.PROGRAMS)
def test_every_program_has_steps(program: str) -> None:
    steps = hip_suite.steps(program, SIZES[program])
    assert steps
    for step in steps:
        if isinstance(step, Kernel):
            assert min(*step.grid, *step.block) >= 1
            assert step.count > 0
    assert bool(kernels(program)) == bool(hip_suite.source(program))


def test_launches_are_counted_as_the_programs_make_them() -> None:
    assert sum(k.count for k in kernels("floydwarshall")) == 8
    assert sum(k.count for k in kernels("bitonicsort")) == 10 * 11 / 2
    assert len(kernels("fastwalshtransform")) == 9
    assert sum(k.count for k in kernels("nw")) == pytest.approx(2 + 1)
    assert sum(k.count for k in kernels("pagerank")) == 2


def test_many_diagonals_stand_for_all() -> None:
    steps = hip_suite.steps("nw", "length=4096")
    first = [s for s in steps if isinstance(s, Kernel) and s.name == "nw_kernel1"]
    assert len(first) < 8
    assert sum(k.count for k in first) == pytest.approx(64)
    assert sum(k.count * k.grid[0] for k in first) == pytest.approx(64 * 65 / 2)


def test_a_search_ends_with_a_level_that_finds_nothing() -> None:
    steps = hip_suite.steps("bfs", "nodes1024_8")
    assert isinstance(steps[-2], HostWait)
    assert steps[-1] == Copy("d2h", 4)
    assert len(kernels("bfs")) > 3


def test_a_search_needs_the_degree_of_its_graph() -> None:
    with pytest.raises(UsageError, match="bfs has no problem size 'nodes1024'"):
        hip_suite.steps("bfs", "nodes1024")


def test_launches_know_what_others_touch() -> None:
    (one,) = kernels("vectoradd")
    assert one.polluting_bytes == 0
    first, second = kernels("bicg")
    assert first.polluting_bytes == second.polluting_bytes == 48 * 48 * 4 + 2 * 48 * 4


def test_unknown_programs_and_sizes_are_refused() -> None:
    with pytest.raises(UnknownName):
        hip_suite.steps("raytracer", "1")
    with pytest.raises(UsageError, match="problem size"):
        hip_suite.steps("fir", "1024")


def test_rows_become_cases(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "kernel_name": ["vectoradd", "memcopy_d2h", "raytracer", "fir"],
            "problem_size": ["1024", "1MB", "8", "8"],
            "avg_ms": [0.005, 1.25, 1.0, 1.0],
            "arch": "gfx942",
            "device": "MI300A",
        }
    )
    without = list(importer(frame.columns).cases(frame))
    assert ["sources" in case.reason for case in without if isinstance(case, Case)] == [
        True, False, False, True,
    ]  # fmt: skip
    cases = list(importer(frame.columns, tmp_path).cases(frame))
    assert [bool(case.op) for case in cases if isinstance(case, Case)] == [True, True, False, False]
    assert cases[0].device == "mi300a"
    assert isinstance(cases[1], Case)
    assert cases[1].seconds == pytest.approx(1.25e-3)


def test_other_programs_of_microbenchmarks_become_cases(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "arch": "gfx942",
            "device": ["MI300A", "MI300A restricted to 120 CU", "MI300A"],
            "bench": "validation kernels",
            "metric": "nw",
            "param": ["problem_size=length=64,iterations=51", "problem_size=length=64,iterations=5",
                      "problem_size=64x64,iterations=5"],
            "value": 47.8,
            "unit": "us (min)",
        }
    )  # fmt: skip
    found = importer(frame.columns, tmp_path).cases(frame)
    cases = [case for case in found if isinstance(case, Case)]
    assert [str(case.op) if case.op else case.reason for case in cases] == [
        "nw length=64", "a part of a device", "nw has no problem size '64x64'",
    ]  # fmt: skip
    assert cases[0].seconds == pytest.approx(47.8e-6)
    without = list(importer(frame.columns).cases(frame))
    assert all(isinstance(case, Case) and case.op is None for case in without)


def test_problems_of_one_label_stay_apart() -> None:
    """The label of bfs does not tell the mean degree: its four runs are four problems."""
    frame = pd.DataFrame(
        [
            {"kernel_name": "bfs", "problem_size": size, "avg_ms": 1.0 + index, "arch": "gfx942",
             "device": "MI300A"}
            for size in ("nodes1024", "nodes4096")
            for index in range(4 if size == "nodes1024" else 3)
        ]
    )  # fmt: skip
    cases = [case for case in HipKernels(Path(".")).cases(frame) if isinstance(case, Case)]
    ops = [case.op for case in cases if case.op is not None]
    assert [str(op) for op in ops] == [f"bfs nodes1024_{degree}" for degree in (4, 8, 16, 32)]
    assert [case.reason for case in cases[4:]] == ["the label of bfs leaves an argument out"] * 3
