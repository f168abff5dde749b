"""Which algorithm an all-reduce of an engine is, by size: the thresholds of `libraries.toml`.

`library` is "" (NCCL, RCCL), an engine (`vllm`, `sglang`: reads of all ranks, or the switch), or
`quick-int4` (`quick-fp`, -int8, -int6: the quantised all-reduce of ROCm, RCCL below its threshold).
Of dispatch and combine it is one of `EXCHANGE_KERNELS`, "" the faster.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from wavecast.arch import Device
from wavecast.arch.links import GpuGroup
from wavecast.errors import UnknownName
from wavecast.model.ops.collectives.algorithms import (
    EXCHANGE_KERNELS,
    EXCHANGES,
    CollectiveTime,
    Known,
    direct_reads,
    library_estimates,
    multimem,
)

_QUICK = "quick"


def check(function: str, library: str) -> None:
    """Raises UnknownName for a library that no table has, or kernels that no exchange has."""
    if function in EXCHANGES:
        if library and library not in EXCHANGE_KERNELS:
            raise UnknownName(f"kernels of {function}", library, EXCHANGE_KERNELS)
        return
    table = _tables()
    known = [name for name in table if name != _QUICK]
    known += [f"{_QUICK}-{form}" for form in table[_QUICK]["width"]]
    if library and library not in known:
        raise UnknownName("library of collectives", library, known)


def estimates(
    function: str,
    size: float,
    group: GpuGroup,
    device: Device,
    known: Known,
    library: str = "",
) -> Iterator[CollectiveTime]:
    """What a library may launch; the fastest runs. Engines replace all-reduces in a node only."""
    if function == "all_reduce" and library and group.nodes == 1:
        own = _own(size, group, device, known, library)
        if own is not None:
            yield own
            return
    yield from library_estimates(function, size, group, known)


def _own(
    size: float, group: GpuGroup, device: Device, known: Known, library: str
) -> CollectiveTime | None:
    ranks = group.local
    if library.startswith(f"{_QUICK}-"):
        table, form = _tables()[_QUICK], library.partition("-")[2]
        least = {(row[0], row[1]): row[2] for row in table["rows"]}.get((form, ranks))
        if least is None or size < least or device.generation not in table["generations"]:
            return None
        width = table["width"][form]
        return direct_reads(size, group, known, shots=2, width=width)
    table = _tables()[library]
    for generation, count, one_shot, reads, switch in table["rows"]:
        if (generation, count) != (device.generation, ranks):
            continue
        if size <= reads:
            shots = 1 if size <= one_shot else 2
            return direct_reads(size, group, known, shots=shots, blocks=table["blocks"])
        if size <= switch:
            return multimem(size, group, known)
    return None


def of_engine(name: str) -> str:
    """The library of the all-reduces of an engine: its name if it has thresholds, else ""."""
    return name if name in _tables() and name != _QUICK else ""


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    path = resources.files("wavecast.model.ops.collectives") / "libraries.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


__all__ = ["check", "estimates", "of_engine"]
