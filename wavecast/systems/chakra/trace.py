"""Execution traces of ranks as values: nodes, what they come after, groups of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from wavecast.errors import InputError

COLLECTIVE = "COMM_COLL_NODE"
SEND = "COMM_SEND_NODE"
RECEIVE = "COMM_RECV_NODE"
SILENT = ("INVALID_NODE", "METADATA_NODE")
"""Kinds of nodes that do nothing."""

TraceValue = bool | int | float | str | list[bool]


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node of `kind` (a key of `NODE_TYPES`) after others of its rank, by their index.

    `start` and `seconds` are what was recorded, 0 where nothing was; `about` has its attributes.
    """

    name: str
    kind: str
    after: tuple[int, ...]
    start: float
    seconds: float
    about: Mapping[str, TraceValue]

    @property
    def on_host(self) -> bool:
        """Whether the CPU runs it."""
        return bool(self.about.get("is_cpu_op"))

    def number(self, name: str) -> int | None:
        """An attribute that is a number, None where it is missing. Raises InputError."""
        value = self.about.get(name)
        if value is None:
            return None
        if isinstance(value, str) and value.isascii() and value.lstrip("-").isdigit():
            return int(value)
        if isinstance(value, (str, list)) or value != int(value):
            raise InputError(f"node {self.name}: {name} is {value!r}, not a whole number")
        return int(value)


@dataclass(frozen=True, slots=True)
class RankTrace:
    """The nodes of a rank in the order of its file. `unresolved` counts control dependencies on
    nodes that the file does not have. `groups` are those that its metadata nodes state."""

    nodes: tuple[TraceNode, ...]
    unresolved: int
    groups: Mapping[str, tuple[int, ...]]
    by_wavecast: bool


@dataclass(frozen=True, slots=True)
class ExecutionTrace:
    """The traces of all ranks of a run, and the ranks of its groups by `pg_name`."""

    name: str
    ranks: tuple[RankTrace, ...]
    groups: Mapping[str, tuple[int, ...]]

    def members(self, rank: int, name: str) -> tuple[int, ...]:
        """The ranks of a group: all where it has no name, or `0` and no ranks are stated for that.

        Raises InputError for a group that is not known or does not have `rank`.
        """
        ranks = self.ranks[rank].groups.get(name) or self.groups.get(name)
        if ranks is None and name in ("", "0"):
            return tuple(range(len(self.ranks)))
        if ranks is None:
            raise InputError(
                f"{self.name}, rank {rank}: the ranks of group {name} are not stated",
                hint="--comm-groups FILE",
            )
        missing = [one for one in ranks if one >= len(self.ranks)]
        if missing:
            raise InputError(
                f"{self.name}: group {name} has rank {missing[0]}, whose trace is missing"
            )
        if rank not in ranks:
            raise InputError(
                f"{self.name}: group {name} of a collective of rank {rank} is without it"
            )
        return ranks


def topological(nodes: Sequence[TraceNode], where: str) -> list[int]:
    """The indices of the nodes, each after what it comes after; among those that could be next, the
    one that started first, then the first of the file. Raises InputError for a circle."""
    missing = [len(node.after) for node in nodes]
    successors: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for before in node.after:
            successors[before].append(number)
    ready = [(node.start, number) for number, node in enumerate(nodes) if not node.after]
    heapify(ready)
    order = []
    while ready:
        _, number = heappop(ready)
        order.append(number)
        for after in successors[number]:
            missing[after] -= 1
            if not missing[after]:
                heappush(ready, (nodes[after].start, after))
    if len(order) < len(nodes):
        circle = _circle(nodes, {number for number, count in enumerate(missing) if count})
        names = " -> ".join(nodes[number].name[:60] for number in circle[:4])
        more = " -> …" if len(circle) > 4 else ""
        raise InputError(
            f"{where}: {len(circle)} nodes depend on each other: {names}{more}",
            hint="--dependencies data, where control dependencies name callers",
        )
    return order


def _circle(nodes: Sequence[TraceNode], left: set[int]) -> list[int]:
    """A circle among nodes that all come after another of them."""
    path: dict[int, None] = {}
    number = min(left)
    while number not in path:
        path[number] = None
        number = next(before for before in nodes[number].after if before in left)
    walked = [*path]
    return walked[walked.index(number) :]


__all__ = [
    "COLLECTIVE",
    "RECEIVE",
    "SEND",
    "SILENT",
    "ExecutionTrace",
    "RankTrace",
    "TraceNode",
    "topological",
]
