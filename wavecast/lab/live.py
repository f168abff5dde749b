"""Launches of a script when they happen, in the memory that their arguments have then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from wavecast import arch
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.compile.names import readable
from wavecast.emulate.launch import AddressRange
from wavecast.errors import WavecastError
from wavecast.lab.evaluation import LabSubject, SubjectSearch, check_lds
from wavecast.runtimes.triton.reach import makes_pointers, reachable
from wavecast.runtimes.triton.sampling import Sampler

if TYPE_CHECKING:
    from wavecast.compile.triton import Slot
    from wavecast.perfmodel.profile import LaunchProfile
    from wavecast.runtimes.triton.hooks import Hooks


class LiveSampler(Sampler):
    """Hands every new launch to a search where a capture would sample it."""

    def __init__(
        self, devices: tuple[Device, ...], search: SubjectSearch, note: Callable[[str], None]
    ) -> None:
        super().__init__([], note)
        self._of = devices
        self._search = search
        self._tell = note

    def sample(
        self, launch: Launch, kernel: Any, layout: Sequence[Slot], values: tuple
    ) -> dict[str, LaunchProfile]:
        everything = makes_pointers(kernel.asm)
        try:
            ranges = reachable(kernel.name, layout, values, everything=everything)
            self._search.search(LabSubject(launch, tuple(ranges), self._of))
        except WavecastError as error:
            self._refuse(launch, error)
        return {}

    def sample_ranges(
        self, launch: Launch, ranges: Sequence[AddressRange]
    ) -> dict[str, LaunchProfile]:
        """As `sample`, of a launch through HIP: the code of its module is searched."""
        try:
            check_lds(launch, self._of[0])
            self._search.search(LabSubject(launch, tuple(ranges), self._of))
        except WavecastError as error:
            self._refuse(launch, error)
        return {}

    def _refuse(self, launch: Launch, error: WavecastError) -> None:
        name = launch.code.kernel
        self._tell(f"{readable(name)}: not searched: {error.message.removeprefix(f'{name}: ')}")


def devices_of(settings: Any, hooks: Hooks) -> tuple[Device, ...]:
    """The devices of a job that run what this process compiles."""
    every = (arch.load(name, tuple(settings["device_files"])) for name in settings["devices"])
    return tuple(d for d in every if d.target == hooks.driver.facts.target)


__all__ = ["LiveSampler", "devices_of"]
