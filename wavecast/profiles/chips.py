"""Which chip a profiled device is: by its name, its target, or its units and memory."""

from __future__ import annotations

from wavecast.arch.device import Device
from wavecast.arch.select import devices, load
from wavecast.errors import UnknownName
from wavecast.profiles.profile import ProfiledDevice

_TOLERANCE = 0.12
"""Share by which sizes may differ: drivers count in GiB, datasheets in GB, some is reserved."""


def chips(device_info: ProfiledDevice, target: str = "") -> tuple[Device, ...]:
    """The chips that a device may be, none where the file says nothing that is known.

    `target` restricts them, where something else in the profile names it.
    """
    if device_info.name:
        try:
            return (load(device_info.name),)
        except UnknownName:
            pass
    candidates = devices()
    target = device_info.target or target
    if target:
        candidates = tuple(device for device in candidates if device.target == target)
    if device_info.units:
        candidates = tuple(
            device for device in candidates if device.compute_units == device_info.units
        )
    if device_info.memory_bytes:
        candidates = tuple(
            device for device in candidates if _memory(device, device_info.memory_bytes)
        )
    return candidates if target or device_info.units else ()


def _memory(device: Device, size: int) -> bool:
    if device.get("mem_size") is None:
        return False
    return abs(device.facts.integer("mem_size", "B") - size) <= _TOLERANCE * size


__all__ = ["chips"]
