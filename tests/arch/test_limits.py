"""Occupancy from `Device.limits` against LLVM's formulas written down a second time."""

from __future__ import annotations

import itertools

import pytest

from wavecast import arch
from wavecast.arch import OccupancyLimits
from wavecast.errors import UsageError

# wave, SIMDs, waves, VGPRs, granule, LDS, LDS granule, barriers: LLVM 23.1.1 namespace IsaInfo
LLVM = {
    ("gfx908", 64): (4, 10, 256, 4, 65536, 512, 16),
    ("gfx90a", 64): (4, 8, 512, 8, 65536, 512, 16),
    ("gfx942", 64): (4, 8, 512, 8, 65536, 512, 16),
    ("gfx950", 64): (4, 8, 512, 8, 163840, 1280, 16),
    ("gfx1100", 32): (4, 16, 1536, 24, 131072, 512, 32),
    ("gfx1151", 32): (4, 16, 1536, 24, 131072, 512, 32),
    ("gfx1201", 32): (4, 16, 1536, 24, 131072, 512, 32),
    ("gfx1100", 64): (4, 16, 768, 12, 131072, 512, 32),
    ("gfx1151", 64): (4, 16, 768, 12, 131072, 512, 32),
    ("gfx1201", 64): (4, 16, 768, 12, 131072, 512, 32),
    ("gfx1250", 32): (4, 16, 1024, 16, 327680, 2048, 16),
}
CDNA = ("gfx908", "gfx90a", "gfx942", "gfx950")


def up(value: int, granule: int) -> int:
    return -(-value // granule) * granule


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def llvm(
    target: str, wave: int, vgpr: int, agpr: int, sgpr: int, lds: int, threads: int
) -> tuple[int, int, int]:
    """Waves per SIMD by registers, scalar registers, and workgroups."""
    simds, most, file, granule, pool, lds_granule, barriers = LLVM[target, wave]
    if target == "gfx908":
        total = max(vgpr, agpr)
    elif target in CDNA and agpr:
        total = up(vgpr, 4) + agpr
    else:
        total = vgpr
    by_vgpr = most if total < granule else clamp(file // up(total, granule), 1, most)
    by_sgpr = clamp(800 // (up(sgpr, 16) + 16), 1, most) if target in CDNA else most
    waves = -(-threads // wave)
    groups = most * simds // waves if waves == 1 else min(most * simds // waves, barriers)
    if lds:
        groups = min(groups, pool // up(lds, lds_granule))
    return by_vgpr, by_sgpr, min(most, -(-groups * waves // simds))


def from_limits(
    limits: OccupancyLimits, vgpr: int, agpr: int, sgpr: int, lds: int, threads: int
) -> tuple[int, int, int]:
    """The same from the documented meaning of `OccupancyLimits`."""
    most = limits.max_waves_per_simd
    registers = vgpr
    if limits.separate_agpr:
        registers = max(vgpr, agpr)
    elif limits.unified_agpr and agpr:
        registers = up(vgpr, 4) + agpr
    by_vgpr = most
    if registers >= limits.vgpr_granule:
        by_vgpr = clamp(limits.vgpr_total // up(registers, limits.vgpr_granule), 1, most)
    by_sgpr = most
    if limits.sgpr_total is not None:
        each = up(sgpr, limits.sgpr_granule) + limits.sgpr_reserved
        by_sgpr = clamp(limits.sgpr_total // each, 1, most)
    waves = -(-threads // limits.wave_lanes)
    groups = most * limits.simds // waves
    if waves > 1 and limits.barriers is not None:
        groups = min(groups, limits.barriers)
    if lds:
        groups = min(groups, limits.lds_bytes // up(lds, limits.lds_granule))
    return by_vgpr, by_sgpr, min(most, -(-groups * waves // limits.simds))


@pytest.mark.parametrize(("target", "wave"), LLVM)
def test_occupancy_on_a_grid(target: str, wave: int) -> None:
    limits = arch.load(target).limits(wave)
    agprs = (0, 1, 64, 256) if target in CDNA else (0,)
    sgprs = (0, 32, 81, 102)
    vgprs = (1, 12, 25, 64, 85, 128, 182, 256)
    sizes = (0, 512, 1281, 16384, 33000, 65536)
    for vgpr, agpr, sgpr, lds in itertools.product(vgprs, agprs, sgprs, sizes):
        for threads in (32, 64, 256, 1024):
            case = (vgpr, agpr, sgpr, lds, threads)
            assert from_limits(limits, *case) == llvm(target, wave, *case), case


@pytest.mark.parametrize(
    ("target", "vgprs", "waves"),
    [("gfx90a", 182, 2), ("gfx950", 146, 3), ("gfx1100", 256, 5), ("gfx1250", 300, 3)],
)
def test_occupancy_the_compiler_printed(target: str, vgprs: int, waves: int) -> None:
    """`; Occupancy` of Triton kernels."""
    assert from_limits(arch.load(target).limits(), vgprs, 0, 0, 0, 64)[0] == waves


def test_one_workgroup_of_rdna_gets_half_of_the_pool() -> None:
    limits = arch.load("gfx1100").limits()
    assert (limits.unit, limits.units, limits.lds_bytes) == ("WGP", 48, 131072)
    assert limits.lds_max_per_workgroup == 65536
    one = arch.load("gfx1100").limits(cu_mode=True)
    assert (one.unit, one.units, one.simds, one.lds_bytes, one.barriers) == ("CU", 96, 2, 65536, 16)


@pytest.mark.parametrize(
    ("name", "shared", "block"),
    [("a100", 164, 163), ("h100", 228, 227), ("h200", 228, 227), ("b200", 228, 227)],
)
def test_nvidia(name: str, shared: int, block: int) -> None:
    """cuda_occupancy.h: 64 warps in four sub-partitions, 64 Ki registers in units of 256 a warp."""
    limits = arch.load(name).limits()
    assert (limits.unit, limits.simds, limits.max_waves_per_simd) == ("SM", 4, 16)
    assert (limits.vgpr_total, limits.vgpr_granule, limits.vgpr_addressable) == (512, 8, 255)
    assert (limits.lds_bytes, limits.lds_max_per_workgroup) == (shared * 1024, block * 1024)
    assert (limits.lds_reserved_per_workgroup, limits.lds_granule) == (1024, 128)
    assert (limits.max_workgroups, limits.barriers) == (32, None)


@pytest.mark.parametrize(("name", "wave"), [("mi300x", 32), ("mi455x", 64), ("h100", 64)])
def test_a_wave_size_the_device_does_not_run(name: str, wave: int) -> None:
    with pytest.raises(UsageError, match=f"does not run waves of {wave} lanes"):
        arch.load(name).limits(wave)


@pytest.mark.parametrize("device", arch.devices(), ids=lambda device: device.id)
def test_every_device_has_limits(device: arch.Device) -> None:
    limits = device.limits()
    assert limits.lds_max_per_workgroup <= limits.lds_bytes
    assert limits.units
