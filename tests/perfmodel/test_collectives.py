"""Collectives: bus bandwidth, protocols, channels, limits of the links."""

from __future__ import annotations

import pytest

from wavecast import arch
from wavecast.arch.systems import system
from wavecast.errors import MissingFact, UnknownName, UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import of_device
from wavecast.perfmodel.ops.collectives import Collective, price
from wavecast.perfmodel.ops.collectives.problem import LATENCIES, known_of


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


def over(size: float, ranks: int, machine: str, **more: object):
    return price("all_reduce", size, ranks, system(machine), **more)  # type: ignore[arg-type]


def test_two_of_eight_gpus_of_a_mesh_have_a_seventh_of_the_links():
    whole, pair = (price("all_gather", 2**32, n, system("8xMI300X")).seconds for n in (8, 2))
    # A rank sends 7/8 of the bytes over seven links, or half of them over one.
    assert pair / whole == pytest.approx((1 / 2) / (7 / 8) * 7, rel=0.2)
    h100 = [price("all_gather", 2**32, n, system("dgx-h100")).seconds for n in (8, 2)]
    assert h100[1] < h100[0]


def test_all_reduces_over_nodes():
    one, four = over(2**30, 8, "8xMI300X"), over(2**30, 32, "4x8xMI300X")
    assert one.seconds < four.seconds < 2 * one.seconds  # as many NICs as GPUs
    alone = over(2**30, 4, "4x8xMI300X", stride=8)
    assert alone.limiter == "network"
    # Every GPU sends 1.5 bytes per byte through its NIC of 50 GB/s.
    assert 1.5 * 2**30 / 50e9 < alone.seconds < 1.5 * 2**30 / 50e9 * 1.5
    assert four.high / four.seconds > one.high / one.seconds
    assert any("nodes" in note for note in four.notes)


def test_small_messages_over_many_nodes_take_a_tree():
    tree = over(2**14, 1024, "128x8xMI300X")
    assert tree.assumed["algorithm"] == "tree"
    assert tree.seconds < 3 * over(2**14, 32, "4x8xMI300X").seconds * 2


def test_a_switch_adds():
    assert over(2**30, 8, "dgx-h100").assumed["algorithm"] == "switch"
    assert over(2**30, 8, "dgx-a100").assumed["algorithm"] == "ring"
    assert over(2**14, 8, "dgx-h100").assumed["algorithm"] == "ring"


@pytest.mark.parametrize(
    ("machine", "library", "ranks", "size", "algorithm"),
    [
        ("dgx-h100", "sglang", 8, 2**17, "one-shot"),
        ("dgx-h100", "sglang", 8, 2**18, "two-shot"),
        ("dgx-h100", "sglang", 2, 2**22, "one-shot"),
        ("dgx-h100", "sglang", 8, 2**24, "switch"),
        ("dgx-h100", "vllm", 8, 2**20, "switch"),
        ("dgx-a100", "vllm", 8, 2**24, "ring"),
        ("8xMI300X", "vllm", 8, 2**14, "direct"),
        ("8xMI300X", "quick-int4", 8, 2**22, "two-shot"),
        ("8xMI300X", "quick-int4", 8, 2**20, "direct"),
        ("dgx-h100", "quick-int4", 8, 2**22, "ring"),
    ],
)
def test_engines_choose_by_size(machine: str, library: str, ranks: int, size: int, algorithm: str):
    assert over(size, ranks, machine, library=library).assumed["algorithm"] == algorithm


def test_an_engine_is_faster_on_few_bytes_and_uses_the_library_over_nodes():
    assert over(2**13, 8, "dgx-h100", library="vllm").seconds < over(2**13, 8, "dgx-h100").seconds
    far = [over(2**13, 16, "2xdgx-h100", library=library).seconds for library in ("", "vllm")]
    assert far[0] == far[1]


def test_own_kernels_are_chosen_by_size_and_take_compute_units():
    small, large = (over(size, 8, "8xMI300X", library="wavecast") for size in (2**12, 2**22))
    assert (small.assumed["algorithm"], large.assumed["algorithm"]) == ("one-shot", "two-shot")
    assert small.low < small.seconds < small.high
    assert any("wavecast.ops.distributed" in note for note in small.notes)
    few, more = (seconds(size=2**22, library="wavecast", channels=n) for n in (4, 8))
    assert few == pytest.approx(2 * more, rel=0.3)
    # More workgroups than the kernels launch change nothing.
    most = [seconds(size=2**22, library="wavecast", channels=n) for n in (0, 64, 128)]
    assert most[0] == most[1] == most[2]


def test_own_kernels_take_a_launch_per_buffer():
    # 16 MiB take two launches: twice what a half takes.
    half, whole = (over(n << 20, 8, "8xMI300X", library="wavecast").seconds for n in (8, 16))
    assert whole == pytest.approx(2 * half)


def test_fewer_bits_take_less_time():
    times = [over(2**26, 8, "8xMI300X", library=f"quick-{f}").seconds for f in ("int4", "fp")]
    assert times[0] < 0.4 * times[1]


@pytest.mark.parametrize(
    ("machine", "ranks", "tokens", "algorithm"),
    [
        ("dgx-h100", 8, 64, "low-latency"),
        ("dgx-h100", 8, 4096, "grouped"),
        ("2xdgx-h100", 16, 4096, "grouped"),
    ],
)
def test_experts_exchange_tokens(machine: str, ranks: int, tokens: int, algorithm: str):
    found = system(machine)
    size = tokens * 7168
    op = Collective("dispatch", size, ranks, topk=8, group=found.group(ranks))
    prediction = op.predict(found.device)
    assert prediction.assumed["algorithm"] == algorithm
    twice = Collective("combine", 2 * size, ranks, topk=8, group=found.group(ranks))
    assert twice.predict(found.device).seconds > prediction.seconds


def test_wrong_exchanges_and_libraries():
    with pytest.raises(UsageError, match="topk"):
        Collective("dispatch", 64, 8)
    with pytest.raises(UsageError, match="topk"):
        Collective("all_reduce", 64, 8, topk=8)
    with pytest.raises(UnknownName, match="vllm"):
        Collective("all_reduce", 64, 8, library="vlm")
    with pytest.raises(UsageError, match="are placed"):
        Collective("all_reduce", 64, 4, group=system("8xMI300X").group(8))


def test_latencies_of_a_chip_that_was_not_measured_follow_its_l2():
    """A flag is written to and polled in L2. Values that were fitted on a chip stay."""
    table = coefficients.family("collectives")
    for device in map(arch.load, ("h100_sxm", "rx7900xtx")):
        known = known_of(device)
        factor = of_device(device).latency["l2"] / table["l2_reference"].of(device)
        for name in LATENCIES:
            row = table[name]
            expected = row.of(device) * (factor if row.scope(device) == "default" else 1.0)
            assert known[name] == pytest.approx(expected)
    assert known_of(arch.load("h100_sxm"))["start"] == table["start"].values["hopper"]
    slow = known_of(arch.load("rx7900xtx"))["exchange_start"]
    assert slow > 1.5 * table["exchange_start"].values["default"]
