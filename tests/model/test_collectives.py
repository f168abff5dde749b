"""Collectives: bus bandwidth, protocols, channels, limits of the links."""

from __future__ import annotations

import pytest

from wavecast import arch
from wavecast.errors import MissingFact, UsageError
from wavecast.model.ops.collectives import Collective


def seconds(
    function: str = "all_reduce", size: int = 2**30, gpus: int = 8, **more: object
) -> float:
    problem = Collective(function, size, gpus, **more)  # type: ignore[arg-type]
    return problem.predict(arch.load("mi300x")).seconds


@pytest.mark.parametrize(
    ("function", "wire"),
    [("all_reduce", 1.75), ("all_gather", 0.875), ("reduce_scatter", 0.875), ("broadcast", 1.0)],
)
def test_bytes_on_the_wire(function: str, wire: float):
    assert Collective(function, 1000, 8).wire == 1000 * wire


def test_large_reductions_run_near_the_links():
    bus = 1.75 * 2**34 / seconds(size=2**34)
    assert 0.6 * 7 * 64e9 < bus < 0.8 * 7 * 64e9


def test_protocol_follows_the_size():
    device = arch.load("mi300x")
    small = Collective("all_reduce", 2**16, 8).predict(device)
    large = Collective("all_reduce", 2**26, 8).predict(device)
    assert (small.assumed["protocol"], large.assumed["protocol"]) == ("flags", "slices")
    assert (small.limiter, large.limiter) == ("latency", "links")


def test_few_channels_bound_the_bandwidth():
    assert seconds(channels=2) == pytest.approx(2 * seconds(channels=4), rel=0.1)
    assert seconds(channels=128) == pytest.approx(seconds(), rel=0.1)


def test_concurrent_products_take_bandwidth():
    assert seconds(concurrent="gemm") > 1.1 * seconds()


def test_calls_add_to_small_ones_only():
    assert seconds(size=64, timing="kernel") < seconds(size=64, timing="launch")
    assert seconds(size=2**30, timing="torch") == pytest.approx(seconds(size=2**30), rel=0.01)


def test_fewer_gpus_have_fewer_links():
    assert seconds("all_gather", gpus=2) > seconds("all_gather", gpus=8)


def test_limits_are_said():
    with pytest.raises(MissingFact, match="8 GPUs at most"):
        seconds(gpus=16)
    with pytest.raises(MissingFact, match="links"):
        Collective("all_reduce", 64, 2).predict(arch.load("strixhalo"))
    with pytest.raises(UsageError):
        Collective("all_reduce", 64, 1)
