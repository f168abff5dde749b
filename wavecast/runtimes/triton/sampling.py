"""Executed samples of captured launches, while the program's memory is there.

Kernels whose pointers are all to integers of more than 8 bits (counts, orders, block tables) are
run whole: how often later kernels loop and where they reach depends on what those write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wavecast.arch import resolve
from wavecast.compile.codeobject import Launch
from wavecast.compile.names import readable
from wavecast.emulate.launch import AddressRange, Emulator
from wavecast.errors import WavecastError
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.runtimes.triton.launches import value_at
from wavecast.runtimes.triton.reach import makes_pointers, only_indices, reachable
from wavecast.sampling.executed import profile_of_sample

if TYPE_CHECKING:
    from wavecast.compile.triton import Slot


class Sampler:
    """Executes samples of launches for `devices`, of one target; what cannot be is noted. With
    `run_all` other kernels are run as well, so that samples see what those before them made."""

    def __init__(
        self, devices: Sequence[str], note: Callable[[str], None], *, run_all: bool = False
    ) -> None:
        self._run_all = run_all
        self._devices = [resolve(name).device for name in devices]
        self._note = note
        self._emulator = Emulator()

    def sample(
        self, launch: Launch, kernel: Any, layout: Sequence[Slot], values: tuple
    ) -> dict[str, LaunchProfile]:
        """The profile of an executed sample of the launch, by the name of the device. Caches are
        empty, as for profiles from code; memory stays as it is."""
        try:
            ranges = _ranges(kernel, layout, values)
        except WavecastError as error:
            self._note(f"{kernel.name}: no executed sample: {error.message}")
            return {}
        return self.sample_ranges(launch, ranges)

    def sample_ranges(
        self, launch: Launch, ranges: Sequence[AddressRange]
    ) -> dict[str, LaunchProfile]:
        """As `sample`, of a launch that may touch `ranges`."""
        profiles = {}
        for device in self._devices:
            try:
                profiles[device.id] = profile_of_sample(launch, ranges, device, warm=False)
            except WavecastError as error:
                name = readable(launch.code.kernel)
                self._note(f"{name} on {device.id}: no executed sample: {error.message}")
        return profiles

    def runs(self, arguments: Iterable[Any]) -> bool:
        """Whether a kernel of these arguments is run: it sees nothing but indices, or all are."""
        return self._run_all or only_indices(arguments)

    def run(self, launch: Launch, kernel: Any, layout: Sequence[Slot], values: tuple) -> None:
        """Run a launch that `runs`."""
        if not self.runs(value_at(values, slot.path) for slot in layout):
            return
        try:
            self._emulator.run(launch, _ranges(kernel, layout, values))
        except WavecastError as error:
            self._note(f"{kernel.name}: what it makes could not be made: {error.message}")


def _ranges(kernel: Any, layout: Sequence[Slot], values: tuple) -> list[AddressRange]:
    everything = makes_pointers(kernel.asm)
    return reachable(kernel.name, layout, values, everything=everything)


__all__ = ["Sampler"]
