"""Triton has one active driver in a process, so one capture or device at a time."""

from __future__ import annotations

from wavecast.errors import UsageError
from wavecast.runtimes.patching import Patches

_owners: list[Patches] = []


def claim(patches: Patches) -> None:
    """Claim Triton until `patches` are undone. Raises UsageError if it is already claimed."""
    if _owners:
        raise UsageError("a capture or a device cannot be used inside another one")
    _owners.append(patches)
    patches.callback(_owners.clear)
