"""The importers of tuned and Tensile matrix products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wavecast.benchmarking.accuracy import importers
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.perfmodel.ops.gemm import Gemm

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
    data = importers.by_columns(importers.all_importers(), frame.columns, Path("file.parquet"))
    assert data.name == name
    (found,) = data.cases(frame)
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


def test_the_library_that_won_is_a_label_only():
    first, second = case(TUNED, "gemm_tuned"), case(TUNED, "gemm_tuned", library="asm")
    assert first.op == second.op
    assert second.labels["library"] == "asm"


def test_a_tuned_row_without_compute_units_is_not_predicted():
    found = case(TUNED, "gemm_tuned", cu_count=float("nan"), arch="gfx942")
    assert found.device == ""
    assert "not stated" in found.reason


def test_tensile_names_say_the_tile():
    found = case(TENSILE, "gemm_tensile")
    assert found.device == "rx7900xtx"
    op = product(found)
    assert (op.tile, op.splits, op.library) == ((64, 32, 32), 2, "tensile")
    assert op.timing == "launch, client"


def test_the_path_of_logic_says_whose_it_is():
    path = "library/src/blas3/Tensile/Logic/asm_full/navi33/navi33_Cijk_Ailk_Bljk_HB.yaml"
    op = product(case(TENSILE, "gemm_tensile", source_path=path))
    assert (op.library, op.timing) == ("rocblas", "launch, client, warm")
    path = "library/src/amd_detail/rocblaslt/src/Tensile/Logic/asm_full/navi32/navi32.yaml"
    op = product(case(TENSILE, "gemm_tensile", source_path=path))
    assert (op.library, op.timing) == ("tensile", "launch, client")


def test_what_is_not_modelled_says_so():
    found = case(TENSILE, "gemm_tensile", dtype_a="c64", dtype_out="c64")
    assert found.op is None
    assert "c64" in found.reason
