"""Intervals of predictions: which residuals are taken, and what is said about them."""

from __future__ import annotations

import math

import pytest

from wavecast import arch
from wavecast.model import intervals
from wavecast.model.intervals import Residuals
from wavecast.model.prediction import Prediction

GENERAL = ("any", "", "", "", "")
ROWS = {
    GENERAL: Residuals(-0.8, 0.8, 0),
    ("gemm", "tile", "gfx942", "hbm", ""): Residuals(-0.1, 0.2, 90),
    ("gemm", "tile", "gfx942", "", ""): Residuals(-0.3, 0.3, 500),
    ("gemm", "", "", "", ""): Residuals(-0.5, 0.5, 500),
    ("softmax", "formula", "gfx942", "", ""): Residuals(0.05, 0.2, 70),
}


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "table", lambda: ROWS)


def predicted(fidelity: str = "tile", limiter: str = "hbm") -> Prediction:
    return Prediction("mi300x", 1e-3, 1e-3, 1e-3, limiter, fidelity, {limiter: 1e-3})


@pytest.mark.parametrize(
    ("fidelity", "limiter", "width"), [("tile", "hbm", (-0.1, 0.2)), ("tile", "lds", (-0.3, 0.3))]
)
def test_the_narrowest_row_is_taken(
    rows: None, fidelity: str, limiter: str, width: tuple[float, float]
) -> None:
    found = intervals.bracketed(predicted(fidelity, limiter), "gemm", arch.load("mi300x"))
    assert found.low == pytest.approx(1e-3 * math.exp(width[0]))
    assert found.high == pytest.approx(1e-3 * math.exp(width[1]))
    assert found.notes == ()


def test_a_target_without_measurements_is_wider_and_says_so(rows: None) -> None:
    found = intervals.bracketed(predicted(), "gemm", arch.load("mi355x"))
    assert found.high == pytest.approx(1e-3 * math.exp(0.5))
    assert found.notes == ("gemm was not measured on gfx950",)


def test_an_op_without_measurements_gets_all_ops(rows: None) -> None:
    found = intervals.bracketed(predicted(), "all_gather", arch.load("mi300x"))
    assert found.low == pytest.approx(1e-3 * math.exp(-0.8))
    assert found.notes == ("no measurements of all_gather to judge the error by",)


def test_the_interval_holds_the_prediction_and_widens(rows: None) -> None:
    device = arch.load("mi300x")
    found = intervals.bracketed(predicted("formula", ""), "softmax", device, widen=2.0)
    assert found.low == found.seconds
    assert found.high == pytest.approx(1e-3 * math.exp(0.4))


def test_the_packaged_table_is_sound() -> None:
    rows = intervals.table()
    assert GENERAL in rows
    assert all(row.low <= row.high for row in rows.values())
    assert all(row.n > 0 for key, row in rows.items() if key != GENERAL)


@pytest.mark.parametrize(
    ("seconds", "name"), [(9e-6, "<10 µs"), (1e-5, "10–100 µs"), (2.0, "≥1 ms")]
)
def test_size_classes(seconds: float, name: str) -> None:
    assert intervals.size_class(seconds) == name
