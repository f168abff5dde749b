"""Bandwidth of copies and of collectives, from their bytes and times in the file."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np

from wavecast.json_objects import Count, JsonObject, NonNegative, doc
from wavecast.profiles.profile import NONE, CollectiveMessage, Profile

_TWICE: Final = frozenset({"allreduce", "all_reduce", "allreduce_coalesced"})
_ONCE: Final = frozenset(
    {"allgather", "all_gather", "_allgather_base", "all_gather_into_tensor", "reduce_scatter",
     "_reduce_scatter_base", "reduce_scatter_tensor", "all_to_all", "all_to_allv", "alltoall",
     "all_to_all_single"}
)  # fmt: skip
_WHOLE: Final = frozenset({"broadcast", "reduce", "send", "recv"})
"""Names of c10d by the share of the message that crosses a link: 2 (n - 1) / n, (n - 1) / n and 1
of n ranks (nccl-tests, doc/PERFORMANCE.md)."""


class CopyTraffic(JsonObject):
    """Copies and fills of one name."""

    name: Annotated[str, doc("name in the file")]
    count: Annotated[Count, doc("copies")]
    seconds: Annotated[NonNegative, doc("time of all copies")]
    bytes: Annotated[Count, doc("bytes of the copies that have them in the file")]
    bandwidth: Annotated[float | None, doc("bytes per second; null: no bytes in the file")]


class CollectiveTraffic(JsonObject):
    """Launches of collectives with one message; times include the wait for other ranks."""

    operation: Annotated[str, doc("name of the operation in the file")]
    ranks: Annotated[Count, doc("ranks of the group; 0: not in the file")]
    input_bytes: Annotated[Count, doc("bytes of the input on one rank")]
    output_bytes: Annotated[Count, doc("bytes of the output on one rank")]
    count: Annotated[Count, doc("launches")]
    seconds: Annotated[NonNegative, doc("time of all launches")]
    algorithm_bandwidth: Annotated[
        float | None, doc("larger of input and output over the mean time, bytes per second")
    ]
    bus_bandwidth: Annotated[
        float | None, doc("over the links of a rank, as nccl-tests defines it; null: not known")
    ]
    best_bus_bandwidth: Annotated[float | None, doc("that of the shortest launch")]

    @property
    def size(self) -> int:
        """The larger of input and output, in bytes: what algorithm bandwidth is of."""
        return max(self.input_bytes, self.output_bytes)


def bus_bandwidth(message: CollectiveMessage, bandwidth: float | None) -> float | None:
    """Bytes per second over the links of a rank, from the algorithm bandwidth; None where the
    operation or the number of ranks is not known."""
    operation, ranks = message.operation, message.ranks
    if bandwidth is None or operation in _WHOLE:
        return bandwidth
    if not ranks or operation not in _TWICE | _ONCE:
        return None
    return bandwidth * (2 if operation in _TWICE else 1) * (ranks - 1) / ranks


def copy_traffic(profile: Profile) -> list[CopyTraffic]:
    """Copies and fills by name, those with the most time first."""
    copies = profile.copies
    info, size = np.asarray(copies.info, dtype=np.int64), np.asarray(copies.size, dtype=np.int64)
    duration = np.asarray(copies.duration, dtype=np.int64)
    rows = []
    for number, name in enumerate(profile.copy_names.values):
        mine = info == number
        sized = mine & (size != NONE)
        if mine.any():
            total, time = int(size[sized].sum()), int(duration[sized].sum())
            rows.append(
                CopyTraffic(
                    name=name,
                    count=int(mine.sum()),
                    seconds=int(duration[mine].sum()) * 1e-9,
                    bytes=total,
                    bandwidth=total / time * 1e9 if time else None,
                )
            )
    return sorted(rows, key=lambda row: -row.seconds)


def collective_traffic(profile: Profile) -> list[CollectiveTraffic]:
    """Collectives whose messages are in the file, those with the most time first."""
    times: dict[CollectiveMessage, list[int]] = {}
    for launch, message in profile.messages.items():
        times.setdefault(message, []).append(profile.launches.duration[launch])
    rows = [_collective(message, durations) for message, durations in times.items()]
    return sorted(rows, key=lambda row: -row.seconds)


def _collective(message: CollectiveMessage, durations: list[int]) -> CollectiveTraffic:
    size = max(message.input_bytes, message.output_bytes)
    time, shortest = sum(durations), min(durations)
    algorithm = size * len(durations) / time * 1e9 if time else None
    return CollectiveTraffic(
        operation=message.operation,
        ranks=message.ranks,
        input_bytes=message.input_bytes,
        output_bytes=message.output_bytes,
        count=len(durations),
        seconds=time * 1e-9,
        algorithm_bandwidth=algorithm,
        bus_bandwidth=bus_bandwidth(message, algorithm),
        best_bus_bandwidth=bus_bandwidth(message, size / shortest * 1e9 if shortest else None),
    )


__all__ = [
    "CollectiveTraffic",
    "CopyTraffic",
    "bus_bandwidth",
    "collective_traffic",
    "copy_traffic",
]
