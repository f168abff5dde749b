"""Figures of measurements as text."""

from __future__ import annotations

import pytest

from wavecast.benchmarking.records import Figure
from wavecast.report.bench.measurements_table import figure


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.93e-3, 1.6e-3, "1 ms -7%/+60%"), (1e-3, 2e-3, "1 ms +0%/+100%"), (None, None, "1 ms")],
)
def test_a_prediction_has_both_ends_of_its_interval(
    low: float | None, high: float | None, text: str
) -> None:
    shown = figure("predicted_seconds", Figure(1e-3, "predicted", low=low, high=high))
    assert shown.replace("1.00 ms", "1 ms").replace("1.0 ms", "1 ms") == text
