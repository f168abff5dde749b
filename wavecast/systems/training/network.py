"""Time of what groups of GPUs send each other, on the links and NICs of a system."""

from __future__ import annotations

from functools import cache

from wavecast.arch import Device
from wavecast.arch.links import GpuGroup
from wavecast.arch.systems import System
from wavecast.errors import MissingFact
from wavecast.perfmodel.ops.collectives import Collective


def group(system: System, ranks: int, stride: int) -> GpuGroup:
    """`ranks` GPUs whose numbers are `stride` apart, the same number in every node: the most that a
    node has room for.

    Raises MissingFact where the links of the node, or those between nodes, are not known.
    """
    room = max(1, system.node_gpus // stride)
    local = max(size for size in range(1, min(ranks, room) + 1) if ranks % size == 0)
    if local > 1 and system.fabric is None:
        raise MissingFact(f"{system}: the links between the GPUs of a node are not known")
    if local < ranks and system.network is None:
        raise MissingFact(
            f"{system}: {ranks} GPUs, {stride} apart, are on several nodes, whose network is not "
            "known"
        )
    return GpuGroup(system.fabric, system.network, local, ranks // local)


def group_seconds(
    system: System, function: str, size: float, ranks: int, stride: int = 1, *, topk: int = 0
) -> float:
    """Time of `function` of `size` bytes, as `Collective` counts them (`topk`: of its exchanges of
    tokens), next to the same of all other groups. 0 for one GPU or no bytes."""
    if ranks < 2 or size <= 0:
        return 0.0
    return _seconds(
        system.device, function, max(1, round(size)), group(system, ranks, stride), topk
    )


@cache
def _seconds(device: Device, function: str, size: int, among: GpuGroup, topk: int) -> float:
    op = Collective(function, size, among.ranks, group=among, topk=topk)
    return op.predict(device).seconds


__all__ = ["group", "group_seconds"]
