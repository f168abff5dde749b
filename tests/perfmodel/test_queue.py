"""Launches and copies one after the other, against times by hand."""

from __future__ import annotations

import pytest

from wavecast import arch
from wavecast.errors import UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.queue import Copy, Fill, HostWait, Launches, elapsed_time

DEVICE = arch.load("mi300a")
CHIP = Chip.of(DEVICE)
KNOWN = coefficients.values("queue", DEVICE)


def test_one_launch_takes_its_time_and_the_overhead() -> None:
    assert elapsed_time(CHIP, [Launches(1e-3)]) == pytest.approx(CHIP.launch + 1e-3, rel=2e-3)
    assert elapsed_time(CHIP, [Launches(0.0)]) == pytest.approx(CHIP.launch)


def test_short_launches_wait_for_the_host_and_long_ones_for_each_other() -> None:
    short = elapsed_time(CHIP, [Launches(0.0, 1001)]) - elapsed_time(CHIP, [Launches(0.0)])
    assert short == pytest.approx(1000 * KNOWN["submit"])
    long = elapsed_time(CHIP, [Launches(1e-4, 1001)]) - elapsed_time(CHIP, [Launches(1e-4)])
    assert long == pytest.approx(1000 * (1e-4 + KNOWN["gap"]))


def test_copies_through_the_buffer_and_over_the_link() -> None:
    small = elapsed_time(CHIP, [Copy("h2d", 1 << 20)])
    large = elapsed_time(CHIP, [Copy("d2h", 1 << 30)])
    assert small > (1 << 20) / KNOWN["staged_bandwidth"]
    assert large == pytest.approx((1 << 30) / KNOWN["host_bandwidth"], rel=1e-2)


def test_copies_within_the_device_are_kernels() -> None:
    found = elapsed_time(CHIP, [Copy("d2d", 1 << 29)])
    assert 2 * (1 << 29) / found > 2e12
    assert elapsed_time(CHIP, [Fill(1 << 29)]) < found


def test_waiting_costs_time() -> None:
    assert elapsed_time(CHIP, [Launches(0.0), HostWait()]) > elapsed_time(CHIP, [Launches(0.0)])


def test_an_unknown_copy_is_refused() -> None:
    with pytest.raises(UsageError, match="d2h"):
        elapsed_time(CHIP, [Copy("sideways", 4)])
