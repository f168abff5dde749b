"""Occupancy against LLVM's own answers, and what must hold for any kernel."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wavecast import arch
from wavecast.analyze.occupancy import ResourceDemand, occupancy, total_vgprs
from wavecast.analyze.result import NextStep, Occupancy

GOLDEN = Path(__file__).parent / "golden" / "occupancy.csv"
DEVICES = {
    "gfx90a": "mi210",
    "gfx942": "mi300x",
    "gfx950": "mi355x",
    "gfx1100": "rx7900xtx",
    "gfx1151": "strixhalo",
    "gfx1201": "rx9070xt",
    "gfx1250": "mi455x",
}
NVIDIA = ("a100_80g_sxm", "h100_sxm", "b200")


def on(device: str, **demand: int) -> Occupancy:
    full = {"vgprs": 32, "agprs": 0, "sgprs": 0, "lds_bytes": 0, "threads": 256, **demand}
    return occupancy(arch.load(device).limits(), ResourceDemand(**full))


@pytest.mark.parametrize("target", DEVICES)
def test_every_case_of_the_golden_table_is_what_llvm_says(target: str) -> None:
    limits = arch.load(DEVICES[target]).limits()
    with GOLDEN.open(encoding="utf-8", newline="") as file:
        cases = [row for row in csv.DictReader(file) if row.pop("target") == target]
    assert len(cases) > 150
    for row in cases:
        case = {name: int(value) for name, value in row.items()}
        demand = ResourceDemand(
            case["vgpr"], case["agpr"], case["sgpr"], case["lds"], case["threads"]
        )
        assert total_vgprs(limits, demand.vgprs, demand.agprs) == case["total_vgprs"], case
        assert occupancy(limits, demand).waves_per_simd == case["occupancy"], case


def test_the_next_step_names_registers() -> None:
    found = on("mi300x", vgprs=182)
    assert (found.waves_per_simd, found.limiter) == (2, "vgpr")
    assert str(found.next) == "14 VGPRs fewer → 3 waves/SIMD"


def test_the_next_step_names_every_binding_resource() -> None:
    found = on("mi300x", vgprs=182, lds_bytes=32768)
    assert found.limiter == "lds, vgpr"
    assert found.next == NextStep("vgpr", 14, 168, 3, (NextStep("lds", 32768 - 21504, 21504, 3),))
    assert str(found.next) == "14 VGPRs fewer and 11264 bytes of LDS fewer → 3 waves/SIMD"


def test_dynamic_lds_counts_like_static() -> None:
    assert on("mi300x", lds_bytes=20 * 1024).workgroups == 3
    assert on("mi300x", lds_bytes=20 * 1024).waves_per_simd == 3


def test_agprs_share_the_file_after_rounding() -> None:
    assert on("mi300x", vgprs=126, agprs=128).waves_per_simd == 2
    assert on("mi300x", vgprs=129, agprs=128).waves_per_simd == 1


def test_at_the_hardware_maximum_there_is_no_next_step() -> None:
    found = on("mi300x", vgprs=16)
    assert (found.waves_per_simd, found.limiter, found.next) == (8, "waves", None)


def test_barriers_limit_small_workgroups() -> None:
    found = on("mi300x", threads=65)
    assert found.limits["workgroups"] == 8
    found = on("rx7900xtx", threads=33)
    assert (found.workgroups, found.waves_per_simd, found.limiter) == (32, 16, "waves")


def test_whole_workgroups_may_leave_waves_unused() -> None:
    found = on("mi300x", vgprs=96, threads=1024)
    assert found.waves_per_simd == 5
    assert (found.workgroups, found.resident_waves) == (1, 4.0)
    assert found.next is not None
    assert found.next.waves_per_simd == 8


@pytest.mark.parametrize(
    ("device", "demand"),
    [
        ("mi300x", {"lds_bytes": 65537}),
        ("rx7900xtx", {"lds_bytes": 65537}),
        ("rx7900xtx", {"vgprs": 257}),
        ("mi300x", {"vgprs": 256, "agprs": 0, "threads": 1024}),
        ("h100_sxm", {"lds_bytes": 228 * 1024}),
    ],
)
def test_what_exceeds_the_device_does_not_fit(device: str, demand: dict[str, int]) -> None:
    found = on(device, **demand)
    assert not found.fits
    assert (found.workgroups, found.waves_per_simd) == (0, 0)


def test_what_does_not_fit_says_how_much_too_large_it_is() -> None:
    found = on("mi300x", lds_bytes=65536 + 4096)
    assert found.next is not None
    assert (found.next.resource, found.next.delta) == ("lds", 4096)


@pytest.mark.parametrize(
    ("registers", "shared", "threads", "blocks"),
    [
        # NVIDIA's occupancy calculator for compute capability 9.0.
        (32, 0, 256, 8),
        (33, 0, 256, 6),
        (128, 0, 256, 2),
        (168, 0, 384, 1),
        (255, 0, 128, 2),
        (32, 48 * 1024, 256, 4),
        (32, 227 * 1024, 256, 1),
        (16, 0, 32, 32),
    ],
)
def test_blocks_of_an_h100(registers: int, shared: int, threads: int, blocks: int) -> None:
    found = on("h100_sxm", vgprs=registers, lds_bytes=shared, threads=threads)
    assert found.workgroups == blocks


def test_warps_of_an_sm_are_those_of_whole_blocks() -> None:
    """12 warps have registers, but blocks come in eights: one fits."""
    found = on("h100_sxm", vgprs=168, threads=256)
    assert (found.workgroups, found.waves_per_simd, found.limiter) == (1, 2, "vgpr")
    assert found.next == NextStep("vgpr", 40, 128, 4)


demands = st.builds(
    ResourceDemand,
    vgprs=st.integers(1, 255),
    agprs=st.just(0),
    sgprs=st.integers(0, 102),
    lds_bytes=st.integers(0, 65536),
    threads=st.integers(1, 1024),
)
devices = st.sampled_from([*DEVICES.values(), *NVIDIA])


@settings(max_examples=300, deadline=None)
@given(device=devices, demand=demands, less=st.integers(0, 255))
def test_fewer_registers_never_lower_occupancy(
    device: str, demand: ResourceDemand, less: int
) -> None:
    limits = arch.load(device).limits()
    smaller = replace(demand, vgprs=max(1, demand.vgprs - less))
    before, after = occupancy(limits, demand), occupancy(limits, smaller)
    assert after.waves_per_simd >= before.waves_per_simd
    assert after.resident_waves >= before.resident_waves


@settings(max_examples=500, deadline=None)
@given(device=devices, demand=demands)
def test_the_next_step_is_the_smallest_that_helps(device: str, demand: ResourceDemand) -> None:
    limits = arch.load(device).limits()
    now = occupancy(limits, demand)
    if now.next is None:
        return
    steps = (now.next, *now.next.also)
    names = {"vgpr": "vgprs", "sgpr": "sgprs", "lds": "lds_bytes"}
    reduced = replace(demand, **{names[step.resource]: step.target for step in steps})
    then = occupancy(limits, reduced)
    assert then.waves_per_simd == now.next.waves_per_simd
    assert then.resident_waves > now.resident_waves
    for step in steps:
        almost = replace(reduced, **{names[step.resource]: step.target + 1})
        assert occupancy(limits, almost).waves_per_simd < then.waves_per_simd, step
