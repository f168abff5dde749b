"""Intervals of predictions: which residuals are taken, and what is reported about them."""

from __future__ import annotations

import math

import pytest

from wavecast import arch
from wavecast.perfmodel import intervals
from wavecast.perfmodel.distance import (
    RELATED,
    Distance,
    DistanceClass,
    Measured,
    MeasuredRange,
    PredictionSubject,
    features,
)
from wavecast.perfmodel.intervals import Residuals, ResidualTable
from wavecast.perfmodel.prediction import Prediction

SIZES = {"FLOPs": 1e9, "bytes": 1e6}
GEMM = PredictionSubject("gemm", "", "bf16", SIZES)


def measured(family: str, device: str, library: str = "", dtype: str = "bf16") -> MeasuredRange:
    return MeasuredRange(
        family, device, library, dtype, 50,
        {"FLOPs": (1e8, 1e10), "bytes": (1e5, 1e8), "FLOPs per bytes": (10.0, 2e3)},
    )  # fmt: skip


def row(low: float, high: float, source: str) -> Residuals:
    return Residuals(low, high, 100, 7, source)


KNOWN = ResidualTable(
    {
        ("measured", "gemm", "mi300x", "best"): row(-0.1, 0.2, "narrow"),
        ("measured", "gemm", "", "ck"): row(-0.2, 0.3, "gemm"),
        ("library not measured", "", "", ""): row(-0.5, 0.4, "libraries"),
        ("chip not measured", "gemm", "", ""): row(-0.4, 0.5, "chips"),
        ("chip and library not measured", "", "", ""): row(0.1, 0.9, "all"),
    },
    Measured([measured("gemm", "mi300x"), measured("gemm", "mi308x", "ck"),
              measured("kernel", "mi300a", "HIP, executed sample", "")]),
)  # fmt: skip


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "table", lambda: KNOWN)


def predicted() -> Prediction:
    return Prediction("mi300x", 1e-3, 1e-3, 1e-3, "hbm", "tile", {"hbm": 1e-3})


@pytest.mark.parametrize(
    ("subject", "device", "distance"),
    [
        (GEMM, "mi300x", "measured"),
        (PredictionSubject("gemm", "", "fp8", SIZES), "mi300x", "other sizes or dtype"),
        (PredictionSubject("gemm", "", "bf16", {"FLOPs": 1e12, "bytes": 1e6}), "mi300x",
         "other sizes or dtype"),
        (PredictionSubject("gemm", "", "bf16", {"FLOPs": 1e8, "bytes": 1e8}), "mi300x",
         "other sizes or dtype"),
        (PredictionSubject("gemm", "", "bf16"), "mi300x", "measured"),
        (PredictionSubject("gemm", "ck", "bf16", SIZES), "mi300x", "library not measured"),
        (PredictionSubject("gemm", "ck", "bf16", SIZES), "mi325x", "chip not measured"),
        (PredictionSubject("gemm", "ck", "bf16", SIZES), "mi355x", "target not measured"),
        (PredictionSubject("gemm", "asm", "bf16", SIZES), "mi355x",
         "chip and library not measured"),
        (PredictionSubject("conv"), "mi300x", "chip and library not measured"),
    ],
)  # fmt: skip
def test_distance_classes(subject: PredictionSubject, device: str, distance: str) -> None:
    assert KNOWN.measured.distance(subject, device).distance_class.value == distance


def test_a_family_that_was_not_measured_is_far() -> None:
    assert Distance(False, True, True, True, True, True).distance_class is DistanceClass.FAR


def test_features_have_the_ratio_of_sizes() -> None:
    assert features(SIZES) == {**SIZES, "FLOPs per bytes": 1e3}


@pytest.mark.parametrize(
    ("subject", "device", "ends", "source", "wider"),
    [
        (GEMM, "mi300x", (-0.1, 0.2), "narrow", ""),
        (PredictionSubject("gemm", "ck", "bf16", SIZES), "mi308x", (-0.2, 0.3), "gemm", ""),
        (PredictionSubject("gemm", "", "fp8", SIZES), "mi300x", (-0.5, 0.4), "libraries",
         "too few left-out groups: other sizes or dtype"),
        (PredictionSubject("gemm", "ck", "bf16", SIZES), "mi300x", (-0.5, 0.4), "libraries", ""),
        (PredictionSubject("gemm", "ck", "bf16", SIZES), "mi325x", (-0.4, 0.5), "chips", ""),
        (PredictionSubject("gemm", "ck", "bf16", SIZES), "mi355x", (0.0, 0.9), "all",
         "too few left-out groups: target not measured"),
        (PredictionSubject("conv"), "mi300x", (0.0, 0.9), "all", ""),
    ],
)  # fmt: skip
def test_the_narrowest_row_of_the_class_or_the_next_wider_is_taken(
    known: None, subject: PredictionSubject, device: str, ends: tuple[float, float],
    source: str, wider: str,
) -> None:  # fmt: skip
    found = intervals.with_interval(predicted(), subject, arch.load(device))
    assert found.low == pytest.approx(1e-3 * math.exp(ends[0]))
    assert found.high == pytest.approx(1e-3 * math.exp(ends[1]))
    assert found.basis is not None
    assert (found.basis.source, found.basis.wider) == (source, wider)
    assert (found.basis.problems, found.basis.groups) == (100, 7)


def test_a_triton_kernel_has_no_residuals_of_executed_hip_programs(known: None) -> None:
    """Other code, on the chip where HIP programs were measured."""
    subject = PredictionSubject("kernel", "Triton, predicted from code")
    found = intervals.with_interval(predicted(), subject, arch.load("mi300a"))
    assert found.basis is not None
    assert found.basis.distance == "library not measured"
    assert str(found.basis) == "library not measured: 100 residuals of 7 groups (libraries)"


def test_a_family_alone_is_a_subject(known: None) -> None:
    found = intervals.with_interval(predicted(), "gemm", arch.load("mi300x"), widen=2.0)
    assert found.basis is not None
    assert found.basis.distance == "other sizes or dtype"
    assert found.high == pytest.approx(1e-3 * math.exp(0.8))


def test_the_packaged_table_is_sound() -> None:
    known = intervals.table()
    assert ("chip and library not measured", "", "", "") in known.rows
    assert {key[0] for key in known.rows} <= {one.value for one in DistanceClass}
    for row in known.rows.values():
        assert row.low <= row.high
        assert row.problems >= row.groups >= 8
        assert row.source
    families = {one.family for one in known.measured.ranges}
    assert families >= {"gemm", "attention", "conv", "moe", "elementwise", "kernel"}
    assert {key[1] for key in known.rows} - {""} <= families | set(RELATED)


@pytest.mark.parametrize(
    ("seconds", "name"), [(9e-6, "<10 µs"), (1e-5, "10–100 µs"), (2.0, "≥1 ms")]
)
def test_size_classes(seconds: float, name: str) -> None:
    assert intervals.size_class(seconds) == name
