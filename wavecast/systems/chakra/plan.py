"""Execution traces as a plan of a run on a system: what takes how long where, and which nodes of
ranks belong together.

Collectives of a group are matched by name and order where all its ranks have the same names, else
by order; messages by sender, receiver, tag and order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from wavecast.arch.links import GpuGroup
from wavecast.arch.systems import System
from wavecast.errors import InputError, UsageError
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.roofline import roofline
from wavecast.systems.chakra.collectives import CollectiveUse, PricedCollectives
from wavecast.systems.chakra.schema import COLLECTIVES
from wavecast.systems.chakra.trace import (
    COLLECTIVE,
    RECEIVE,
    SEND,
    SILENT,
    ExecutionTrace,
    TraceNode,
    topological,
)

COMPUTE: Final[str] = "compute"
COMMUNICATION: Final[str] = "communication"
HOST: Final[str] = "host"
NOTHING: Final[str] = ""

RECORDED: Final = "recorded"
PREDICTED: Final = "predicted"
UNTIMED: Final = "untimed"
MATCHED: Final = "communication"
SOURCES: Final = {
    RECORDED: "durations of the trace",
    PREDICTED: "num_ops and tensor_size at sustained rates",
    UNTIMED: "no time is stated: 0 s",
    MATCHED: "collectives and messages",
}
"""Where the times of nodes come from."""
TIMES: Final = {
    RECORDED: "the durations of the trace, and predictions where it has none",
    PREDICTED: "predictions where a node states num_ops or tensor_size, else durations",
}
"""Which of the times of a computing node counts."""

_NAMES: Final = {number: name.lower() for name, number in COLLECTIVES.items()}
_PRICED_AS: Final = {
    "gather": "all_to_all",
    "scatter": "all_to_all",
    "reduce_scatter_block": "reduce_scatter",
    "barrier": "all_reduce",
}
"""Collectives whose messages load the links as another one's do."""
_BARRIER: Final = 4
_DIMENSIONS: Final = ("GPUs of a node", "nodes")
_UNEVEN: Final = ("all_to_all", "broadcast", "gather", "scatter", "barrier")
"""Collectives of which ranks may state different sizes; the largest counts."""
EXCHANGES: Final = ("dispatch", "combine")

Node = tuple[int, int]
"""A rank, and the index of a node of it."""


@dataclass(slots=True)
class PlannedNode:
    """What a node occupies, "" for nothing, and for how long. `gang` is the number of what it does
    with other ranks, -1 where it does nothing with them."""

    kind: str
    resource: tuple[int, str] | None
    seconds: float
    gang: int = -1


@dataclass(frozen=True, slots=True)
class Gang:
    """Nodes that exchange data: those of all ranks of a collective, which begin together, or the
    node that sends and the one that receives."""

    nodes: tuple[Node, ...]
    use: CollectiveUse
    seconds: float
    message: bool = False


@dataclass(slots=True)
class RunPlan:
    """The plan of every node of every rank, what ranks do together, and counts by `SOURCES`."""

    trace: ExecutionTrace
    nodes: list[list[PlannedNode]]
    gangs: list[Gang] = field(default_factory=list)
    sources: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Call:
    """A collective of a rank: its node, what is exchanged, and its recorded time."""

    node: Node
    name: str
    function: str
    size: int
    topk: int
    library: str
    recorded: float


def plan(
    trace: ExecutionTrace, system: System, prices: PricedCollectives, times: str, dtype: str
) -> RunPlan:
    """Raises InputError for nodes without a partner, of other sizes or of functions that are not
    Chakra's, UsageError for more ranks than the system has GPUs."""
    if len(trace.ranks) > system.gpus:
        raise UsageError(
            f"{trace.name} has {len(trace.ranks)} ranks, "
            f"the system ({system}) has {system.gpus} GPUs",
            hint="--system NODESxGPUS",
        )
    return _Planner(trace, system, prices, times, dtype).plan()


