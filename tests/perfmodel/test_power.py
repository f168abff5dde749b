"""The sustained clock against published clocks of large matrix products."""

from __future__ import annotations

import numpy as np
import pytest

from tests.analyze.support import program
from wavecast import arch
from wavecast.errors import MissingFact
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.power import shape_energy, sustained_clock

PUBLISHED = [
    ("mi300x", "fp16", 0.94, 1115e6),
    ("mi300x", "bf16", 0.94, 1207e6),
    ("mi300x", "fp8", 0.83, 1230e6),
    ("mi325x", "fp16", 0.94, 1354e6),
    ("mi325x", "bf16", 0.94, 1447e6),
    ("mi325x", "fp8", 0.83, 1464e6),
]
"""Engine clocks AMD published for its largest hipBLASLt products (max-achievable FLOPs); activity
is the published FLOP/s over the matrix rate at that clock."""


@pytest.mark.parametrize(("device", "dtype", "activity", "clock"), PUBLISHED)
def test_published_clocks(device: str, dtype: str, activity: float, clock: float):
    found = sustained_clock(Chip.of(arch.load(device)), dtype, activity)
    assert found == pytest.approx(clock, rel=0.03)


def test_the_clock_falls_with_activity_and_never_exceeds_the_peak():
    chip = Chip.of(arch.load("mi355x"))
    clocks = np.asarray(sustained_clock(chip, "bf16", np.linspace(0, 1, 50)))
    assert clocks.max() == pytest.approx(chip.clock)
    assert (np.diff(clocks) <= 0).all()
    assert clocks[-1] < 0.8 * chip.clock


def test_power_at_the_clock_found_is_the_limit():
    chip = Chip.of(arch.load("mi300x"))
    clock = float(sustained_clock(chip, "bf16", 0.9))
    slope = chip.coefficient("power", "voltage_rise")
    energy = chip.coefficient("power", "energy_bf16")
    dynamic = 304 * 2048 * 0.9 * energy * clock * (1 + slope * clock) ** 2
    static = chip.coefficient("power", "static_fraction") * 750
    assert dynamic + static == pytest.approx(750, rel=0.01)


def test_without_a_power_limit_or_matrix_work_the_clock_is_the_peak():
    unlimited = Chip.of(arch.load("mi308x"))
    assert sustained_clock(unlimited, "fp8", 1.0) == unlimited.clock
    chip = Chip.of(arch.load("mi300x"))
    assert sustained_clock(chip, "", 1.0) == chip.clock


def test_wide_results_take_more_energy():
    """As fp16 products of 32 x 32 and of 16 x 16 on one MI300X at its limit: 1,023 MHz beside
    1,166 (ROCm/gfx950-gluon-tutorials, kernels/gemm/gfx942)."""
    chip, each = Chip.of(arch.load("mi300x")), " v_mfma_f32_{} v[0:{}], v[2:3], v[4:5], v[0:{}]"
    clocks = []
    for shape, last in (("16x16x16_f16", 3), ("32x32x8_f16", 15)):
        body = program(each.format(shape, last, last))
        energy = shape_energy(body, np.array([16.0, 0.0]), chip.device)
        clocks.append(float(sustained_clock(chip, "fp16", 0.84 * energy)))
    assert clocks[1] / clocks[0] == pytest.approx(1023 / 1166, rel=0.03)


def test_a_dtype_without_rate_is_refused():
    with pytest.raises(MissingFact, match="fp4"):
        sustained_clock(Chip.of(arch.load("mi300x")), "fp4", 0.5)
