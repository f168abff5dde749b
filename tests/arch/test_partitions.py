"""Partitions of GPUs of several dies."""

from __future__ import annotations

import pytest

from wavecast import arch
from wavecast.arch.systems import system
from wavecast.errors import UnknownName, UsageError


def test_a_partition_has_its_dies_and_its_share() -> None:
    whole, part = arch.load("mi300x"), arch.load("MI300X-CPX-NPS4")
    assert (part.id, part.target) == ("mi300x-cpx-nps4", whole.target)
    assert part.facts.value("cu") == whole.facts.value("cu_per_xcd") == 38
    assert part.facts.quantity("mem_size").to("GiB").number == 24
    assert part.facts.quantity("mem_bw").number == whole.facts.quantity("mem_bw").number / 8
    for dtype in ("bf16", "fp8"):
        peak, all_peak = part.peak_flops(dtype), whole.peak_flops(dtype)
        assert peak is not None
        assert all_peak is not None
        assert peak.number == pytest.approx(all_peak.number / 8)
    assert part.facts.quantity("mem_size").status == "derived"
    assert part.facts.value("peak_clock") == whole.facts.value("peak_clock")
    assert not [name for name in part.facts.names() if name.startswith(("meas_", "maf_"))]


def test_a_node_of_partitions_shares_the_links_of_its_gpus() -> None:
    found = system("4x64xmi300x-cpx")
    assert (found.gpus, found.node_gpus) == (256, 64)
    assert found.fabric is not None
    assert found.network is not None
    assert (found.fabric.topology, found.fabric.dies) == ("packages", 8)
    assert found.fabric.rate(64) == 7 * 64e9 / 8
    assert found.network.rate == 50e9 / 8
    assert system("mi300x-spx").device is arch.load("mi300x")


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("mi300x-tpx", "mi300x: no mode tpx; its modes are dpx, qpx, cpx"),
        ("mi300x-dpx-nps4", "mi300x: dpx goes with NPS1, NPS2, not NPS4"),
        ("mi300x-spx-nps4", "mi300x: spx goes with NPS1, not NPS4"),
        ("h200-cpx", "h200: no mode cpx; it has no partitions"),
        ("65xmi300x-cpx", "65xmi300x-cpx: a node has 1 to 64 GPUs, not 65"),
    ],
)
def test_what_a_gpu_cannot_be_divided_into_is_named(selector: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        system(selector)
    assert raised.value.message == message


def test_a_partition_of_an_unknown_gpu_is_unknown() -> None:
    with pytest.raises(UnknownName):
        arch.load("nothing-cpx")
