"""Executed samples of captured launches, while the program's memory is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from wavecast.arch import resolve
from wavecast.compile.codeobject import Launch
from wavecast.errors import WavecastError
from wavecast.integrations.triton.reach import makes_pointers, reachable
from wavecast.predict.packed import pack

if TYPE_CHECKING:
    from wavecast.compile.triton import Slot

Sampler = Callable[[Launch, Any, Sequence[Any], tuple], dict[str, bytes]]


def sampler(devices: Sequence[str], note: Callable[[str], None]) -> Sampler:
    """What executes a sample of a launch for devices; one that cannot be is noted."""
    known = [resolve(name).device for name in devices]

    def sample(
        launch: Launch, kernel: Any, layout: Sequence[Slot], values: tuple
    ) -> dict[str, bytes]:
        everything = makes_pointers(launch.code.stages)
        ranges = reachable(kernel.name, layout, values, everything=everything)
        found = {}
        for device in known:
            try:
                found[device.id] = pack(launch, ranges, device)
            except WavecastError as error:
                note(f"{kernel.name} on {device.id}: no executed sample: {error.message}")
        return found

    return sample


__all__ = ["Sampler", "sampler"]
