"""`wavecast.api.arch.facts`: the devices wavecast knows, and their facts side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.api.result import ShownResult, few
from wavecast.errors import UnknownName
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import FILE, Regex, Several

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.arch import Device, Resolution


@dataclass(frozen=True, kw_only=True)
class FactOptions(Options):
    """Options of the facts of devices."""

    arch_files: tuple[Path, ...] = option(
        (),
        "TOML that adds a device or overrides facts of one; repeatable.",
        "--arch-file",
        values=Several(FILE),
    )
    field: str = option("", "Only fields whose name matches.", values=Regex())
    sources: bool = option(False, "Show the source of every value, and notes.")


@dataclass(frozen=True, slots=True, repr=False)
class FactTable(ShownResult):
    """Facts of devices: the fields `names`, or with `listing` only what is compared first. The
    document is `wavecast.arch/1`."""

    resolutions: Sequence[Resolution]
    names: Sequence[str]
    listing: bool = False
    sources: bool = False

    @property
    def devices(self) -> list[Device]:
        """The devices."""
        return [resolution.device for resolution in self.resolutions]

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report import devices

        return devices.document(self.resolutions, self.names)

    def render(self, console: Console) -> None:
        from wavecast.report import devices

        if self.listing:
            devices.overview(self.devices, console)
        else:
            devices.render(self.devices, self.names, console, sources=self.sources)

    def messages(self) -> list[str]:
        return [resolution.note for resolution in self.resolutions if resolution.note]

    def subject(self) -> str:
        return few([device.id for device in self.devices])


def facts(
    *devices: str,
    progress: Progress = silent,  # noqa: ARG001
    **options: Any,
) -> FactTable:
    """The facts of devices, by id, marketing name, gfx target or sm target; without any, a list of
    all. `options` are those of the command line, by the names of `FactOptions`.

    Raises UnknownName for a device or a field, InputError for a file that cannot be read.
    """
    from wavecast import arch

    stated = FactOptions.of(options)
    files = stated.arch_files
    chosen = [arch.resolve(name, files) for name in devices] or [
        arch.Resolution(device) for device in arch.devices(files)
    ]
    names = _field_names([resolution.device for resolution in chosen], stated.field)
    return FactTable(chosen, names, not devices and not stated.field, stated.sources)


def _field_names(devices: Sequence[Device], pattern: str) -> list[str]:
    """Fields any of the devices has, in display order, that match the pattern.

    Raises UnknownName for a pattern that matches nothing.
    """
    from wavecast.arch.fields import fields

    present = {name for device in devices for name in device.fields()}
    names = [name for name in fields() if name in present]
    matching = [name for name in names if re.search(pattern, name)]
    if not matching:
        raise UnknownName("field", pattern, names)
    return matching


__all__ = ["FactOptions", "FactTable", "facts"]
