"""Capacities of chips: rates per clock, where a published peak is of another clock."""

from __future__ import annotations

import pytest

from wavecast import arch
from wavecast.perfmodel.chip import Chip


@pytest.mark.parametrize(
    ("device", "dtype", "rate", "clock"),
    [
        ("h100_sxm", "bf16", 4096, 1830e6),
        ("h100_sxm", "fp8", 8192, 1830e6),
        ("h100_sxm", "xf32", 2048, 1830e6),
        ("h200", "bf16", 4096, 1830e6),
        ("b200", "bf16", 8192, 1856e6),
        ("b200", "fp8", 16384, 1856e6),
    ],
)
def test_matrix_peaks_of_nvidia_are_of_a_lower_clock_than_the_highest(
    device: str, dtype: str, rate: float, clock: float
) -> None:
    chip = Chip.of(arch.load(device))
    assert chip.matrix_rate(dtype) == rate
    peak = arch.load(device).peak_flops(dtype)
    assert peak is not None
    assert peak.number / (chip.units * rate) == pytest.approx(clock, rel=0.002)
    assert clock < chip.clock


def test_without_a_rate_the_peak_is_of_the_highest_clock() -> None:
    assert Chip.of(arch.load("a100")).matrix_rate("bf16") == pytest.approx(2048, rel=0.001)
    assert Chip.of(arch.load("h100")).matrix_rate("fp64") == pytest.approx(256, rel=0.01)
