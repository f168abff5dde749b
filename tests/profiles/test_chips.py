"""Which chip a profiled device is."""

from __future__ import annotations

import pytest

from wavecast.arch.select import devices
from wavecast.profiles.chips import chips
from wavecast.profiles.profile import ProfiledDevice

GIB = 2**30


@pytest.mark.parametrize(
    ("target", "units", "size", "chip"),
    [
        ("sm_90", 132, 80 * GIB, "h100_sxm"),
        ("sm_90", 132, 141 * 10**9, "h200"),
        ("sm_80", 108, 79 * GIB, "a100_80g_sxm"),
        ("gfx942", 304, 192 * GIB, "mi300x"),
    ],
)
def test_by_units_and_memory(target: str, units: int, size: int, chip: str) -> None:
    """Drivers count in GiB, data sheets in GB or MiB."""
    assert [one.id for one in chips(ProfiledDevice("", target, units, size))] == [chip]


def test_every_chip_by_its_own_facts() -> None:
    for device in devices():
        if device.get("mem_size") is None or device.get("cu") is None:
            continue
        size = device.facts.integer("mem_size", "B")
        found = chips(ProfiledDevice("", device.target, int(device.get("cu") or 0), size))
        assert device in found
    assert not chips(ProfiledDevice("", "sm_90", 132, 10 * GIB))
