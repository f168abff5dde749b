"""Machines with several GPUs, by name or as `8xMI300X`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wavecast.arch.device import Device
from wavecast.arch.select import load
from wavecast.errors import UsageError

_COUNTED = re.compile(r"(\d{1,6})\s*[x×*]\s*(.+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class System:
    """`gpus` equal GPUs of one node, every one linked to every other."""

    name: str
    device: Device
    gpus: int

    def __str__(self) -> str:
        return self.name


def system(selector: str, files: Sequence[str | Path] = ()) -> System:
    """The machine that a name of `systems.toml`, `8xMI300X` or a device (one GPU) means.

    `files` overlay device facts. Raises UnknownName, and UsageError for more GPUs than a node of
    the device links.
    """
    named = _named().get(selector.lower())
    if named is not None:
        device = load(named["device"], files)
        return System(named["name"], device, named["gpus"]["value"])
    counted = _COUNTED.fullmatch(selector.strip())
    gpus, name = (int(counted[1]), counted[2]) if counted else (1, selector)
    device = load(name, files)
    most = node_size(device)
    if not 1 <= gpus <= most:
        raise UsageError(
            f"{selector}: a node has 1 to {most} {device.id}, not {gpus}",
            hint="links between nodes are not modelled",
        )
    return System(f"{gpus}x {device.name}", device, gpus)


def node_size(device: Device) -> int:
    """Most GPUs that are linked directly: one more than the links of a GPU in a mesh, those of the
    largest machine of `systems.toml` behind a switch, 1 where no link is known."""
    links = device.get("xgmi_links")
    if isinstance(links, (int, float)):
        return int(links) + 1
    sizes = [s["gpus"]["value"] for s in _named().values() if s["device"] == device.id]
    return max(sizes, default=1)


@cache
def _named() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("systems.toml").read_text(encoding="utf-8"))


__all__ = ["System", "node_size", "system"]
