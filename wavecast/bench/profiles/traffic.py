"""Bandwidth of copies and of collectives, from their bytes and times in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.bench.profiles.profile import NONE, CollectiveMessage, Profile

_TWICE: Final = frozenset({"allreduce", "all_reduce", "allreduce_coalesced"})
_ONCE: Final = frozenset(
    {"allgather", "all_gather", "_allgather_base", "all_gather_into_tensor", "reduce_scatter",
     "_reduce_scatter_base", "reduce_scatter_tensor", "all_to_all", "all_to_allv", "alltoall",
     "all_to_all_single"}
)  # fmt: skip
_WHOLE: Final = frozenset({"broadcast", "reduce", "send", "recv"})
"""Names of c10d by the share of the message that crosses a link: 2 (n - 1) / n, (n - 1) / n and 1
of n ranks (nccl-tests, doc/PERFORMANCE.md)."""


@dataclass(frozen=True, slots=True)
class CopyTraffic:
    """Copies of one name: `size` bytes in all, of those `sized` that have bytes in the file, which
    take `sized_time` nanoseconds of the `nanoseconds` of all `count`."""

    name: str
    count: int
    nanoseconds: int
    sized: int
    size: int
    sized_time: int

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second; None where the file has no bytes."""
        return self.size / self.sized_time * 1e9 if self.sized and self.sized_time else None


@dataclass(frozen=True, slots=True)
class CollectiveTraffic:
    """Launches of collectives with one message. Times are in nanoseconds and include the wait for
    other ranks; `shortest` is the launch that waited least."""

    message: CollectiveMessage
    count: int
    nanoseconds: int
    shortest: int

    @property
    def size(self) -> int:
        """The larger of input and output, in bytes: what algorithm bandwidth is of."""
        return max(self.message.input_bytes, self.message.output_bytes)

    @property
    def algorithm_bandwidth(self) -> float | None:
        """Bytes per second over the mean time."""
        return self.size * self.count / self.nanoseconds * 1e9 if self.nanoseconds else None

    @property
    def bus_bandwidth(self) -> float | None:
        """Bytes per second over the links of a rank in the mean time; None where the operation or
        the number of ranks is not known."""
        return self._bus(self.algorithm_bandwidth)

    @property
    def best_bus_bandwidth(self) -> float | None:
        """That of the shortest launch."""
        return self._bus(self.size / self.shortest * 1e9 if self.shortest else None)

    def _bus(self, bandwidth: float | None) -> float | None:
        operation, ranks = self.message.operation, self.message.ranks
        if bandwidth is None:
            return None
        if operation in _WHOLE:
            return bandwidth
        if not ranks or operation not in _TWICE | _ONCE:
            return None
        return bandwidth * (2 if operation in _TWICE else 1) * (ranks - 1) / ranks


def copy_traffic(profile: Profile) -> list[CopyTraffic]:
    """Copies and fills by name, those with the most time first."""
    copies = profile.copies
    info, size = np.asarray(copies.info, dtype=np.int64), np.asarray(copies.size, dtype=np.int64)
    duration = np.asarray(copies.duration, dtype=np.int64)
    found = []
    for number, name in enumerate(profile.copy_names.values):
        mine = info == number
        sized = mine & (size != NONE)
        if mine.any():
            found.append(
                CopyTraffic(
                    name,
                    int(mine.sum()),
                    int(duration[mine].sum()),
                    int(sized.sum()),
                    int(size[sized].sum()),
                    int(duration[sized].sum()),
                )
            )
    return sorted(found, key=lambda one: -one.nanoseconds)


def collective_traffic(profile: Profile) -> list[CollectiveTraffic]:
    """Collectives whose messages are in the file, those with the most time first."""
    times: dict[CollectiveMessage, list[int]] = {}
    for launch, message in profile.messages.items():
        times.setdefault(message, []).append(profile.launches.duration[launch])
    found = [CollectiveTraffic(key, len(all_), sum(all_), min(all_)) for key, all_ in times.items()]
    return sorted(found, key=lambda one: -one.nanoseconds)


__all__ = ["CollectiveTraffic", "CopyTraffic", "collective_traffic", "copy_traffic"]
