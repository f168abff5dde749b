"""What a captured program is told about the GPU it believes it runs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wavecast.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from wavecast.arch import Device

_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "GB": 10**9}


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The answers to a program's device queries.

    `target` is `gfx942` or `sm_90`; sizes are bytes; `shared_bytes` is the most one workgroup may
    have; `memory_bytes` is None where no source gives it.
    """

    target: str
    name: str
    multiprocessors: int
    lanes: int
    shared_bytes: int
    memory_bytes: int | None = None

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

    Raises MissingFact when the memory of a workgroup is not known, UsageError for a target Triton
    does not compile for.
    """
    target = device.target
    if not target.startswith(("gfx", "sm_")):
        raise UsageError(f"{device.name}: Triton does not compile for {target}")
    if target.startswith("gfx"):
        shared = _bytes(device, "lds_max_per_workgroup")
    else:
        shared = _bytes(device, "smem_per_sm_max") - _bytes(device, "smem_reserved_per_block")
    memory = None
    if device.get("mem_size") is not None:
        memory = _bytes(device, "mem_size")
    return DeviceFacts(
        target=target,
        name=device.name,
        multiprocessors=device.compute_units,
        lanes=device.wave_lanes,
        shared_bytes=shared,
        memory_bytes=memory,
    )


def _bytes(device: Device, name: str) -> int:
    quantity = device.quantity(name)
    unit = quantity.unit.split("/")[0]
    if unit not in _UNITS:
        raise UnknownName("unit of size", quantity.unit, _UNITS)
    return round(float(device.value(name)) * _UNITS[unit])
