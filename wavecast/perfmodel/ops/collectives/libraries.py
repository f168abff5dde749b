"""Which algorithm an all-reduce of an engine is, by size: the thresholds of `libraries.toml`.

`library` is "" (NCCL, RCCL), an engine (`vllm`, `sglang`: reads of all ranks, or the switch), or
`quick-int4` (`quick-fp`, -int8, -int6: the quantised all-reduce of ROCm, RCCL below its threshold).
`wavecast` are the kernels of `wavecast.ops.distributed`: the faster of one and two shots at
every size. Of dispatch and combine `library` is one of `EXCHANGE_KERNELS`, "" the faster.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any, Final

from wavecast.arch import Device
from wavecast.arch.links import GpuGroup
from wavecast.errors import UnknownName
from wavecast.perfmodel.chip import of_device
from wavecast.perfmodel.ops.collectives.algorithms import (
    EXCHANGE_KERNELS,
    EXCHANGES,
    CollectiveTime,
    Known,
    direct_reads,
    library_estimates,
    multimem,
)

_QUICK = "quick"
OWN: Final = "wavecast"
"""The library of `wavecast.ops.distributed`."""
OWN_BLOCKS: Final = 64
"""Most workgroups of its collectives, one per compute unit. AITER and vLLM launch 36 to 80."""
OWN_HALF: Final = 8 << 20
"""Bytes that one of its launches stages; longer inputs take several launches."""


def check(function: str, library: str) -> None:
    """Raises UnknownName for a library that no table has, or kernels that no exchange has."""
    if function in EXCHANGES:
        if library and library not in EXCHANGE_KERNELS:
            raise UnknownName(f"kernels of {function}", library, EXCHANGE_KERNELS)
        return
    table = _tables()
    names = [name for name in table if name != _QUICK]
    names += [f"{_QUICK}-{form}" for form in table[_QUICK]["width"]] + [OWN]
    if library and library not in names:
        raise UnknownName("library of collectives", library, names)


def estimates(
    function: str,
    size: float,
    group: GpuGroup,
    device: Device,
    constants: Known,
    library: str = "",
    channels: int = 0,
) -> Iterator[CollectiveTime]:
    """What a library may launch; the fastest runs. Engines replace all-reduces in a node only, with
    `channels` workgroups (0: those they launch)."""
    if function == "all_reduce" and library and group.nodes == 1:
        if library == OWN:
            yield from own_reads(size, group, device, constants, channels=channels)
            return
        estimate = _custom_kernel_time(size, group, device, constants, library)
        if estimate is not None:
            yield estimate
            return
    yield from library_estimates(function, size, group, constants)


def _custom_kernel_time(
    size: float, group: GpuGroup, device: Device, constants: Known, library: str
) -> CollectiveTime | None:
    ranks = group.local
    if library.startswith(f"{_QUICK}-"):
        table, form = _tables()[_QUICK], library.partition("-")[2]
        least = {(row[0], row[1]): row[2] for row in table["rows"]}.get((form, ranks))
        if least is None or size < least or device.generation not in table["generations"]:
            return None
        width = table["width"][form]
        return direct_reads(size, group, constants, shots=2, width=width)
    table = _tables()[library]
    for generation, count, one_shot, reads, switch in table["rows"]:
        if (generation, count) != (device.generation, ranks):
            continue
        if size <= reads:
            shots = 1 if size <= one_shot else 2
            return direct_reads(size, group, constants, shots=shots, blocks=table["blocks"])
        if size <= switch:
            return multimem(size, group, constants)
    return None


def own_kernels(function: str, library: str) -> bool:
    """Whether a collective runs as kernels of `wavecast.ops.distributed`, whose workgroups read."""
    return library == OWN and function == "all_reduce"


def own_reads(
    size: float,
    group: GpuGroup,
    device: Device,
    constants: Known,
    *,
    width: float = 1.0,
    channels: int = 0,
) -> tuple[CollectiveTime, CollectiveTime]:
    """All-reduce by `wavecast.ops.distributed` in one shot and in two, by up to `channels`
    workgroups; `width` is the share of the bytes that is sent.

    Every launch first copies its input to the buffer that peers read: a read and a write of memory.
    """
    launches = max(1, math.ceil(size / OWN_HALF))
    staged = 2 * size / of_device(device).hbm
    blocks = min(channels or OWN_BLOCKS, OWN_BLOCKS)
    variants: list[CollectiveTime] = []
    for shots in (1, 2):
        estimate = direct_reads(size, group, constants, shots=shots, width=width, blocks=blocks)
        bounds = {name: seconds + staged for name, seconds in estimate.bounds.items()}
        variants.append(replace(estimate, latency=launches * estimate.latency, bounds=bounds))
    return variants[0], variants[1]


def own_shots(size: float, group: GpuGroup, device: Device, constants: Known) -> int:
    """The shots of an all-reduce of `size` bytes that are predicted to be faster, one or two."""
    one_shot, two = own_reads(size, group, device, constants)
    return 1 if one_shot.seconds <= two.seconds else 2


def of_engine(name: str) -> str:
    """The library of the all-reduces of an engine: its name if it has thresholds or kernels, else
    ""."""
    return name if name == OWN or (name in _tables() and name != _QUICK) else ""


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    path = resources.files("wavecast.perfmodel.ops.collectives") / "libraries.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


__all__ = [
    "OWN",
    "OWN_BLOCKS",
    "OWN_HALF",
    "check",
    "estimates",
    "of_engine",
    "own_kernels",
    "own_reads",
    "own_shots",
]
