"""Devices that a run is for."""

from __future__ import annotations

import pytest

from wavecast.errors import UnknownName, UsageError
from wavecast.pipeline.explain.selection import select


def test_order_is_kept_and_repeats_go() -> None:
    found = select(["rx7900xtx", " mi300x", "mi325x", "mi300x", ""])
    assert [device.id for device in found.devices] == ["rx7900xtx", "mi300x", "mi325x"]
    assert found.targets == ("gfx1100", "gfx942")
    assert [device.id for device in found.on("gfx942")] == ["mi300x", "mi325x"]
    assert found.on("gfx90a") == ()


def test_a_target_of_several_devices_has_a_note() -> None:
    found = select(["gfx942", "gfx942"])
    (device,) = found.devices
    (note,) = found.notes
    assert device.target == "gfx942"
    assert "gfx942" in note


@pytest.mark.parametrize("selectors", [[], [""], [" ", ""]])
def test_no_device(selectors: list[str]) -> None:
    with pytest.raises(UsageError, match="no GPU is given"):
        select(selectors)


def test_an_unknown_device() -> None:
    with pytest.raises(UnknownName, match="mi300x"):
        select(["mi30x"])
