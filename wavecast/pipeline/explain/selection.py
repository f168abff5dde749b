"""Which devices a run is about: selectors to devices, one capture per target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wavecast import arch
from wavecast.arch import Device
from wavecast.errors import UsageError


@dataclass(frozen=True, slots=True)
class Selection:
    """The devices asked for, in order and without repeats, and notes on how they were taken."""

    devices: tuple[Device, ...]
    notes: tuple[str, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The distinct compiler targets of the devices, in order."""
        return tuple(dict.fromkeys(device.target for device in self.devices))

    def on(self, target: str) -> tuple[Device, ...]:
        """The devices with this compiler target."""
        return tuple(device for device in self.devices if device.target == target)


DEFAULT = "gfx942"
"""The target of source for which no GPU is named."""


def selectors(selector_list: str | None, paths: Iterable[str | Path]) -> list[str]:
    """Device selectors separated by commas; without them the targets that the code files name,
    and `DEFAULT` for source."""
    if selector_list is not None:
        return selector_list.split(",")
    from wavecast import compile as compilers

    targets = (compilers.stated_target(path) for path in paths)
    return list(dict.fromkeys(target for target in targets if target)) or [DEFAULT]


def select(selectors: Iterable[str], files: Sequence[str | Path] = ()) -> Selection:
    """Resolve device selectors (names, gfx or sm targets). Raises UnknownName or UsageError."""
    devices: dict[str, Device] = {}
    notes = []
    for selector in selectors:
        name = selector.strip()
        if not name:
            continue
        resolution = arch.resolve(name, files=files)
        devices.setdefault(resolution.device.id, resolution.device)
        if resolution.note:
            notes.append(resolution.note)
    if not devices:
        raise UsageError("no GPU is given", hint="use --arch, for example --arch gfx942,gfx1100")
    return Selection(tuple(devices.values()), tuple(dict.fromkeys(notes)))
