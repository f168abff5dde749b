"""Times of tile kernels from hand-made demands."""

from __future__ import annotations

import numpy as np
import pytest

from wavecast import arch
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.demand import WorkgroupDemand
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.solve import COEFFICIENTS, solve

KNOWN = dict.fromkeys(COEFFICIENTS, 1.0) | {
    "call": 1e-6,
    "exposed": 0.0,
    "store_rate": 10.0,
    "combine_call": 2e-6,
}
CHIP = Chip.of(arch.load("mi300x"))
CLOCK = 2.1e9


def seconds(demand: WorkgroupDemand, **changed: float) -> float:
    return float(solve(demand, CHIP, {**KNOWN, **changed}).seconds)


@pytest.mark.parametrize(
    ("workgroups", "rounds"), [(1, 1), (304, 1), (305, 2), (608, 2), (1000, 4)]
)
def test_the_busiest_unit_decides(workgroups: int, rounds: int):
    found = seconds(WorkgroupDemand(workgroups=workgroups, matrix=21_000))
    assert found == pytest.approx(1e-6 + rounds * 10e-6)


def test_an_incomplete_round_counts_in_part():
    half = seconds(WorkgroupDemand(workgroups=304 * 1.5, matrix=21_000), tail=0.5)
    assert half == pytest.approx(1e-6 + 1.75 * 10e-6)


def test_pipes_add_to_the_busiest():
    demand = WorkgroupDemand(workgroups=304, matrix=21_000, lds=128 * 2_100, serial=0.5)
    assert seconds(demand) == pytest.approx(1e-6 + 10e-6 + 0.5e-6)


def test_waits_hide_half_behind_work_and_behind_resident_workgroups():
    demand = WorkgroupDemand(workgroups=608, matrix=2_100 * 3, latency=8e-6)
    assert seconds(demand) == pytest.approx(1e-6 + np.hypot(6e-6, 16e-6))
    resident = WorkgroupDemand(workgroups=608, matrix=2_100 * 3, latency=8e-6, resident=2)
    assert seconds(resident) == pytest.approx(1e-6 + np.hypot(6e-6, 8e-6))


def test_asynchronous_copies_hide_nearly_all():
    demand = WorkgroupDemand(workgroups=304, matrix=21_000, latency=5e-6, asynchronous=1.0)
    assert seconds(demand) == pytest.approx(1e-6 + (10e-6**4 + 5e-6**4) ** 0.25)


def test_memory_and_the_part_of_it_that_is_not_hidden():
    demand = WorkgroupDemand(workgroups=304, matrix=21_000, read=5.325e12 * 4e-6)
    assert seconds(demand) == pytest.approx(11e-6)
    assert seconds(demand, exposed=0.5) == pytest.approx(13e-6)
    assert seconds(demand, hbm_share=0.1) == pytest.approx(41e-6)


def test_results_are_stored_by_element():
    """Addresses, not bytes: a result of 32 bits leaves as fast as one of 16."""
    half, single = (
        Gemm(m=4096, n=4096, k=64, dtype="fp16", out=out, library="tensile", tile=(64, 64, 64))
        for out in ("fp16", "fp32")
    )
    device = arch.load("rx7900xtx")
    assert single.predict(device).bounds["store"] == half.predict(device).bounds["store"] > 0


def test_stores_and_partial_sums():
    stored = WorkgroupDemand(workgroups=304, matrix=21_000, stored=21_000)
    assert seconds(stored) == pytest.approx(12e-6)
    split = WorkgroupDemand(workgroups=304, matrix=21_000, combined=5.325e12 * 3e-6, combining=1.0)
    assert seconds(split) == pytest.approx(1e-6 + 10e-6 + 3e-6 + 2e-6)


def test_configurations_broadcast_and_the_parts_of_the_best_are_its_own():
    demand = WorkgroupDemand(workgroups=np.array([304, 608]), matrix=np.array([21_000, 4_200]))
    found = solve(demand, CHIP, KNOWN)
    assert found.seconds == pytest.approx([11e-6, 5e-6])
    assert found.best() == 1
    assert found.at(1)["matrix"] == pytest.approx(4e-6)
    assert found.clock_at(1) == CLOCK


def test_power_slows_matrix_work():
    idle = WorkgroupDemand(workgroups=304, matrix=2.1e6)
    assert seconds(idle) == pytest.approx(1.001e-3)
    busy = WorkgroupDemand(workgroups=304, matrix=2.1e6, dtype="bf16")
    assert 1.5e-3 < seconds(busy) < 2e-3
