"""What a captured program learns when it asks for the properties of its GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wavecast.arch import capabilities
from wavecast.errors import UsageError

if TYPE_CHECKING:
    from wavecast.arch import Device


_NUMBERS: Final = {
    "amd": re.compile(r"gfx(?P<major>\d+)(?P<minor>[0-9a-f])[0-9a-f]"),
    "nvidia": re.compile(r"sm_(?P<major>\d+)(?P<minor>\d)"),
}
"""The numbers in names of targets, by vendor."""
_WIDTH: Final = re.compile(r"\b(\d+)-bit\b")


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The answers to a program's device queries.

    `target` is `gfx942` or `sm_90`, `vendor` `amd` or `nvidia`; sizes are bytes; `shared_bytes` is
    the most one workgroup may have; `resident_threads` is the most a multiprocessor holds;
    `lane_registers` are the 32-bit vector registers one lane can have, `simd_registers` those of a
    SIMD per lane, for all its waves, AGPRs included in both. `memory_bytes` and `l2_bytes` are None
    where no source gives them. `clock_hz` is the highest engine clock, `memory_bits` the width of
    the memory's interface and `memory_clock_hz` its clock, of which each edge transfers data; None
    where no source gives them.
    """

    target: str
    vendor: str
    name: str
    multiprocessors: int
    lanes: int
    shared_bytes: int
    resident_threads: int
    simds: int
    lane_registers: int
    simd_registers: int
    memory_bytes: int | None = None
    l2_bytes: int | None = None
    clock_hz: float | None = None
    memory_bits: int | None = None
    memory_clock_hz: float | None = None

    @property
    def is_amd(self) -> bool:
        return self.vendor == "amd"

    @property
    def capability(self) -> tuple[int, int]:
        """CUDA compute capability; for AMD what ROCm derives from the target (gfx942: 9, 4).

        Raises UsageError for a target without one.
        """
        match = _NUMBERS[self.vendor].fullmatch(self.target)
        if match is None:
            raise UsageError(f"{self.name}: Triton does not compile for {self.target}")
        return int(match["major"]), int(match["minor"], 16)


def facts_of(device: Device) -> DeviceFacts:
    """What programs may ask, out of the device's facts.

    A multiprocessor is what the vendor's runtime calls one: a CU, a WGP on RDNA, an SM. Raises
    MissingFact where a number is not known, UsageError for a target Triton does not compile for.
    """
    limits = device.limits()
    files = 2 if limits.separate_agpr else 1

    def size(field: str) -> int | None:
        return None if device.get(field) is None else device.facts.integer(field, "B")

    width, bandwidth = _memory_bits(device), device.peak_bandwidth()
    clock = None
    if width is not None and bandwidth is not None:
        clock = bandwidth.number * 8 / width / 2
    facts = DeviceFacts(
        target=device.target,
        vendor=device.vendor,
        name=device.name,
        multiprocessors=limits.units or device.compute_units,
        lanes=device.wave_lanes,
        shared_bytes=limits.lds_max_per_workgroup,
        resident_threads=limits.simds * limits.max_waves_per_simd * limits.wave_lanes,
        simds=limits.simds,
        lane_registers=capabilities(device.target).registers_per_lane,
        simd_registers=files * limits.vgpr_total,
        memory_bytes=size("mem_size"),
        l2_bytes=size("l2_size"),
        clock_hz=None if device.get("peak_clock") is None else device.clock_hz.number,
        memory_bits=width,
        memory_clock_hz=clock,
    )
    facts.capability  # noqa: B018  raises for a target without one
    return facts


def _memory_bits(device: Device) -> int | None:
    """The width of the memory's interface, which is part of its type: `HBM3 8192-bit 5.2 Gbps`."""
    match = _WIDTH.search(str(device.get("mem_type") or ""))
    return int(match[1]) if match is not None else None
