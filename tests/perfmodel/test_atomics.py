"""Atomics to few addresses: how many meet, and what that costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.perfmodel.sm_code import launch as ptx_launch
from tests.perfmodel.test_predict import profile
from tests.perfmodel.test_sm import profile as sass_profile
from tests.rules.support import memory
from wavecast import arch
from wavecast.perfmodel.atomics import addresses, at_one_address, busiest, operations
from wavecast.perfmodel.launches import changes_of, launch_timing
from wavecast.perfmodel.profile import LevelTraffic

MI300X = arch.load("mi300x")
H100 = arch.load("h100_sxm")

ADD = memory(0, mnemonic="global_atomic_add_f32", kind="atomic", bytes_per_lane=4)
COUNT = """
 and.b32 %r5, %r4, {mask}; mul.wide.u32 %d6, %r5, 4; add.s64 %d5, %d2, %d6;
 red.global.add.u32 [%d5], 1; ret;
"""


def test_atomics_are_counted_by_lanes_and_divided_among_the_addresses() -> None:
    placement = profile(100).placement
    waves = placement.workgroups * placement.waves
    assert operations([ADD], {0: 2.0}, placement) == 2 * waves * placement.wave_lanes
    one_lane = replace(ADD, lanes=1)
    assert operations([one_lane], {0: 2.0}, placement) == 2 * waves
    assert addresses(ADD, 64) == 16
    assert at_one_address([one_lane], {0: 16.0}, placement, {"x": 64}) == waves
    assert at_one_address([one_lane], {0: 16.0}, placement, {}) == 0


@pytest.mark.parametrize(("balls", "bins"), [(64, 16), (64, 32), (32, 32), (8, 256)])
def test_the_fullest_bin_has_about_as_many_as_in_random_throws(balls: int, bins: int) -> None:
    throws = np.random.default_rng(0).integers(0, bins, (2000, balls))
    counted = np.mean([np.bincount(one, minlength=bins).max() for one in throws])
    assert busiest(balls, bins) == pytest.approx(counted, abs=1.0)


def test_one_bin_takes_all() -> None:
    assert busiest(64, 1) == 64


def test_an_address_serves_one_atomic_per_clock() -> None:
    given = replace(profile(1216), traffic=LevelTraffic(1e3, 1e3, 1e3, atomics=1e7))
    found = launch_timing(given, MI300X)
    assert found.limiter == "atomics"
    assert found.bounds["atomics"] == pytest.approx(1e7 / found.clock)
    assert found.seconds == pytest.approx(found.launch + 1e7 / found.clock)


def test_a_histogram_of_few_bins_is_bound_by_its_atomics_on_nvidia() -> None:
    """16,384 workgroups add one to each of 16 addresses 16 times, or to addresses of their own."""
    few, own = (
        sass_profile(ptx_launch(COUNT.format(mask=mask), grid=16384, threads=256))
        for mask in (15, -1)
    )
    assert few.traffic is not None
    assert own.traffic is not None
    assert few.traffic.atomics == 16384 * 16
    assert own.traffic.atomics == pytest.approx(1.0)
    changes = changes_of(few, H100)
    atomics = np.array([i.memory is not None for i in few.program.instructions])
    reduced = changes.atomics_in_lds(atomics, 2.0, 16384)
    assert changes.simulation.run().limiter == "atomics"
    assert reduced.bounds["atomics"] == pytest.approx(16384 / reduced.clock)
    assert reduced.seconds < 0.5 * changes.simulation.run().seconds


def test_atomics_in_lds_take_passes_instead_of_memory() -> None:
    given = replace(profile(1216), traffic=LevelTraffic(1e3, 1e3, 1e3, atomics=1e7))
    changes = changes_of(given, MI300X)
    none = np.zeros(len(given.program.instructions), bool)
    reduced = changes.atomics_in_lds(none, 8.0, 1e3)
    assert reduced.bounds["atomics"] == pytest.approx(1e3 / reduced.clock)
    assert reduced.seconds < changes.simulation.run().seconds
