"""Launches of a script when they happen, in the memory that their arguments have then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from wavecast import arch
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.errors import WavecastError
from wavecast.lab.evaluation import LabSubject, SubjectSearch
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
            self._tell(f"{kernel.name}: not searched: {error.message}")
        return {}


def devices_of(settings: Any, hooks: Hooks) -> tuple[Device, ...]:
    """The devices of a job that run what this process compiles."""
    every = (arch.load(name, tuple(settings["device_files"])) for name in settings["devices"])
    return tuple(d for d in every if d.target == hooks.driver.facts.target)


__all__ = ["LiveSampler", "devices_of"]
