"""What a captured program is told about the GPU it believes it runs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wavecast.errors import UsageError

if TYPE_CHECKING:
    from wavecast.arch import Device


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The answers to a program's device queries.

    `target` is `gfx942` or `sm_90`; sizes are bytes; `shared_bytes` is the most one workgroup may
    have; `resident_threads` is the most a multiprocessor holds; `memory_bytes` and `l2_bytes` are
    None where no source gives them.
    """

    target: str
    name: str
    multiprocessors: int
    lanes: int
    shared_bytes: int
    resident_threads: int
    memory_bytes: int | None = None
    l2_bytes: int | None = None

    @property
    def is_amd(self) -> bool:
        return self.target.startswith("gfx")

    @property
    def capability(self) -> tuple[int, int]:
        """CUDA compute capability; for AMD what ROCm derives from the target (gfx942: 9, 4)."""
        if self.is_amd:
            digits = self.target.removeprefix("gfx")
            return int(digits[:-2]), int(digits[-2], 16)
        major, minor = divmod(int(self.target.removeprefix("sm_")), 10)
        return major, minor


def facts_of(device: Device) -> DeviceFacts:
    """What programs may ask, out of the device's facts.

    A multiprocessor is what the vendor's runtime calls one: a CU, a WGP on RDNA, an SM. Raises
    MissingFact where a number is not known, UsageError for a target Triton does not compile for.
    """
    target = device.target
    if not target.startswith(("gfx", "sm_")):
        raise UsageError(f"{device.name}: Triton does not compile for {target}")
    limits = device.limits()

    def size(field: str) -> int | None:
        return None if device.get(field) is None else device.facts.integer(field, "B")

    return DeviceFacts(
        target=target,
        name=device.name,
        multiprocessors=limits.units or device.compute_units,
        lanes=device.wave_lanes,
        shared_bytes=limits.lds_max_per_workgroup,
        resident_threads=limits.simds * limits.max_waves_per_simd * limits.wave_lanes,
        memory_bytes=size("mem_size"),
        l2_bytes=size("l2_size"),
    )
