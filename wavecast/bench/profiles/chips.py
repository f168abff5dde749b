"""Which chip a profiled device is: by its name, its target, or its units and memory."""

from __future__ import annotations

from wavecast.arch.device import Device
from wavecast.arch.select import devices, load
from wavecast.bench.profiles.profile import ProfiledDevice
from wavecast.errors import UnknownName

_TOLERANCE = 0.12
"""Share by which sizes may differ: drivers count in GiB, datasheets in GB, some is reserved."""


def chips(found: ProfiledDevice, target: str = "") -> tuple[Device, ...]:
    """The chips that a device may be, none where the file says nothing that is known.

    `target` restricts them, where something else in the profile names it.
    """
    if found.name:
        try:
            return (load(found.name),)
        except UnknownName:
            pass
    known = devices()
    target = found.target or target
    if target:
        known = tuple(device for device in known if device.target == target)
    if found.units:
        known = tuple(device for device in known if device.compute_units == found.units)
    if found.memory_bytes:
        known = tuple(device for device in known if _memory(device, found.memory_bytes))
    return known if target or found.units else ()


def _memory(device: Device, size: int) -> bool:
    if device.get("mem_size") is None:
        return False
    return abs(device.facts.integer("mem_size", "B") - size) <= _TOLERANCE * size


__all__ = ["chips"]
