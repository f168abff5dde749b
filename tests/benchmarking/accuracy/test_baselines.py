"""Baselines: the nearest other problem, the sustained roofline."""

from __future__ import annotations

import math

import pytest

from tests.benchmarking.accuracy.sample import Copy
from wavecast import arch
from wavecast.benchmarking.accuracy import baselines
from wavecast.perfmodel.chip import Chip


def test_the_nearest_is_near_in_ratio_not_in_difference() -> None:
    ops = [Copy(1000), Copy(1900), Copy(100)]
    found = baselines.neighbours(ops, ["mi300x"] * 3, [""] * 3, [1.0, 2.0, 3.0])
    assert found == [2.0, 1.0, 1.0]
    ops = [Copy(1000), Copy(2500), Copy(500)]
    assert baselines.neighbours(ops, ["mi300x"] * 3, [""] * 3, [1.0, 2.0, 3.0])[0] == 3.0


def test_neighbours_share_device_and_everything_that_is_no_size() -> None:
    ops = [Copy(1000), Copy(1001, "bf16"), Copy(1002, fast=True), Copy(1003)]
    devices = ["mi300x", "mi300x", "mi300x", "mi355x"]
    found = baselines.neighbours(ops, devices, [""] * 4, [1.0] * 4)
    assert all(math.isnan(value) for value in found)


def test_alternatives_of_one_problem_are_no_neighbours() -> None:
    ops = [Copy(1000), Copy(1001), Copy(2000)]
    found = baselines.neighbours(ops, ["mi300x"] * 3, ["a", "a", "b"], [1.0, 2.0, 3.0])
    assert found == [3.0, 3.0, 2.0]
    alone = baselines.neighbours(ops[:2], ["mi300x"] * 2, ["a", "a"], [1.0, 2.0])
    assert all(math.isnan(value) for value in alone)


def test_many_problems_are_compared_in_blocks() -> None:
    sizes = [int(1.01**step * 1000) for step in range(1200)]
    ops, devices = [Copy(size) for size in sizes], ["mi300x"] * 1200
    found = baselines.neighbours(ops, devices, [""] * 1200, list(range(1200)))
    assert all(abs(near - index) == 1 for index, near in enumerate(found))


def test_roofline_of_a_copy() -> None:
    device = arch.load("mi300x")
    found = baselines.roofline_seconds(Copy(10**9), device)
    assert found == pytest.approx(2e9 / Chip.of(device).hbm)
