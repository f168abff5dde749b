"""What bounds the waves resident on a compute unit.

LLVM 23.1.1, AMDGPUBaseInfo.cpp namespace IsaInfo, computes occupancy from these numbers; on
NVIDIA cuda_occupancy.h does. One set of names serves both: a warp is a wave, a sub-partition a
SIMD, shared memory LDS, a block a workgroup.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.arch.facts import Facts
from wavecast.arch.reader import Identity
from wavecast.errors import UsageError


@dataclass(frozen=True, slots=True)
class OccupancyLimits:
    """Limits for waves of `wave_lanes` lanes on one `unit`: what a workgroup is placed on.

    `unit` is `CU`, `WGP` (RDNA, gfx1250) or `SM`; `units` is how many the device has. Registers are
    counted per lane (`vgpr_*`) or per wave (`sgpr_*`), LDS in bytes. `vgpr_total` is the register
    file of one SIMD; with `unified_agpr` it holds the AGPRs too, after the VGPRs rounded up to 4;
    with `separate_agpr` a second file of the same size does. `sgpr_total` is None where SGPRs never
    limit; `sgpr_reserved` are taken from every wave. `lds_bytes` is shared by the workgroups of a
    unit, each of which may use `lds_max_per_workgroup` and loses `lds_reserved_per_workgroup`.
    `barriers` bounds workgroups of more than one wave, `max_workgroups` all workgroups. With
    `registers_by_workgroup` the waves that registers allow are those of whole workgroups, as
    cuda_occupancy.h counts them; LLVM counts single waves.
    """

    unit: str
    units: int | None
    wave_lanes: int
    simds: int
    max_waves_per_simd: int
    vgpr_total: int
    vgpr_granule: int
    vgpr_addressable: int
    sgpr_total: int | None
    sgpr_granule: int
    sgpr_reserved: int
    lds_bytes: int
    lds_max_per_workgroup: int
    lds_granule: int
    barriers: int | None
    max_workgroup_threads: int
    unified_agpr: bool = False
    separate_agpr: bool = False
    lds_reserved_per_workgroup: int = 0
    max_workgroups: int | None = None
    registers_by_workgroup: bool = False


def occupancy_limits(
    facts: Facts, identity: Identity, wave_lanes: int | None, *, cu_mode: bool
) -> OccupancyLimits:
    """Limits of a device for a wave size (its native one by default).

    `cu_mode` places RDNA workgroups on one CU instead of a WGP. Raises UsageError for a wave size
    the device does not run, MissingFact when a number is not known.
    """
    native = facts.integer("wave_size")
    lanes = native if wave_lanes is None else wave_lanes
    rdna = "lds_per_wgp" in facts.mapping
    sizes = (32, 64) if rdna else (native,)
    if lanes not in sizes:
        runs = " or ".join(str(size) for size in sizes)
        raise UsageError(
            f"{identity.id} does not run waves of {lanes} lanes", hint=f"it runs {runs}"
        )
    if identity.vendor == "nvidia":
        return _nvidia(facts, lanes)
    return _rdna(facts, lanes, cu_mode) if rdna else _compute_unit(facts, identity, lanes)


def lds_bytes(facts: Facts, vendor: str) -> int:
    """LDS of one compute unit (a CU, a WGP on gfx1250, an SM). Raises MissingFact."""
    if vendor == "nvidia":
        return facts.integer("smem_per_sm_max", "B")
    if "lds_per_wgp" in facts.mapping:
        return facts.integer("lds_per_wgp", "B") // 2
    return facts.integer("lds_per_cu", "B")


def _compute_unit(facts: Facts, identity: Identity, lanes: int) -> OccupancyLimits:
    """CDNA and gfx1250: a workgroup lives on one CU; what LLVM calls so on gfx1250 is a WGP."""
    has_sgpr_limit = "sgpr_total_per_simd" in facts.mapping
    return OccupancyLimits(
        unit="CU" if has_sgpr_limit else "WGP",
        units=facts.integer("cu"),
        wave_lanes=lanes,
        simds=facts.integer("simd_per_cu"),
        max_waves_per_simd=facts.integer("max_waves_per_simd"),
        vgpr_total=facts.integer("vgpr_per_lane_per_simd"),
        vgpr_granule=facts.integer("vgpr_alloc_granule"),
        vgpr_addressable=facts.integer("vgpr_addressable"),
        sgpr_total=facts.integer("sgpr_total_per_simd") if has_sgpr_limit else None,
        sgpr_granule=facts.integer("sgpr_alloc_granule") if has_sgpr_limit else 1,
        sgpr_reserved=facts.integer("sgpr_trap_reserved") if has_sgpr_limit else 0,
        lds_bytes=lds_bytes(facts, identity.vendor),
        lds_max_per_workgroup=facts.integer("lds_max_per_workgroup", "B"),
        lds_granule=facts.integer("lds_alloc_granule", "B"),
        barriers=facts.integer("max_workgroups_per_cu_multiwave"),
        max_workgroup_threads=facts.integer("max_workgroup_threads"),
        unified_agpr=has_sgpr_limit and identity.generation != "cdna1",
        separate_agpr=identity.generation == "cdna1",
    )


def _rdna(facts: Facts, lanes: int, cu_mode: bool) -> OccupancyLimits:
    """RDNA: a workgroup lives on a WGP of two CUs, or on one; wave64 halves the register file."""
    share = 2 if cu_mode else 1
    passes = lanes // facts.integer("wave_size")
    return OccupancyLimits(
        unit="CU" if cu_mode else "WGP",
        units=facts.integer("cu") * share // 2,
        wave_lanes=lanes,
        simds=facts.integer("simd_per_cu") * 2 // share,
        max_waves_per_simd=facts.integer("max_waves_per_simd"),
        vgpr_total=facts.integer("vgpr_per_lane_per_simd") // passes,
        vgpr_granule=facts.integer("vgpr_alloc_granule") // passes,
        vgpr_addressable=facts.integer("vgpr_addressable"),
        sgpr_total=None,
        sgpr_granule=1,
        sgpr_reserved=0,
        lds_bytes=lds_bytes(facts, "amd") * 2 // share,
        lds_max_per_workgroup=facts.integer("lds_max_per_workgroup", "B"),
        lds_granule=facts.integer("lds_alloc_granule", "B"),
        barriers=facts.integer("max_workgroups_per_wgp_multiwave") // share,
        max_workgroup_threads=facts.integer("max_workgroup_threads"),
    )


def _nvidia(facts: Facts, lanes: int) -> OccupancyLimits:
    """An SM: registers are split evenly over its sub-partitions and allocated per warp."""
    simds = facts.integer("simd_per_cu")
    return OccupancyLimits(
        unit="SM",
        units=facts.integer("cu"),
        wave_lanes=lanes,
        simds=simds,
        max_waves_per_simd=facts.integer("max_threads_per_sm") // lanes // simds,
        vgpr_total=facts.integer("regs_per_sm") // simds // lanes,
        vgpr_granule=facts.integer("reg_alloc_granule") // lanes,
        vgpr_addressable=facts.integer("regs_max_per_thread"),
        sgpr_total=None,
        sgpr_granule=1,
        sgpr_reserved=0,
        lds_bytes=lds_bytes(facts, "nvidia"),
        lds_max_per_workgroup=facts.integer("smem_max_per_block", "B"),
        lds_granule=facts.integer("smem_granule", "B"),
        barriers=None,
        max_workgroup_threads=facts.integer("max_workgroup_threads"),
        lds_reserved_per_workgroup=facts.integer("smem_reserved_per_block", "B"),
        max_workgroups=facts.integer("max_blocks_per_sm"),
        registers_by_workgroup=True,
    )
