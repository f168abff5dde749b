"""The adapters of tuned, published and Tensile matrix products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wavecast.bench.accuracy.datasets import Case, Given, recognise
from wavecast.model.ops.gemm import Gemm

pd = pytest.importorskip("pandas")

TUNED: dict[str, Any] = {
    "source_path": "configs/a.csv",
    "arch": "gfx950",
    "cu_count": 256.0,
    "dtype_a": "fp8_e4m3fn",
    "dtype_out": "bf16",
    "scaling": "block: A 1x128, B 128x128, fp32 scales",
    "b_preshuffled": True,
    "bias": "",
    "M": 64,
    "N": 7168,
    "K": 2048,
    "batch": 1,
    "library": "ck",
    "kernel": "a8w8",
    "split_k": "0",
    "time_us": 12.5,
}
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
TENSILE: dict[str, Any] = {
    "source_path": "navi31.yaml",
    "arch": "gfx1100",
    "cu_count": 96.0,
    "dtype_a": "fp16",
    "dtype_out": "fp32",
    "transA": "N",
    "transB": "T",
    "M": 1024,
    "N": 512,
    "K": 256,
    "batch": 1,
    "kernel": "Cijk_Ailk_Bjlk_HSS_BH_MT64x32x16_MI16x16x16x1_SN_GSU2",
    "sol_index": 3,
    "time_us": 20.0,
}


def case(row: dict[str, Any], name: str, **fields: Any) -> Case:
    frame = pd.DataFrame([{**row, **fields}])
    data = recognise(frame.columns, Path("file.parquet"))
    assert data.name == name
    (found,) = data.cases(frame, Given())
    assert isinstance(found, Case)
    return found


def product(found: Case) -> Gemm:
    assert isinstance(found.op, Gemm), found.reason
    return found.op


def test_tuned():
    found = case(TUNED, "gemm_tuned")
    assert found.device == "mi355x"
    assert found.seconds == pytest.approx(12.5e-6)
    op = product(found)
    assert (op.m, op.n, op.k, op.dtype) == (64, 7168, 2048, "fp8")
    assert (op.scaling, op.layout, op.library, op.tile) == ("block", "preshuffled", "", None)


def test_the_library_that_won_is_shown_and_not_told():
    first, second = case(TUNED, "gemm_tuned"), case(TUNED, "gemm_tuned", library="asm")
    assert first.op == second.op
    assert second.labels["library"] == "asm"


def test_a_tuned_row_without_compute_units_is_not_predicted():
    found = case(TUNED, "gemm_tuned", cu_count=float("nan"), arch="gfx942")
    assert found.device == ""
    assert "not stated" in found.reason


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


def test_rows_of_one_published_problem_are_alternatives():
    first = case(PUBLISHED, "gemm_published")
    second = case(PUBLISHED, "gemm_published", library="hipkittens")
    assert first.problem == second.problem
    assert first.op != second.op


def test_tensile_names_say_the_tile():
    found = case(TENSILE, "gemm_tensile")
    assert found.device == "rx7900xtx"
    op = product(found)
    assert (op.tile, op.splits, op.library) == ((64, 32, 32), 2, "tensile")


def test_what_is_not_modelled_says_so():
    found = case(TENSILE, "gemm_tensile", dtype_a="c64", dtype_out="c64")
    assert found.op is None
    assert "c64" in found.reason