class _Planner:
    """A plan in the making."""

    def __init__(
        self,
        trace: ExecutionTrace,
        system: System,
        prices: PricedCollectives,
        times: str,
        dtype: str,
    ) -> None:
        self.trace, self.system, self.prices = trace, system, prices
        self.times, self.dtype = times, dtype
        self.result = RunPlan(trace, [])
        self.calls: dict[tuple[int, ...], dict[int, list[_Call]]] = {}
        self.messages: dict[tuple[str, int, int, int], list[tuple[Node, int]]] = defaultdict(list)
        self.floors: dict[tuple[int, int], float] = {}

    def plan(self) -> RunPlan:
        for rank, of_rank in enumerate(self.trace.ranks):
            where = f"{self.trace.name}, rank {rank}"
            planned = [
                PlannedNode(NOTHING, None, 0.0)
                if node.kind in SILENT
                else self._planned(rank, node)
                for node in of_rank.nodes
            ]
            self.result.nodes.append(planned)
            for index in topological(of_rank.nodes, where):
                node = of_rank.nodes[index]
                if planned[index].kind == COMMUNICATION:
                    self._communication((rank, index), node, planned[index])
        for members, calls in self.calls.items():
            self._match_collectives(members, calls)
        self._match_messages()
        return self.result

    def _planned(self, rank: int, node: TraceNode) -> PlannedNode:
        if node.on_host:
            thread = node.number("tid")
            return PlannedNode(HOST, (rank, f"host {thread}"), self._seconds(rank, node))
        stream = node.number("stream")
        if node.kind in (COLLECTIVE, SEND, RECEIVE):
            name = COMMUNICATION if stream is None else f"stream {stream}"
            return PlannedNode(COMMUNICATION, (rank, name), 0.0)
        name = COMPUTE if stream is None else f"stream {stream}"
        return PlannedNode(COMPUTE, (rank, name), self._seconds(rank, node))

    def _recorded(self, rank: int, node: TraceNode) -> float:
        """Recorded seconds: what Wavecast wrote is not rounded to microseconds."""
        exact = node.about.get("seconds") if self.trace.ranks[rank].by_wavecast else None
        return exact if isinstance(exact, float) else node.seconds

    def _seconds(self, rank: int, node: TraceNode) -> float:
        recorded = self._recorded(rank, node)
        work = (node.number("num_ops") or 0, node.number("tensor_size") or 0)
        states_work = max(work) > 0 and not node.on_host
        if states_work and (self.times == PREDICTED or recorded <= 0):
            self.result.sources[PREDICTED] += 1
            if work not in self.floors:
                self.floors[work] = self._floor(*work)
            return self.floors[work]
        self.result.sources[RECORDED if recorded > 0 else UNTIMED] += 1
        return recorded

    def _floor(self, operations: int, size: int) -> float:
        flops = {self.dtype: float(operations)} if operations > 0 else {}
        limit = roofline(
            Work(flops, float(max(size, 0)), 0.0, "num_ops", "tensor_size"), self.system.device
        )
        seconds = limit.sustained_seconds or limit.floor_seconds
        if seconds is None:
            raise UsageError(f"num_ops cannot be predicted: {limit.note}")
        return seconds

    def _communication(self, at: Node, node: TraceNode, planned: PlannedNode) -> None:
        rank, _ = at
        where = f"{self.trace.name}, rank {rank}, node {node.name}"
        size = node.number("comm_size")
        if node.kind == COLLECTIVE:
            if node.number("comm_type") is None:
                self._alone(rank, node, planned, f"{where}: no comm_type and no duration")
                return
            self._collective(at, node, size, where)
            self.result.sources[MATCHED] += 1
            return
        other = node.number("comm_dst" if node.kind == SEND else "comm_src")
        own = node.number("comm_src" if node.kind == SEND else "comm_dst")
        if other is None:
            self._alone(rank, node, planned, f"{where}: its partner and its duration are missing")
            return
        if size is None or size < 0:
            what = "no comm_size" if size is None else f"comm_size is {size}, not a number of bytes"
            raise InputError(f"{where}: {what}")
        if own is not None and own != rank:
            raise InputError(f"{where}: it is of rank {own}")
        if not 0 <= other < len(self.trace.ranks) or other == rank:
            raise InputError(f"{where}: its partner is rank {other} of {len(self.trace.ranks)}")
        ends = (rank, other) if node.kind == SEND else (other, rank)
        self.messages[(node.kind, *ends, node.number("comm_tag") or 0)].append((at, size))
        self.result.sources[MATCHED] += 1

    def _alone(self, rank: int, node: TraceNode, planned: PlannedNode, why: str) -> None:
        """Communication of which only a duration is stated: other ranks do not wait for it."""
        planned.seconds = self._recorded(rank, node)
        if planned.seconds <= 0:
            raise InputError(why)
        self.result.sources[RECORDED] += 1

    def _collective(self, at: Node, node: TraceNode, size: int | None, where: str) -> None:
        rank, _ = at
        number = node.number("comm_type")
        assert number is not None
        if number not in _NAMES:
            known = ", ".join(f"{key} {name}" for key, name in _NAMES.items())
            raise InputError(f"{where}: comm_type {number} is none of {known}")
        if size is None and _NAMES[number] != "barrier":
            raise InputError(f"{where}: no comm_size")
        if size is not None and size < 0:
            raise InputError(f"{where}: comm_size is {size}, not a number of bytes")
        members = self.trace.members(rank, str(node.about.get("pg_name", "")))
        dims = node.about.get("involved_dim")
        if isinstance(dims, list) and not all(dims):
            members = self._along(rank, members, dims, where)
        function, topk, library = _NAMES[number], 0, ""
        if self.trace.ranks[rank].by_wavecast:
            library = str(node.about.get("library", ""))
            topk = node.number("topk") or 0
            if topk and node.about.get("function") in EXCHANGES:
                function = str(node.about["function"])
        call = _Call(at, node.name, function, size or 0, topk, library, self._recorded(rank, node))
        self.calls.setdefault(members, defaultdict(list))[rank].append(call)

    def _along(
        self, rank: int, members: tuple[int, ...], dims: list[bool], where: str
    ) -> tuple[int, ...]:
        """The ranks of a group along the dimensions of the network that are true: the GPUs of a
        node, then the nodes."""
        if len(dims) != len(_DIMENSIONS) or not any(dims):
            raise InputError(
                f"{where}: involved_dim {[int(dim) for dim in dims]}; a system has two dimensions, "
                "GPUs of a node and nodes, of which one or both are involved"
            )
        position = divmod(rank, self.system.node_gpus)
        fixed = 0 if dims[0] else 1
        return tuple(
            other
            for other in members
            if divmod(other, self.system.node_gpus)[fixed] == position[fixed]
        )

    def _match_collectives(
        self, members: tuple[int, ...], calls: Mapping[int, list[_Call]]
    ) -> None:
        names = [Counter(call.name for call in calls.get(rank, ())) for rank in members]
        by_name = all(each == names[0] for each in names)
        rows: dict[tuple[str, int], list[_Call]] = defaultdict(list)
        for rank in members:
            seen: Counter[str] = Counter()
            for call in calls.get(rank, ()):
                key = call.name if by_name else ""
                rows[key, seen[key]].append(call)
                seen[key] += 1
        for (_, order), row in rows.items():
            if len(row) < len(members):
                there = {call.node[0] for call in row}
                missing = next(rank for rank in members if rank not in there)
                raise InputError(
                    f"{self.trace.name}: rank {missing} has no collective for {row[0].name}, "
                    f"number {order + 1} of {len(members)} ranks, of rank {row[0].node[0]}"
                )
            self._add_collective(members, row)

    def _add_collective(self, members: tuple[int, ...], row: list[_Call]) -> None:
        first = row[0]
        for call in row[1:]:
            same = call.function == first.function and call.topk == first.topk
            if not same or (call.size != first.size and first.function not in _UNEVEN):
                raise InputError(
                    f"{self.trace.name}: rank {first.node[0]} calls {first.function} of "
                    f"{first.size:,} bytes ({first.name}), rank {call.node[0]} {call.function} of "
                    f"{call.size:,} bytes"
                )
        use = self.prices.collective(
            _PRICED_AS.get(first.function, first.function),
            _whole_size(first.function, max(call.size for call in row), len(members), first.topk),
            placed(self.system, members),
            recorded=max(call.recorded for call in row),
            topk=first.topk,
            library=first.library,
            name=first.function,
        )
        self._add(Gang(tuple(call.node for call in row), use, use.seconds))

    def _match_messages(self) -> None:
        for (kind, source, to, tag), sent in self.messages.items():
            there = self.messages.get((RECEIVE if kind == SEND else SEND, source, to, tag), [])
            if len(there) != len(sent):
                raise InputError(
                    f"{self.trace.name}: rank {source} sends {_count(kind, SEND, sent, there)} "
                    f"messages to rank {to} with tag {tag}, which receives "
                    f"{_count(kind, RECEIVE, sent, there)}"
                )
            if kind == RECEIVE:
                continue
            for (sender, size), (receiver, expected) in zip(sent, there, strict=True):
                if size != expected:
                    raise InputError(
                        f"{self.trace.name}: rank {source} sends {size:,} bytes to rank {to} with "
                        f"tag {tag}, which receives {expected:,}"
                    )
                use = self.prices.message(size, placed(self.system, (source, to)))
                self._add(Gang((sender, receiver), use, use.seconds, message=True))

    def _add(self, gang: Gang) -> None:
        for rank, index in gang.nodes:
            self.result.nodes[rank][index].gang = len(self.result.gangs)
        self.result.gangs.append(gang)


