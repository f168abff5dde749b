"""The time of a schedule that exchanges tokens or buffers, as `simulate` has that of collectives.

Near messages use the links of the node, far ones the NICs, at once where a round has both. Kernels
that forward tokens of other nodes are few (`grouped_bandwidth`); those that send a copy to each
target start sooner (`low_latency_start`). A message keeps a NIC for `dispatch_post` at least.
Experts are equally likely on every rank. An all-to-all has the rates and latencies of the library's
sends and receives instead (`exchange_start`, `exchange_fraction`); its forwarded parts arrive
`slice_hop` later.
"""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.perfmodel.ops.collectives.algorithms import Known, link_rate, network_rate
from wavecast.perfmodel.ops.collectives.problem import known_of
from wavecast.systems.collectives.exchange import ALL_TO_ALL, ExchangeSchedule
from wavecast.systems.collectives.simulate import (
    Cluster,
    MessageRound,
    ScheduleTime,
    run_rounds,
)


def exchange_time(
    schedule: ExchangeSchedule, cluster: Cluster, size: float, topk: int, pieces: int
) -> ScheduleTime:
    """The time to exchange the tokens of every rank, `size` bytes with each token once, or of an
    all-to-all its buffer, in `pieces` pieces that follow each other."""
    facts = known_of(cluster.device)
    free = {"links": 0.0, "network": 0.0}
    busy, last = dict(free), 0.0
    for rounds in _flows(schedule, cluster, facts, size / pieces, topk):
        for message_round in rounds:
            busy[message_round.resource] += pieces * message_round.busy
        arrived = [0.0] * pieces
        for message_round in rounds:
            arrived = run_rounds([message_round], arrived, free)
        last = max(last, *arrived)
    direct = schedule.copies in ("expert", "gpu")
    name = "low_latency_start" if direct else "grouped_start"
    protocol = "copies"
    if schedule.function == ALL_TO_ALL:
        name, protocol = "exchange_start", "slices"
    seconds = cluster.latency * facts[name] + last
    return ScheduleTime(schedule, protocol, pieces, seconds, busy["links"], busy["network"])


def _flows(
    schedule: ExchangeSchedule, cluster: Cluster, facts: Known, size: float, topk: int
) -> Iterator[list[MessageRound]]:
    """Rounds that follow each other, of flows that do not share links."""
    shares = schedule.shares(topk)
    if "all" in shares:
        part = size * shares["all"]
        if schedule.local > 1:
            yield [_near(schedule, cluster, facts, part)]
        if schedule.nodes > 1:
            yield [_far(schedule, cluster, facts, part, schedule.local)]
        return
    near = _near(schedule, cluster, facts, size * shares["node"])
    far = _far(schedule, cluster, facts, size * shares["rail"], 1)
    yield [near if phase.axis == "node" else far for phase in schedule.phases]


def _near(schedule: ExchangeSchedule, cluster: Cluster, facts: Known, part: float) -> MessageRound:
    """Messages of `part` bytes to every other GPU of the node."""
    fabric = cluster.group.fabric
    assert fabric is not None
    sent = (schedule.local - 1) * part
    if schedule.function == ALL_TO_ALL:
        rate = link_rate(cluster.group, schedule.local, facts) * facts["exchange_fraction"]
        hop = cluster.latency * facts["slice_hop"] if schedule.rounds > 1 else 0.0
        return MessageRound("links", sent / rate, hop)
    busy = sent / (fabric.rate(schedule.local) * facts["dispatch_fraction"])
    if schedule.copies in ("node", "rail"):
        busy = max(busy, sent / facts["grouped_bandwidth"])
    return MessageRound("links", busy, 0.0)


def _far(
    schedule: ExchangeSchedule, cluster: Cluster, facts: Known, part: float, targets: int
) -> MessageRound:
    """Messages of `part` bytes to `targets` GPUs of every other node."""
    rate = network_rate(cluster.group, facts)
    post, hop = "dispatch_post", "dispatch_network"
    if schedule.function == ALL_TO_ALL:
        post, hop = "flag_hop", "flag_network_hop"
    posted = cluster.latency * facts[post]
    busy = sum(
        targets * max(part * cluster.uplinks(distance) / rate, posted)
        for distance in range(1, schedule.nodes)
    )
    return MessageRound("network", busy, cluster.latency * facts[hop])


__all__ = ["exchange_time"]
