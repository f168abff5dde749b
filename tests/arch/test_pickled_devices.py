"""Devices on their way to other processes."""

from __future__ import annotations

import pickle

from wavecast import arch


def test_a_device_that_arrives_twice_is_one_object() -> None:
    device = arch.load("mi300x")
    first, second = (pickle.loads(pickle.dumps(("task", device, n)))[1] for n in range(2))
    assert first is second
    assert first.id == "mi300x"
    assert first.facts.mapping == device.facts.mapping
    assert pickle.loads(pickle.dumps(arch.load("mi325x"))).id == "mi325x"
