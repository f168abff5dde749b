"""Partitions of a GPU of several dies: `mi300x-cpx`, `mi355x-dpx-nps2`.

AMD's driver divides the dies of such a GPU among devices of equal size (compute partitions: DPX 2,
TPX 3, QPX 4 devices, CPX one per die), and its memory among as many domains as NPS says. A
partition has its dies and, as if all partitions were busy, its share of what they share: memory,
memory-side cache, links, power. What was measured on the whole GPU is not a fact of a partition.

Modes and the domains that go with them: `drivers/gpu/drm/amd/amdgpu/aqua_vanjaram.c` of Linux.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from wavecast.arch.device import Device
from wavecast.arch.facts import Facts
from wavecast.arch.links import Fabric, Network
from wavecast.arch.quantity import Quantity
from wavecast.arch.reader import Partition
from wavecast.errors import UsageError

_NAME: Final = re.compile(
    r"(.+?)[-_ /](spx|dpx|tpx|qpx|cpx)(?:[-_ /]nps([1-8]))?\s*", re.IGNORECASE
)
_DOMAINS: Final[Mapping[str, tuple[int, ...]]] = {
    "dpx": (1, 2),
    "tpx": (1, 3),
    "qpx": (1, 4),
    "cpx": (1, 2, 4),
}
"""NPS that a mode goes with."""
_DIVIDED: Final = (
    *("cu", "xcds", "l2_size", "l2_bw_peak", "mall", "mall_bw", "mem_size", "mem_bw", "tdp"),
)
"""Facts of the whole GPU that partitions divide; peaks are divided as well."""
_OF_THE_WHOLE: Final = (*("meas_", "maf_", "eff_"), "xgmi", "iods")
"""Beginnings of the names of facts that a partition does not have."""
_SOURCE: Final = ("linux-aqua-vanjaram", "amd-partitioning")


def parse_name(selector: str) -> tuple[str, str, int] | None:
    """The GPU, mode and domains (1 where they are not given) of a partition's name, else None."""
    match = _NAME.fullmatch(selector.strip())
    return (match[1], match[2].lower(), int(match[3] or 1)) if match else None


def partition(whole: Device, mode: str, domains: int) -> Device:
    """A partition of a GPU; the GPU itself in mode `spx`. Raises UsageError."""
    count = _count(mode, whole.dies)
    if mode == "spx":
        if domains != 1:
            raise UsageError(f"{whole.id}: spx goes with NPS1, not NPS{domains}")
        return whole
    if not count:
        modes = [name for name in _DOMAINS if _count(name, whole.dies)]
        what = f"its modes are {', '.join(modes)}" if modes else "it has no partitions"
        raise UsageError(f"{whole.id}: no mode {mode}; {what}")
    if domains not in _DOMAINS[mode]:
        others = ", ".join(f"NPS{number}" for number in _DOMAINS[mode])
        raise UsageError(f"{whole.id}: {mode} goes with {others}, not NPS{domains}")
    identity = replace(
        whole.identity,
        id=f"{whole.id}-{mode}" + (f"-nps{domains}" if domains > 1 else ""),
        name=f"{whole.name} {mode.upper()}/NPS{domains}",
        aliases=(),
        default_for_target=False,
        stands_in_for=(),
        partition=Partition(whole.id, mode, domains, count),
    )
    facts = {
        name: _share(name, fact, count)
        for name, fact in whole.facts.mapping.items()
        if not name.startswith(_OF_THE_WHOLE)
    }
    return Device(identity, Facts(identity.id, facts))


def fabric(part: Partition, device: Device, whole: Fabric | None) -> Fabric:
    """Links among the partitions of a node: those of a GPU copy through their memory, which is read
    and written; they share the links of the GPU to the others."""
    bandwidth = device.facts.quantity("mem_bw").to("B/s").number
    gpus, rate = (whole.gpus, whole.rate(whole.gpus)) if whole else (1, 0.0)
    count = part.count
    return Fabric("packages", gpus * count, rate / count, inner=bandwidth / 2, dies=count)


def network(part: Partition, whole: Network | None) -> Network | None:
    """The NICs of a node of partitions."""
    return whole and replace(whole, gpus=whole.gpus * part.count)


def _count(mode: str, dies: int) -> int:
    """Devices of a GPU of `dies`, 0 where it does not have the mode."""
    if mode == "spx":
        return 1
    supported = {8: ("dpx", "qpx", "cpx"), 6: ("tpx", "cpx"), 4: ("dpx", "cpx")}
    if mode not in supported.get(dies, ()):
        return 0
    return {"dpx": 2, "tpx": 3, "qpx": 4, "cpx": dies}[mode]


def _share(name: str, fact: Quantity, count: int) -> Quantity:
    if not (name in _DIVIDED or name.startswith("peak_")) or name == "peak_clock":
        return fact
    if fact.value is None:
        return fact
    value = fact.number / count
    whole = isinstance(fact.value, int) and value == int(value)
    return replace(
        fact,
        value=int(value) if whole else value,
        status="derived",
        sources=tuple(dict.fromkeys((*fact.sources, *_SOURCE))),
        note=f"1/{count} of the GPU",
        alternatives=(),
    )


__all__ = ["fabric", "network", "parse_name", "partition"]
