"""The importer of MIOpen's find-db."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wavecast.benchmarking.accuracy import importers
from wavecast.benchmarking.accuracy.cases import NO_TIME, Case
from wavecast.perfmodel.ops.convolution import Convolution

pd = pytest.importorskip("pandas")

ROW: dict[str, Any] = {
    "source_path": "a.fdb.txt",
    "arch": "gfx90a",
    "cu_count": 110,
    "device": "MI250X GCD (110 CU)",
    "direction": "B",
    "dtype": "fp16",
    "layout": "NCHW",
    "N": 32,
    "C": 64,
    "D": 1,
    "H": 56,
    "W": 28,
    "K": 128,
    "Z": 1,
    "R": 3,
    "S": 1,
    "pad": "1x0",
    "stride": "2x1",
    "dilation": "1x1",
    "groups": 2,
    "solver": "ConvMlirIgemmBwdXdlops",
    "algo": "BwdDataAlgoImplicitGEMM",
    "time_us": 200.0,
}
SLOWER = {"solver": "ConvDirectNaiveConvBwd", "algo": "BwdDataAlgoDirect", "time_us": 900.0}


def test_the_device_need_not_be_named() -> None:
    frame = pd.DataFrame([ROW]).drop(columns="device").astype({"cu_count": float})
    frame["cu_count"] = float("nan")
    (case,) = importers.importer("conv_miopen").cases(frame)
    assert isinstance(case, Case)
    assert case.device == "mi210"


def cases(*rows: dict[str, Any]) -> list[Case]:
    frame = pd.DataFrame([{**ROW, **row} for row in rows])
    importer = importers.by_columns(importers.all_importers(), frame.columns, Path("a.parquet"))
    return [case for case in importer.cases(frame) if isinstance(case, Case)]


def test_the_solvers_of_a_problem_are_one_case_with_the_fastest() -> None:
    first, second = cases(SLOWER, {}, {"N": 64})
    assert first.op == Convolution(
        32, 64, (56, 28), 128, (3, 1), (2, 1), (1, 0), (1, 1), 2, "data", "fp16", "nchw"
    )
    assert (first.device, first.seconds) == ("mi250x_gcd", pytest.approx(200e-6))
    assert first.chosen == {"algorithm": "implicit GEMM"}
    assert first.labels == {"dtype": "fp16", "direction": "data", "layout": "NCHW"}
    assert isinstance(second.op, Convolution)
    assert second.op.n == 64


def test_volumes_and_channels_last() -> None:
    volume = {"layout": "NCDHW", "pad": "0x1x1", "stride": "1x1x1", "dilation": "1x1x1", "D": 4}
    (deep,) = cases({**volume, "S": 3})
    assert isinstance(deep.op, Convolution)
    assert (deep.op.image, deep.op.filter) == ((4, 56, 28), (1, 3, 3))
    (last,) = cases({"layout": "NHWC-NHWC-NHWC", "direction": "W"})
    assert isinstance(last.op, Convolution)
    assert (last.op.layout, last.op.direction) == ("nhwc", "weights")


def test_the_reference_kernel_is_an_algorithm_of_its_own() -> None:
    (case,) = cases(SLOWER)
    assert case.chosen == {"algorithm": "naive"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"layout": "NCHW-NHWC-NCHW"}, "nchw, nhwc"),
        ({"R": 99}, "does not fit"),
        ({"dtype": "fp64"}, "fp64"),
        ({"arch": "gfx900", "cu_count": 64, "device": "Vega"}, "no known device"),
    ],
)
def test_rows_that_cannot_be_predicted_say_why(row: dict[str, Any], reason: str) -> None:
    (case,) = cases(row)
    assert reason in case.reason


def test_rows_without_a_time_are_cases_of_their_own() -> None:
    first, *others = cases({"time_us": "fast"}, {}, {"time_us": 0.0}, {"N": 64, "time_us": -1.0})
    assert (first.seconds, first.reason) == (pytest.approx(200e-6), "")
    assert [(case.op, case.reason) for case in others] == [(None, NO_TIME)] * 3
