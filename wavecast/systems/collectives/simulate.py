"""The time of a schedule: messages over the links of nodes, NICs and the uplinks of switches.

One rank's messages are simulated, since all ranks send alike; in trees those of all ranks. The data
are cut into pieces, so that a piece is on the network while another is on the links of the node: a
round of a piece starts when its round before has arrived and the links it needs have sent what came
earlier. A message arrives `hop` after it was sent. A NIC takes one message of a GPU at a time, and
`flag_hop` at least for each: an assumption that keeps thousands of small messages from being free.
Where the increments of
all pieces repeat, the rest of a phase follows from them, so 10,000 GPUs take as long as few.

A leaf switch links `leaf` nodes: of one rail where the network has rails. Its uplinks carry 1 /
`oversubscription` of what its NICs do. Of messages between nodes `d` apart, min(d, N - d, leaf) /
leaf leave their leaf switch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from wavecast.arch import Device
from wavecast.arch.links import GpuGroup
from wavecast.errors import UsageError
from wavecast.perfmodel.ops.collectives.algorithms import Known, link_rate, network_rate
from wavecast.perfmodel.ops.collectives.problem import known_of
from wavecast.systems.collectives.exchange import ExchangeSchedule
from wavecast.systems.collectives.schedule import MessageSchedule, Phase
from wavecast.systems.collectives.tree import TREES, binary_tree, rank_of

_WATCHED = 24
"""Rounds of a phase that are simulated before its increments count as those of all others."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """GPUs of one kind and what links them. `latency` is a factor of all latencies."""

    device: Device
    group: GpuGroup
    oversubscription: float = 1.0
    leaf: int = 32
    latency: float = 1.0

    def __post_init__(self) -> None:
        if self.oversubscription < 1 or self.leaf < 1 or self.latency <= 0:
            raise UsageError("oversubscription is 1 or more, a leaf switch has a node or more")

    def scale(self, *, links: float = 1.0, network: float = 1.0, latency: float = 1.0) -> Cluster:
        """With factors of the bandwidth of links, of NICs, and of latencies."""
        fabric, nics = self.group.fabric, self.group.network
        group = replace(
            self.group,
            fabric=fabric and fabric.scale(links),
            network=nics and replace(nics, bandwidth=network * nics.bandwidth),
        )
        return replace(self, group=group, latency=self.latency * latency)

    def uplinks(self, distance: int) -> float:
        """Time of a byte between nodes `distance` apart over that of a byte on the NIC."""
        nodes = self.group.nodes
        near = min(distance % nodes, -distance % nodes)
        return max(1.0, self.oversubscription * min(near, self.leaf) / self.leaf)


@dataclass(frozen=True, slots=True)
class ScheduleTime:
    """A simulated schedule: `seconds`, and seconds that the links and NICs of a GPU send."""

    schedule: MessageSchedule | ExchangeSchedule
    protocol: str
    pieces: int
    seconds: float
    links: float
    network: float

    @property
    def limiter(self) -> str:
        """`links` or `network` where they send for half of the time, else `latency`."""
        name = "network" if self.network > self.links else "links"
        return name if max(self.links, self.network) > self.seconds / 2 else "latency"


@dataclass(frozen=True, slots=True)
class MessageRound:
    """Seconds that a round of one piece keeps its links busy, and its latency."""

    resource: str
    busy: float
    hop: float


def simulate(
    schedule: MessageSchedule, cluster: Cluster, size: float, protocol: str, pieces: int
) -> ScheduleTime:
    """The time of a schedule of `size` bytes (the buffer that is reduced, the whole of what is
    gathered) in `pieces` pieces, by a protocol of `PROTOCOLS`."""
    facts = known_of(cluster.device)
    arrived = [0.0] * pieces
    free = {"links": 0.0, "network": 0.0}
    busy = dict.fromkeys(free, 0.0)
    for phase, share in schedule.shares():
        if phase.algorithm == "tree":
            part = share * size / pieces
            arrived, sent = _tree(phase, part, cluster, facts, protocol, arrived)
            busy["network"] += sent
            free["network"] = max(arrived)
            continue
        rounds = list(_rounds(phase, share * size / pieces, cluster, facts, protocol))
        for message_round in rounds:
            busy[message_round.resource] += pieces * message_round.busy
        arrived = run_rounds(rounds, arrived, free)
    seconds = facts["start"] * cluster.latency + max(arrived)
    return ScheduleTime(schedule, protocol, pieces, seconds, busy["links"], busy["network"])


def _tree(
    phase: Phase, part: float, cluster: Cluster, facts: Known, protocol: str, starts: list[float]
) -> tuple[list[float], float]:
    """When each piece has arrived everywhere, and seconds that the busiest NIC sends.

    Ranks of a tree differ, so all of an axis are simulated: a rank sends a piece up when it has
    that of its children, down when it has the sum, and its NIC sends what is ready first.
    """
    size, shape = phase.size, binary_tree(phase.size)
    rate = network_rate(cluster.group, facts)
    rate *= facts["flag_fraction"] if protocol == "flags" else 1.0
    hop = cluster.latency * facts[f"{protocol[:-1]}_network_hop"]
    posted = cluster.latency * facts["flag_hop"]
    halves = ((size + 1) // 2 * part, size // 2 * part)
    nics, total, arrived = [0.0] * size, [0.0] * size, list(starts)
    ready: list[tuple[float, int, int, int, int]] = []  # time, piece, tree, from, to

    def send(time: float, piece: int, tree: int, label: int, targets: Sequence[int]) -> None:
        for target in targets:
            heappush(ready, (time, piece, tree, label, target))

    missing = [[list(map(len, shape.children)) for _ in range(TREES)] for _ in starts]
    summed = [[[start] * size for _ in range(TREES)] for start in starts]
    for piece, start in enumerate(starts):
        for tree in range(TREES):
            for label, children in enumerate(shape.children):
                if not children:
                    send(start, piece, tree, label, (shape.parents[label],))
    while ready:
        time, piece, tree, label, target = heappop(ready)
        rank = rank_of(tree, label, size)
        distance = (rank_of(tree, target, size) - rank) % size
        took = max(halves[tree] * cluster.uplinks(distance) / rate, posted)
        nics[rank] = max(time, nics[rank]) + took
        total[rank] += took
        there = nics[rank] + hop
        if target != shape.parents[label]:  # down
            arrived[piece] = max(arrived[piece], there)
            send(there, piece, tree, target, shape.children[target])
            continue
        summed[piece][tree][target] = there = max(there, summed[piece][tree][target])
        missing[piece][tree][target] -= 1
        if not missing[piece][tree][target]:
            onward = (shape.parents[target],) if target else shape.children[0]
            send(there, piece, tree, target, onward)
    return arrived, max(total)


def run_rounds(
    rounds: Sequence[MessageRound], arrived: list[float], free: dict[str, float]
) -> list[float]:
    """When the last round of each piece has arrived; `free` is when `links` and `network` are next
    idle."""
    number, alike = 0, len(set(rounds)) == 1
    while number < len(rounds):
        message_round, before = rounds[number], arrived
        after: list[float] = []
        for start in before:
            begin = max(start, free[message_round.resource])
            free[message_round.resource] = begin + message_round.busy
            after.append(begin + message_round.busy + message_round.hop)
        arrived, number = after, number + 1
        steps = [new - old for new, old in zip(after, before, strict=True)]
        if alike and number >= _WATCHED and max(steps) - min(steps) <= 1e-9 * max(steps):
            rest = (len(rounds) - number) * steps[0]
            free[message_round.resource] += rest
            return [time + rest for time in arrived]
    return arrived


def _rounds(
    phase: Phase, part: float, cluster: Cluster, facts: Known, protocol: str
) -> Iterator[MessageRound]:
    share = facts["flag_fraction"] if protocol == "flags" else 1.0
    group, name = cluster.group, protocol[:-1]
    near = phase.axis == "node"
    hop = cluster.latency * facts[f"{name}_hop" if near else f"{name}_network_hop"]
    if near:
        assert group.fabric is not None
        rate = link_rate(group, group.local, facts) * share
        pair = phase.algorithm in ("halving", "doubling") and group.fabric.topology == "mesh"
        rate /= (phase.size - 1) if pair else 1  # one partner, one of the links
    else:
        rate = network_rate(group, facts) * share
    different = 1 if phase.algorithm == "ring" else phase.rounds  # those of a ring are alike
    for number in range(different):
        sent = 0.0
        for step in phase.steps(0, number):
            factor = 1.0 if near else cluster.uplinks(step.partner)
            posted = 0.0 if near else cluster.latency * facts["flag_hop"]
            sent += max(len(step.parts) * part * factor / rate, posted)
        message_round = MessageRound("links" if near else "network", sent, hop)
        yield from [message_round] * (phase.rounds // different)


__all__ = ["Cluster", "MessageRound", "ScheduleTime", "run_rounds", "simulate"]
