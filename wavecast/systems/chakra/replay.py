"""A planned run in time: nodes of ranks after what they depend on, one at a time on every resource.

A rank has threads of the host, and streams where its nodes state them; else one for compute and one
for collectives and messages it sends. What could start first does, then the first of the file. A
collective begins when all its ranks have come to it and are free for it. A message is sent without
waiting for its receiver, whose node ends when it has arrived. What shares links at the same time is
slower (`sharing`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Annotated, Final

from wavecast.arch.systems import System
from wavecast.errors import InputError
from wavecast.json_objects import Count, JsonObject, NonNegative, Positive, doc
from wavecast.systems.chakra.collectives import CollectiveUse, PricedCollectives
from wavecast.systems.chakra.plan import (
    COMMUNICATION,
    COMPUTE,
    HOST,
    SOURCES,
    Node,
    RunPlan,
    plan,
)
from wavecast.systems.chakra.sharing import SharedLinks
from wavecast.systems.chakra.trace import ExecutionTrace

_CERTAIN: Final = -1
"""Of an end that does not change."""

Spans = list[tuple[float, float]]
_RESOURCES: Final[tuple[str, ...]] = (COMPUTE, COMMUNICATION, HOST)


class RankTime(JsonObject):
    """Where the time of a rank goes."""

    rank: Annotated[Count, doc("its number")]
    compute: Annotated[NonNegative, doc("seconds in which its GPU computes")]
    communication: Annotated[NonNegative, doc("seconds of its collectives and messages")]
    exposed: Annotated[NonNegative, doc("seconds of these in which its GPU computes nothing")]
    host: Annotated[NonNegative, doc("seconds in which its host works")]
    idle: Annotated[NonNegative, doc("seconds in which nothing of it does anything")]
    end: Annotated[NonNegative, doc("seconds until its last node has ended")]


class UsedCollective(JsonObject):
    """Equal collectives or messages of a run."""

    function: Annotated[str, doc("the collective; send: a message from one rank to another")]
    bytes: Annotated[Positive, doc("bytes as nccl-tests counts them; tokens of a GPU")]
    gpus: Annotated[Positive, doc("its ranks")]
    nodes: Annotated[Positive, doc("nodes that they are on")]
    algorithm: Annotated[str, doc("the algorithm, or the schedule")]
    method: Annotated[str, doc("library: by its formula; schedules: simulated; recorded")]
    calls: Annotated[Positive, doc("how many")]
    seconds: Annotated[NonNegative, doc("seconds of all calls")]
    low: Annotated[NonNegative, doc("with each at the lower end of its 80 % interval")]
    high: Annotated[NonNegative, doc("with each at the upper end of its 80 % interval")]


@dataclass(frozen=True, slots=True)
class ReplayAnswer:
    """A run of a trace on a system: `seconds` until all is done; `low` and `high` the same with all
    collectives at the ends of their 80 % intervals. `critical` has seconds of the critical path by
    kind, `sources` nodes by where their times come from (`SOURCES`)."""

    name: str
    system: System
    method: str
    nodes: int
    unresolved: int
    seconds: float
    low: float
    high: float
    ranks: tuple[RankTime, ...]
    collectives: tuple[UsedCollective, ...]
    critical: dict[str, float]
    sources: dict[str, int]
    slowed: int = 0
    """Collectives and messages that shared links at the same time."""
    slowed_by: float = 0.0
    """Seconds that these took longer than alone, all together."""

    @property
    def exposed(self) -> float:
        """The most seconds of a rank with communication and without compute."""
        return max((rank.exposed for rank in self.ranks), default=0.0)


def replay(
    trace: ExecutionTrace, system: System, *, method: str, times: str, dtype: str
) -> ReplayAnswer:
    """Simulate a trace. Raises InputError where its ranks contradict each other or wait for each
    other, and as `plan`."""
    prices = PricedCollectives(system.device, method)
    planned = plan(trace, system, prices, times, dtype)
    run = simulate_run(planned, [gang.seconds for gang in planned.gangs], system)
    ends = [
        simulate_run(planned, seconds, system).seconds
        for seconds in (
            [gang.use.low for gang in planned.gangs],
            [gang.use.high for gang in planned.gangs],
        )
    ]
    return ReplayAnswer(
        trace.name,
        system,
        method,
        sum(len(rank.nodes) for rank in trace.ranks),
        sum(rank.unresolved for rank in trace.ranks),
        run.seconds,
        min(ends[0], run.seconds),
        max(ends[1], run.seconds),
        tuple(run.rank_time(rank) for rank in range(len(trace.ranks))),
        _used(planned),
        run.critical_path(),
        {name: planned.sources[name] for name in SOURCES if planned.sources[name]},
        len(run.slowed),
        run.slowed_by,
    )


def _used(planned: RunPlan) -> tuple[UsedCollective, ...]:
    """What ranks do together, by what it is, longest first."""
    groups: dict[tuple[str, int, int, int, str, str], list[CollectiveUse]] = defaultdict(list)
    for gang in planned.gangs:
        use = gang.use
        key = (use.function, use.bytes, use.gpus, use.nodes, use.algorithm, use.method)
        groups[key].append(use)
    used = [
        UsedCollective(
            *key,
            calls=len(uses),
            seconds=sum(use.seconds for use in uses),
            low=sum(use.low for use in uses),
            high=sum(use.high for use in uses),
        )
        for key, uses in groups.items()
    ]
    return tuple(sorted(used, key=lambda each: -each.seconds))


class SimulatedRun:
    """When every node of a plan begins and ends, and what it waited for last."""

    def __init__(self, planned: RunPlan) -> None:
        sizes = [len(nodes) for nodes in planned.nodes]
        self.planned = planned
        self.begins = [[-1.0] * size for size in sizes]
        self.ends = [[-1.0] * size for size in sizes]
        self.causes: list[list[Node | None]] = [[None] * size for size in sizes]
        self.slowed: set[int] = set()

    @property
    def slowed_by(self) -> float:
        """Seconds that what shared links took longer than alone."""
        gangs = [self.planned.gangs[number] for number in sorted(self.slowed)]
        nodes = [(gang.nodes[0], gang.seconds) for gang in gangs]
        return sum(
            self.ends[rank][index] - self.begins[rank][index] - seconds
            for (rank, index), seconds in nodes
        )

    @property
    def seconds(self) -> float:
        """Until the last node has ended."""
        return max((max(ends, default=0.0) for ends in self.ends), default=0.0)

    def rank_time(self, rank: int) -> RankTime:
        """Where the time of a rank goes."""
        spans: dict[str, Spans] = {kind: [] for kind in _RESOURCES}
        nodes = zip(self.planned.nodes[rank], self.begins[rank], self.ends[rank], strict=True)
        for planned, begin, end in nodes:
            if planned.kind and end > begin:
                spans[planned.kind].append((begin, end))
        compute, host = _length(spans[COMPUTE]), _length(spans[HOST])
        both = _length(spans[COMPUTE] + spans[COMMUNICATION])
        busy = _length(spans[COMPUTE] + spans[COMMUNICATION] + spans[HOST])
        return RankTime(
            rank,
            compute,
            _length(spans[COMMUNICATION]),
            both - compute,
            host,
            max(0.0, self.seconds - busy),
            max(self.ends[rank], default=0.0),
        )

    def critical_path(self) -> dict[str, float]:
        """Seconds by kind of the chain of nodes that ends last, each of which the next one waited
        for."""
        path = dict.fromkeys(_RESOURCES, 0.0)
        last = max(
            (
                (end, rank, index)
                for rank, ends in enumerate(self.ends)
                for index, end in enumerate(ends)
            ),
            default=None,
        )
        node: Node | None = last and (last[1], last[2])
        while node is not None:
            rank, index = node
            cause = self.causes[rank][index]
            begin = self.ends[cause[0]][cause[1]] if cause else 0.0
            kind = self.planned.nodes[rank][index].kind
            if kind:
                path[kind] += self.ends[rank][index] - begin
            node = cause
        return path


def _length(spans: Spans) -> float:
    """Seconds in one of the spans or more."""
    total, until = 0.0, 0.0
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def simulate_run(planned: RunPlan, gang_seconds: list[float], system: System) -> SimulatedRun:
    """The run with these seconds of what ranks do together. Raises InputError for ranks that wait
    for each other."""
    engine = _Engine(planned, gang_seconds, system)
    engine.run()
    return engine.result


@dataclass(slots=True)
class _Resource:
    """What runs one node at a time. `waiting` has nodes by when they could start; `gangs` are
    collectives whose ranks have all come."""

    waiting: list[tuple[float, int, int]]
    gangs: list[tuple[float, int]]
    busy: bool = False
    last: Node | None = None


class _Engine:
    """The state of a run."""

    def __init__(self, planned: RunPlan, gang_seconds: list[float], system: System) -> None:
        self.planned, self.gang_seconds = planned, gang_seconds
        self.links = SharedLinks(system)
        self.result = SimulatedRun(planned)
        self.successors: list[list[list[int]]] = []
        self.missing: list[list[int]] = []
        for rank in planned.trace.ranks:
            successors: list[list[int]] = [[] for _ in rank.nodes]
            for index, node in enumerate(rank.nodes):
                for before in node.after:
                    successors[before].append(index)
            self.successors.append(successors)
            self.missing.append([len(node.after) for node in rank.nodes])
        self.absent = [len(gang.nodes) for gang in planned.gangs]
        self.resources: dict[tuple[int, str], _Resource] = {}
        self.events: list[tuple[float, int, int, int]] = []
        """When nodes end: time, rank, index, and which end of what it does with others it is."""
        self.planned_ends = [0] * len(planned.gangs)
        """How many ends of a collective or message were planned; the last one counts."""
        self.touched: dict[tuple[int, str], None] = {}

    def run(self) -> None:
        """From the nodes that come after none to the last event."""
        for rank, missing in enumerate(self.missing):
            for index, count in enumerate(missing):
                if not count:
                    self._ready(0.0, rank, index, None)
        self._start(0.0)
        while self.events:
            time = self.events[0][0]
            while self.events and self.events[0][0] == time:
                _, rank, index, planned_end = heappop(self.events)
                gang = self.planned.nodes[rank][index].gang
                if planned_end == _CERTAIN or planned_end == self.planned_ends[gang]:
                    self._end(time, rank, index)
            self._start(time)
        self.result.slowed = self.links.slowed
        self._refuse_deadlock()

    def _ready(self, time: float, rank: int, index: int, cause: Node | None) -> None:
        """All that a node comes after has ended."""
        planned = self.planned.nodes[rank][index]
        self.result.causes[rank][index] = cause
        self.result.begins[rank][index] = time
        if planned.resource is None:
            heappush(self.events, (time, rank, index, _CERTAIN))
            return
        if planned.gang < 0:
            self._wait(planned.resource, time, rank, index)
            return
        gang = self.planned.gangs[planned.gang]
        if not gang.message:
            self.absent[planned.gang] -= 1
            if self.absent[planned.gang] == 0:
                for member in gang.nodes:
                    key = self._key(member)
                    self._resource(key).gangs.append((time, planned.gang))
                    self.touched[key] = None
                    self.result.causes[member[0]][member[1]] = cause
        elif (rank, index) == gang.nodes[0]:
            self._wait(planned.resource, time, rank, index)
        elif self.absent[planned.gang] < 0:  # it has arrived
            heappush(self.events, (time, rank, index, _CERTAIN))

    def _end(self, time: float, rank: int, index: int) -> None:
        planned = self.planned.nodes[rank][index]
        self.result.ends[rank][index] = time
        receives = False
        if planned.gang >= 0:
            gang = self.planned.gangs[planned.gang]
            receives = gang.message and (rank, index) == gang.nodes[1]
            if (rank, index) == gang.nodes[0]:
                self._plan_ends(self.links.end(time, planned.gang))
            if gang.message and not receives:
                self._arrive(time, planned.gang)
        if planned.resource is not None and not receives:
            resource = self._resource(planned.resource)
            resource.busy, resource.last = False, (rank, index)
            self.touched[planned.resource] = None
        for after in self.successors[rank][index]:
            self.missing[rank][after] -= 1
            if not self.missing[rank][after]:
                self._ready(time, rank, after, (rank, index))

    def _arrive(self, time: float, number: int) -> None:
        """A message has been sent: its receiver ends if it waits for it."""
        self.absent[number] = -1
        sender, (rank, index) = self.planned.gangs[number].nodes
        if self.result.begins[rank][index] >= 0:
            sent = self.result.begins[sender[0]][sender[1]]
            self.result.causes[rank][index] = sender
            self.result.begins[rank][index] = max(sent, self.result.begins[rank][index])
            heappush(self.events, (time, rank, index, _CERTAIN))

    def _start(self, time: float) -> None:
        """Start what can start on the resources that something happened to."""
        for key in self._touched():
            resource = self._resource(key)
            while not resource.busy:
                gang = self._next_gang(resource)
                node = resource.waiting[0] if resource.waiting else None
                if gang is not None and (node is None or gang[0] <= node[0]):
                    resource.gangs.remove(gang)
                    self._start_gang(time, gang[1])
                elif node is not None:
                    _, index, rank = heappop(resource.waiting)
                    planned = self.planned.nodes[rank][index]
                    self._occupy(time, resource, (rank, index))
                    if planned.gang >= 0:
                        self._transfer(time, planned.gang)
                    else:
                        end = time + planned.seconds
                        heappush(self.events, (end, rank, index, _CERTAIN))
                else:
                    break

    def _touched(self) -> Iterable[tuple[int, str]]:
        keys = [*self.touched]
        self.touched.clear()
        return keys

    def _next_gang(self, resource: _Resource) -> tuple[float, int] | None:
        """The first collective whose ranks are all free."""
        for entry in resource.gangs:
            members = self.planned.gangs[entry[1]].nodes
            if not any(self._resource(self._key(member)).busy for member in members):
                return entry
        return None

    def _start_gang(self, time: float, number: int) -> None:
        for member in self.planned.gangs[number].nodes:
            resource = self._resource(self._key(member))
            resource.gangs = [entry for entry in resource.gangs if entry[1] != number]
        lasts = [
            self._resource(self._key(member)).last for member in self.planned.gangs[number].nodes
        ]
        blocker = next(
            (last for last in lasts if last and self.result.ends[last[0]][last[1]] == time), None
        )
        for member in self.planned.gangs[number].nodes:
            cause = self.result.causes[member[0]][member[1]]
            came = self.result.ends[cause[0]][cause[1]] if cause else 0.0
            resource = self._resource(self._key(member))
            self._occupy(time, resource, member)
            self.result.causes[member[0]][member[1]] = cause if came == time else blocker
        self._transfer(time, number)

    def _transfer(self, time: float, number: int) -> None:
        """A collective or message begins to use its links."""
        gang, seconds = self.planned.gangs[number], self.gang_seconds[number]
        ranks = [rank for rank, _ in gang.nodes]
        loads = gang.use.links, gang.use.network
        self._plan_ends(
            self.links.start(time, number, ranks, seconds, loads, is_message=gang.message)
        )

    def _plan_ends(self, ends: Mapping[int, float]) -> None:
        """Collectives and messages end then, and not when it was planned before."""
        for number, end in ends.items():
            gang = self.planned.gangs[number]
            self.planned_ends[number] += 1
            for rank, index in gang.nodes[:1] if gang.message else gang.nodes:
                heappush(self.events, (end, rank, index, self.planned_ends[number]))

    def _occupy(self, time: float, resource: _Resource, node: Node) -> None:
        rank, index = node
        cause = self.result.causes[rank][index]
        came = self.result.ends[cause[0]][cause[1]] if cause else 0.0
        if came < time and resource.last is not None:
            self.result.causes[rank][index] = resource.last
        resource.busy = True
        self.result.begins[rank][index] = time

    def _wait(self, key: tuple[int, str], time: float, rank: int, index: int) -> None:
        heappush(self._resource(key).waiting, (time, index, rank))
        self.touched[key] = None

    def _key(self, node: Node) -> tuple[int, str]:
        key = self.planned.nodes[node[0]][node[1]].resource
        assert key is not None
        return key

    def _resource(self, key: tuple[int, str]) -> _Resource:
        return self.resources.setdefault(key, _Resource([], []))

    def _refuse_deadlock(self) -> None:
        waiting = []
        for rank, (nodes, ends) in enumerate(
            zip(self.planned.trace.ranks, self.result.ends, strict=True)
        ):
            stuck = next(
                (
                    index
                    for index, end in enumerate(ends)
                    if end < 0 and self.result.begins[rank][index] >= 0
                ),
                None,
            )
            if stuck is not None:
                waiting.append(f"rank {rank} in {nodes.nodes[stuck].name[:60]}")
        if waiting:
            more = ", …" if len(waiting) > 3 else ""
            raise InputError(
                f"{self.planned.trace.name}: ranks wait for each other: "
                f"{', '.join(waiting[:3])}{more}"
            )


__all__ = ["RankTime", "ReplayAnswer", "SimulatedRun", "UsedCollective", "replay", "simulate_run"]
