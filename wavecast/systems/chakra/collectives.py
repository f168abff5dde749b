"""Times of the collectives and messages of a trace: by the formula of NCCL or RCCL, by the fastest
simulated schedule, or as recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from wavecast.arch import Device
from wavecast.arch.links import GpuGroup
from wavecast.perfmodel.ops.collectives import Collective
from wavecast.systems.collectives.exchange import ALL_TO_ALL
from wavecast.systems.collectives.schedule import FUNCTIONS
from wavecast.systems.collectives.search import search
from wavecast.systems.collectives.simulate import Cluster

LIBRARY: Final = "library"
SCHEDULES: Final = "schedules"
AS_RECORDED: Final = "recorded"
METHODS: Final = {
    LIBRARY: "the formula of NCCL or RCCL, and of kernels that exchange tokens",
    SCHEDULES: "the fastest simulated schedule; the formula of functions that have none",
    AS_RECORDED: "the longest recorded duration of its ranks; the formula where there is none",
}


@dataclass(frozen=True, slots=True)
class CollectiveUse:
    """A collective or message of `bytes` among `gpus` GPUs of `nodes` nodes: seconds, the 80 %
    interval, its algorithm, and by which of `METHODS` the time is. Alone it keeps the links of a
    node busy for `links` seconds, those between nodes for `network`."""

    function: str
    bytes: int
    gpus: int
    nodes: int
    seconds: float
    low: float
    high: float
    algorithm: str
    method: str
    links: float = 0.0
    network: float = 0.0


class PricedCollectives:
    """Collectives of a device by a method, each predicted once."""

    def __init__(self, device: Device, method: str) -> None:
        self.device, self.method = device, method
        self._uses: dict[tuple[object, ...], CollectiveUse] = {}

    def collective(
        self,
        function: str,
        size: int,
        group: GpuGroup,
        *,
        recorded: float = 0.0,
        topk: int = 0,
        library: str = "",
        name: str = "",
    ) -> CollectiveUse:
        """`function` of `size` bytes as `Collective` counts them, called `name` in results."""
        name = name or function
        if group.ranks == 1:
            return self._recorded(name, size, group, max(0.0, recorded))
        key = (function, size, group, topk, library, name)
        if key not in self._uses:
            self._uses[key] = self._predicted(function, size, group, topk, library, name)
        use = self._uses[key]
        if recorded > 0 and self.method == AS_RECORDED:
            loads = {"links": use.links, "network": use.network}
            return replace(self._recorded(name, size, group, recorded), **loads)
        return use

    def message(self, size: int, group: GpuGroup) -> CollectiveUse:
        """From one GPU to another."""
        return self.collective("broadcast", max(1, size), group, name="send")

    def _recorded(self, name: str, size: int, group: GpuGroup, seconds: float) -> CollectiveUse:
        algorithm = "as recorded" if seconds else "one rank"
        times = (seconds, seconds, seconds)
        return CollectiveUse(name, size, group.ranks, group.nodes, *times, algorithm, AS_RECORDED)

    def _predicted(
        self, function: str, size: int, group: GpuGroup, topk: int, library: str, name: str
    ) -> CollectiveUse:
        problem = Collective(function, size, group.ranks, group=group, topk=topk, library=library)
        formula = problem.predict(self.device)
        scale, algorithm, method = 1.0, str(formula.assumed["algorithm"]), LIBRARY
        scheduled = topk or function in (*FUNCTIONS, ALL_TO_ALL)
        if self.method == SCHEDULES and scheduled:
            best = search(function, size, Cluster(self.device, group), topk)[0]
            scale, algorithm, method = best.seconds / formula.seconds, best.schedule.name, SCHEDULES
        return CollectiveUse(
            name,
            size,
            group.ranks,
            group.nodes,
            formula.seconds * scale,
            formula.low * scale,
            formula.high * scale,
            algorithm,
            method,
            **problem.transfers(self.device),
        )


__all__ = ["AS_RECORDED", "LIBRARY", "METHODS", "SCHEDULES", "CollectiveUse", "PricedCollectives"]