def _count(
    kind: str, wanted: str, own: list[tuple[Node, int]], there: list[tuple[Node, int]]
) -> int:
    return len(own if kind == wanted else there)


def _whole_size(function: str, size: int, ranks: int, topk: int) -> int:
    """Bytes as `Collective` counts them, from those that a rank puts in."""
    if function in EXCHANGES:
        return max(1, round(size / topk))
    if function == "barrier":
        return _BARRIER
    return max(1, size * (ranks if function in ("all_gather", "gather") else 1))


def placed(system: System, members: tuple[int, ...]) -> GpuGroup:
    """The group of ranks whose numbers are GPUs, node after node. Raises UsageError for different
    numbers of ranks in nodes."""
    nodes = Counter(rank // system.node_gpus for rank in members)
    local = {*nodes.values()}
    if len(local) > 1:
        raise UsageError(
            f"a group has {min(local)} ranks in one node of {system} and {max(local)} in another"
        )
    return GpuGroup(system.fabric, system.network, local.pop(), len(nodes))


__all__ = [
    "COMMUNICATION",
    "COMPUTE",
    "HOST",
    "MATCHED",
    "PREDICTED",
    "RECORDED",
    "SOURCES",
    "TIMES",
    "UNTIMED",
    "Gang",
    "Node",
    "PlannedNode",
    "RunPlan",
    "placed",
    "plan",
]
