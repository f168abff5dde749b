"""The importer of published matrix products."""

from __future__ import annotations

from typing import Any

import pytest

from tests.calibration.support import importer
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.perfmodel.ops.gemm import Gemm

pd = pytest.importorskip("pandas")

PUBLISHED: dict[str, Any] = {
    "source_path": "results.json",
    "arch": "gfx942",
    "device": "MI325X",
    "dtype_a": "bf16",
    "M": 4096,
    "N": 4096,
    "K": 4096,
    "batch": 1,
    "library": "torch(hipBLASLt)",
    "kernel": "torch",
    "cus_used": float("nan"),
    "time_us": 180.0,
}


def case(row: dict[str, Any], name: str, **fields: Any) -> Case:
    frame = pd.DataFrame([{**row, **fields}])
    data = importer(frame.columns)
    assert data.name == name
    (found,) = data.cases(frame)
    assert isinstance(found, Case)
    return found


def product(found: Case) -> Gemm:
    assert isinstance(found.op, Gemm), found.reason
    return found.op


def test_published():
    found = case(PUBLISHED, "gemm_published")
    assert found.device == "mi325x"
    assert product(found).library == "blas"
    assert product(case(PUBLISHED, "gemm_published", cus_used=152.0)).units == 152
    scaled = case(
        PUBLISHED,
        "gemm_published",
        library="ck",
        kernel="blockscale preshuffle=False",
        dtype_a="fp8",
    )
    assert product(scaled).scaling == "block"


def test_names_of_swept_configurations_say_tile_and_waves():
    kernel = "all_results 256x128x64 GM4 warps8 wpe1 kpack1 mfma32 cachenone"
    op = product(case(PUBLISHED, "gemm_published", library="tritonBLAS", kernel=kernel))
    assert (op.library, op.tile, op.waves) == ("triton", (256, 128, 128), 8)


def test_rows_faster_than_their_compute_units_make_the_restricted_ones_of_their_file_doubtful():
    def reasons(us: float) -> list[str]:
        limited = {**PUBLISHED, "row_flags": "restricted_cus"}
        frame = pd.DataFrame(
            [
                {**limited, "cus_used": 24.0, "time_us": us},
                {**limited, "cus_used": 152.0, "time_us": 900.0},
                {**PUBLISHED, "cus_used": 304.0},
                {**limited, "cus_used": 152.0, "time_us": 900.0, "source_path": "other.json"},
            ]
        )
        found = [*importer(frame.columns).cases(frame)]
        return [one.reason for one in found if isinstance(one, Case)]

    assert reasons(2000.0) == ["", "", "", ""]
    doubted = "the file's numbers of compute units are not those that ran"
    assert reasons(200.0) == [doubted, doubted, "", ""]


def test_calls_on_an_idle_gpu_are_told_from_calls_in_a_row():
    def timing(path: str, library: str) -> str:
        source = {"source_repo": "ROCm/tritonBLAS", "source_path": f"results/{path}.json"}
        return product(case(PUBLISHED, "gemm_published", library=library, **source)).timing

    assert timing("plot_data/cu_sweep", "torch(hipBLASLt)") == "eager"
    assert timing("plot_data/cu_sweep", "tritonBLAS") == "eager, python"
    assert timing("autoresearch/kloop_sweep", "tritonBLAS") == "launch"


def test_rows_of_one_published_problem_are_alternatives():
    first = case(PUBLISHED, "gemm_published")
    second = case(PUBLISHED, "gemm_published", library="hipkittens")
    assert first.problem == second.problem
    assert first.op != second.op
