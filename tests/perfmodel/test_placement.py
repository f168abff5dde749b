"""Where workgroups run, and which of them first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.analyze.support import code, descriptor
from wavecast import arch
from wavecast.analyze.occupancy import kernel_occupancy
from wavecast.compile.codeobject import Launch
from wavecast.errors import Unpredictable
from wavecast.perfmodel.placement import LaunchPlacement


def placement(workgroups: int, dies: int, units: int, resident: int) -> LaunchPlacement:
    """`units` of one die."""
    return LaunchPlacement(workgroups, 4, 64, "CU", resident, dies * units, dies, 4)


def test_dies_and_units_take_workgroups_round_robin() -> None:
    found = placement(100, dies=4, units=3, resident=2)
    assert list(found.of_die(1)) == list(range(1, 100, 4))
    assert list(found.first_round_of_die()) == [0, 4, 8, 12, 16, 20]
    assert [found.unit_of(n) for n in found.first_round_of_die()] == [0, 1, 2, 0, 1, 2]
    assert found.first_round_of_unit() == (0, 12)
    assert len(found.first_round()) == 4 * 3 * 2
    assert found.most_per_unit == 9


def test_a_launch_smaller_than_the_device() -> None:
    found = placement(2, dies=8, units=38, resident=8)
    assert list(found.first_round_of_die()) == [0]
    assert found.first_round_of_unit() == (0,)
    assert (found.most_per_unit, found.active_units) == (1, 2)


@pytest.mark.parametrize(("mode", "unit", "units", "simds"), [(0, "CU", 96, 2), (1, "WGP", 48, 4)])
def test_the_descriptor_decides_the_unit_of_rdna_workgroups(mode, unit, units, simds) -> None:
    """As many workgroups run at once in both modes where nothing but wave slots limits them."""
    device = arch.load("gfx1100")
    compiled = replace(
        descriptor(), wave_size=32, directives={"workgroup_processor_mode": mode}, agprs=0
    )
    occupancy = kernel_occupancy(device, compiled, 0, 256)
    launch = Launch(code(), (1000, 1, 1), (256, 1, 1))
    found = LaunchPlacement.of(launch, occupancy, device, 32)
    assert (found.unit, found.units, found.simds) == (unit, units, simds)
    assert found.units * found.resident == 384
    assert found.on(device) == found
    larger = replace(found, units=1, dies=7, simds=1)
    assert larger.on(device) == found


def test_without_a_grid_or_room_there_is_no_placement() -> None:
    device = arch.load("mi300x")
    launch = Launch(code(), (1, 1, 1), (256, 1, 1))
    fits = kernel_occupancy(device, descriptor(), 0, 256)
    with pytest.raises(Unpredictable, match="grid"):
        LaunchPlacement.of(replace(launch, grid=(0, 1, 1)), fits, device, 64)
    too_large = kernel_occupancy(device, descriptor(), 1 << 20, 256)
    with pytest.raises(Unpredictable, match="does not fit"):
        LaunchPlacement.of(launch, too_large, device, 64)
