"""How many waves fit a SIMD, what limits that, and what the next step up needs.

AMD: the rules LLVM applies to a kernel (`AMDGPUBaseInfo.cpp`, namespace IsaInfo, and
`AMDGPUSubtarget.cpp`, getOccupancyWithWorkGroupSizes), with the size of the workgroup known:

    total      = align(vgpr, 4) + agpr where both share one file and agpr > 0, else their maximum
    vgpr       = file // align(total, granule)
    sgpr       = file // (align(sgpr, granule) + trap handler's), where scalar registers limit
    workgroups = min(LDS // align(lds, granule), wave slots // waves, barriers if waves > 1)
    waves      = min(vgpr, sgpr, ceil(workgroups * waves of a workgroup / SIMDs), wave slots)

NVIDIA: registers are allocated per warp and sub-partition, for whole blocks (cuda_occupancy.h),
shared memory per block with a part reserved by the system (CUDA C++ Programming Guide, "Hardware
Multithreading").

Every limit falls as its resource grows, so the next step is found by bisection, not by inverting
each formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from wavecast.analyze.result import NextStep, Occupancy
from wavecast.arch import Device, OccupancyLimits
from wavecast.isa.program import KernelDescriptor


@dataclass(frozen=True, slots=True)
class ResourceDemand:
    """What one kernel asks of a compute unit.

    `vgprs`, `agprs` per lane and `sgprs` per wave; `lds_bytes` per workgroup, static and dynamic
    together; `threads` of a workgroup. NVIDIA kernels have `vgprs` and `lds_bytes` only.
    """

    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    threads: int


@dataclass(frozen=True, slots=True)
class _Resource:
    """`used` of one resource, and the waves per SIMD that any amount of it would allow."""

    name: str
    used: int
    waves: Callable[[int], int]

    def largest_for(self, goal: int) -> int | None:
        """The largest amount up to `used` that allows `goal` waves per SIMD; None for no amount."""
        if self.waves(0) < goal:
            return None
        low, high = 0, self.used
        while low < high:
            middle = (low + high + 1) // 2
            if self.waves(middle) >= goal:
                low = middle
            else:
                high = middle - 1
        return low


def kernel_occupancy(
    device: Device, descriptor: KernelDescriptor, lds_bytes: int, threads: int
) -> Occupancy:
    """Occupancy of an AMD kernel whose workgroups have `threads` threads and `lds_bytes` of LDS.

    RDNA kernels are compiled for CU or WGP mode; the descriptor says which, and
    `Occupancy.unit` passes it on. Raises UsageError where the device does not run the kernel's
    wave size, MissingFact where one of its limits is not known.
    """
    cu_mode = descriptor.directives.get("workgroup_processor_mode") == 0
    limits = device.limits(descriptor.wave_size, cu_mode=cu_mode)
    demand = ResourceDemand(
        descriptor.vgprs, descriptor.agprs, descriptor.sgprs, lds_bytes, threads
    )
    return occupancy(limits, demand)


def occupancy(limits: OccupancyLimits, demand: ResourceDemand) -> Occupancy:
    """Waves per SIMD of a kernel on a device, their limiter, and the next step up."""
    waves = max(1, -(-demand.threads // limits.wave_lanes))
    resources = (
        _Resource(
            "vgpr", total_vgprs(limits, demand.vgprs, demand.agprs), _by_vgprs(limits, waves)
        ),
        _Resource("sgpr", demand.sgprs, _by_sgprs(limits)),
        _Resource("lds", demand.lds_bytes, _by_lds(limits, waves)),
        _Resource("workgroups", waves, _by_workgroups(limits)),
    )
    result = _combine(limits, waves, resources)
    return replace(result, next=_next_step(limits, waves, resources, result))


def total_vgprs(limits: OccupancyLimits, vgprs: int, agprs: int) -> int:
    """Vector registers a wave takes from the file, before rounding to the granule."""
    if limits.unified_agpr and agprs:
        return _align(vgprs, 4) + agprs
    return max(vgprs, agprs)


def _align(value: int, granule: int) -> int:
    return -(-value // granule) * granule


def _by_vgprs(limits: OccupancyLimits, waves_per_workgroup: int) -> Callable[[int], int]:
    addressable = limits.vgpr_addressable * (2 if limits.unified_agpr else 1)

    def waves(total: int) -> int:
        if total > addressable:
            return 0
        allocated = _align(max(total, 1), limits.vgpr_granule)
        alone = min(limits.vgpr_total // allocated, limits.max_waves_per_simd)
        if not limits.registers_by_workgroup:
            return alone
        return _per_simd(limits, alone * limits.simds // waves_per_workgroup, waves_per_workgroup)

    return waves


def _by_sgprs(limits: OccupancyLimits) -> Callable[[int], int]:
    def waves(sgprs: int) -> int:
        if limits.sgpr_total is None:
            return limits.max_waves_per_simd
        allocated = _align(sgprs, limits.sgpr_granule) + limits.sgpr_reserved
        return min(limits.sgpr_total // max(allocated, 1), limits.max_waves_per_simd)

    return waves


def _by_lds(limits: OccupancyLimits, waves_per_workgroup: int) -> Callable[[int], int]:
    def waves(lds_bytes: int) -> int:
        return _per_simd(limits, _lds_workgroups(limits, lds_bytes), waves_per_workgroup)

    return waves


def _lds_workgroups(limits: OccupancyLimits, lds_bytes: int) -> int | None:
    """Workgroups whose LDS fits; None when nothing is asked for, so nothing limits."""
    if lds_bytes > limits.lds_max_per_workgroup:
        return 0
    allocated = _align(lds_bytes + limits.lds_reserved_per_workgroup, limits.lds_granule)
    return limits.lds_bytes // allocated if allocated else None


def _by_workgroups(limits: OccupancyLimits) -> Callable[[int], int]:
    def waves(waves_per_workgroup: int) -> int:
        return _per_simd(limits, _slots(limits, waves_per_workgroup), waves_per_workgroup)

    return waves


def _slots(limits: OccupancyLimits, waves_per_workgroup: int) -> int:
    """Workgroups by wave slots, by barriers (one wave needs none), and by workgroup slots."""
    if waves_per_workgroup * limits.wave_lanes > limits.max_workgroup_threads:
        return 0
    slots = limits.max_waves_per_simd * limits.simds // waves_per_workgroup
    if waves_per_workgroup > 1 and limits.barriers is not None:
        slots = min(slots, limits.barriers)
    return slots if limits.max_workgroups is None else min(slots, limits.max_workgroups)


def _per_simd(limits: OccupancyLimits, workgroups: int | None, waves_per_workgroup: int) -> int:
    if workgroups is None:
        return limits.max_waves_per_simd
    return min(-(-workgroups * waves_per_workgroup // limits.simds), limits.max_waves_per_simd)


def _combine(
    limits: OccupancyLimits, waves_per_workgroup: int, resources: tuple[_Resource, ...]
) -> Occupancy:
    wave_limits = {resource.name: resource.waves(resource.used) for resource in resources}
    wave_limits["waves"] = limits.max_waves_per_simd
    waves = min(wave_limits.values())
    by_name = {resource.name: resource.used for resource in resources}
    counts = [
        min(wave_limits["vgpr"], wave_limits["sgpr"]) * limits.simds // waves_per_workgroup,
        _slots(limits, waves_per_workgroup),
    ]
    lds = _lds_workgroups(limits, by_name["lds"])
    workgroups = min([*counts, lds] if lds is not None else counts)
    fits = workgroups > 0
    return Occupancy(
        waves_per_simd=waves if fits else 0,
        max_waves_per_simd=limits.max_waves_per_simd,
        waves_per_workgroup=waves_per_workgroup,
        workgroups=workgroups,
        limiter=_limiter(wave_limits, waves),
        limits=wave_limits,
        next=None,
        fits=fits,
        resident_waves=workgroups * waves_per_workgroup / limits.simds,
        unit=limits.unit,
    )


def _limiter(wave_limits: Mapping[str, int], waves: int) -> str:
    if waves == wave_limits["waves"]:
        return "waves"
    order = ("lds", "vgpr", "sgpr", "workgroups")
    return ", ".join(name for name in order if wave_limits[name] == waves)


def _next_step(
    limits: OccupancyLimits,
    waves_per_workgroup: int,
    resources: tuple[_Resource, ...],
    current: Occupancy,
) -> NextStep | None:
    """The smallest reduction after which more waves, in whole workgroups, are resident."""
    now = min(current.limits.values()) if current.fits else 0
    for goal in range(now + 1, current.max_waves_per_simd + 1):
        reduced = []
        for resource in resources:
            if resource.waves(resource.used) >= goal:
                reduced.append(resource)
                continue
            amount = resource.largest_for(goal) if resource.name != "workgroups" else None
            if amount is None:
                return None
            reduced.append(replace(resource, used=amount))
        result = _combine(limits, waves_per_workgroup, tuple(reduced))
        if result.resident_waves > current.resident_waves:
            return _step(resources, reduced, result.waves_per_simd)
    return None


def _step(
    resources: tuple[_Resource, ...], reduced: list[_Resource], waves: int
) -> NextStep | None:
    steps = [
        NextStep(before.name, before.used - after.used, after.used, waves)
        for before, after in zip(resources, reduced, strict=True)
        if after.used < before.used
    ]
    return replace(steps[0], also=tuple(steps[1:])) if steps else None
