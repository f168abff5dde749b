"""Time of collectives among GPUs of one or several nodes.

A collective in a node is the op `collective` of the op predictors. Among nodes the same share of
every GPU passes through its own NIC (one rail per GPU), in chunks that are on the links of the node
at the same time, as rings of NCCL and RCCL are: the slower of the two parts decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.model.ops.collectives import FUNCTIONS, Collective
from wavecast.systems.training.assumptions import assumptions


@dataclass(frozen=True, slots=True)
class RankGroup:
    """GPUs of one collective: `local` in each of `nodes` nodes."""

    local: int
    nodes: int = 1

    @property
    def size(self) -> int:
        """All GPUs of the group."""
        return self.local * self.nodes


def group(ranks: int, stride: int, node: int) -> RankGroup:
    """`ranks` GPUs, every `stride`-th one, of nodes of `node` GPUs that are filled in order."""
    local = max(1, min(ranks, node // stride if stride < node else 1))
    return RankGroup(local, -(-ranks // local))


@dataclass(frozen=True, slots=True)
class TrainingNetwork:
    """Nodes of `node` GPUs of a device, each with a NIC of `rate` GB/s per direction (0: not
    known)."""

    device: Device
    node: int
    rate: float = 0.0

    def seconds(self, function: str, size: float, ranks: RankGroup) -> float:
        """Time of `function` (a key of `FUNCTIONS`) of `size` bytes, as `Collective` counts them.

        Raises MissingFact where links or NIC are not known.
        """
        if ranks.size < 2 or size <= 0:
            return 0.0
        if ranks.nodes == 1:
            return _local(self.device, function, round(size) or 1, ranks.local)
        if function == "all_to_all":
            return self._exchange(size, ranks)
        passes = FUNCTIONS[function] or 1.0
        share = size / ranks.local
        wire = passes * share * (ranks.nodes - 1) / ranks.nodes
        between = self._message(wire) + passes * (ranks.nodes - 1) ** 0.5 * self._latency
        if ranks.local == 1:
            return between
        return max(between, _local(self.device, function, round(size) or 1, ranks.local))

    def point_to_point(self, size: float, *, crosses: bool) -> float:
        """Time of one message to a GPU of the same or (`crosses`) of another node."""
        if crosses:
            return self._message(size) + self._latency
        return _local(self.device, "broadcast", round(size) or 1, 2)

    def _exchange(self, size: float, ranks: RankGroup) -> float:
        away = size * (ranks.size - ranks.local) / ranks.size
        between = self._message(away) + self._latency
        if ranks.local == 1:
            return between
        return max(between, _local(self.device, "all_to_all", round(size) or 1, ranks.local))

    def _message(self, size: float) -> float:
        if not self.rate:
            raise MissingFact(
                f"the NICs of nodes of {self.node} {self.device.id} are not known",
                hint="--network gives the GB/s of a GPU's NIC",
            )
        return size / (self.rate * 1e9 * assumptions().network_efficiency)

    @property
    def _latency(self) -> float:
        return assumptions().network_latency


@cache
def _local(device: Device, function: str, size: int, gpus: int) -> float:
    if gpus < 2:
        return 0.0
    return Collective(function, size, gpus).predict(device).seconds


__all__ = ["RankGroup", "TrainingNetwork", "group"]
