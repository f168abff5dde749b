"""Bandwidth by level, residency of streamed footprints, concurrency."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wavecast import arch
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import (
    Traffic,
    hbm_bandwidth,
    overlap_time,
    residency,
    seconds,
    transfer,
)


def chip(name: str) -> Chip:
    return Chip.of(arch.load(name))


def test_a_footprint_that_fits_stays():
    assert residency(0.5, 1.0) == 1.0
    assert residency(1.0, 1.0) == 1.0


@pytest.mark.parametrize("pressure", [1.25, 2.0, 5.0])
def test_residency_solves_its_equation(pressure: float):
    held = float(residency(pressure, 1.0))
    assert held == pytest.approx(math.exp(-(1 - held) * pressure), rel=2e-2)


def test_random_replacement_by_simulation():
    lines, capacity = 600, 400
    rng = np.random.default_rng(0)
    where = {}
    slots = [-1] * capacity
    hits = 0
    for turn in range(60):
        for line in range(lines):
            if line in where:
                hits += turn >= 20
                continue
            slot = int(rng.integers(capacity))
            where.pop(slots[slot], None)
            slots[slot], where[line] = line, slot
    assert hits / (40 * lines) == pytest.approx(float(residency(lines, capacity)), abs=0.03)


def test_large_transfers_are_bound_by_memory():
    device = chip("mi210")
    parts = transfer(device, Traffic(5e8, 5e8))
    assert max(parts, key=lambda name: parts[name]) == "HBM"
    assert parts["HBM"] == pytest.approx(1e9 / hbm_bandwidth(device), rel=1e-2)


def test_what_the_l2_holds_does_not_reach_memory():
    assert transfer(chip("mi210"), Traffic(1e6, 1e6))["HBM"] == 0
    cold = transfer(chip("mi210"), Traffic(1e6, 1e6, warm=False))
    assert cold["HBM"] == pytest.approx(2e6 / hbm_bandwidth(chip("mi210")))


def test_cold_data_read_twice_misses_once():
    parts = transfer(chip("mi210"), Traffic(2e6, 0.0, footprint=1e6, warm=False))
    assert parts["HBM"] == pytest.approx(1e6 / hbm_bandwidth(chip("mi210")))


def test_other_kernels_leave_the_l2_of_several_dies_empty():
    apart, alone = (Traffic(1e5, 1e5, shared=shared) for shared in (True, False))
    for name, kept in (("mi300x", False), ("mi210", True)):
        below = "memory-side cache" if name == "mi300x" else "HBM"
        assert transfer(chip(name), alone)[below] == 0
        assert bool(transfer(chip(name), apart)[below] == 0) is kept


def test_other_kernels_take_room_in_caches():
    device = chip("mi210")
    size = device.l2_bytes * device.coefficient("memory", "cache_share")
    assert transfer(device, Traffic(size / 2, size / 2))["HBM"] == 0
    assert transfer(device, Traffic(size / 2, size / 2, shared=True))["HBM"] > 0


def test_memory_side_cache_keeps_what_the_l2_cannot():
    parts = transfer(chip("mi300x"), Traffic(4e7, 4e7))
    assert parts["HBM"] == 0
    assert parts["memory-side cache"] > parts["L2"]


def test_concurrency_limits_bandwidth():
    device = chip("mi300x")
    few = 64 * 1024.0
    traffic = Traffic(1e8, 0.0, warm=False)
    waits = transfer(device, traffic, few)["latency"]
    assert waits == pytest.approx(traffic.moved * device.latency["hbm"] / few)
    near = transfer(device, Traffic(1e5, 0.0), few)["latency"]
    assert near == pytest.approx(1e5 * device.latency["l2"] / few)
    assert seconds(device, traffic, few) > 5 * seconds(device, traffic)


def test_arrays_broadcast():
    sizes = np.array([1e6, 1e8])
    together = seconds(chip("mi210"), Traffic(sizes, sizes))
    one = [float(seconds(chip("mi210"), Traffic(size, size))) for size in sizes]
    assert np.allclose(together, one)


def test_overlap_is_between_the_longest_and_the_sum():
    assert 3.0 < float(overlap_time([1.0, 3.0], 4.0)) < 4.0
    assert float(overlap_time([0.0, 0.0], 4.0)) == pytest.approx(0.0)
