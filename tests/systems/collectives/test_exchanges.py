"""Exchanges of tokens: every expert gets its tokens, every token all results; bytes and times."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from wavecast.arch.systems import system
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.ops.collectives import Collective
from wavecast.report.systems.msccl import msccl_xml
from wavecast.systems.collectives.exchange import (
    ALL_TO_ALL,
    COPIES,
    EXCHANGES,
    ExchangeSchedule,
    TokenMessage,
    exchange_schedules,
    token_messages,
)
from wavecast.systems.collectives.exchange_time import exchange_time
from wavecast.systems.collectives.search import answer, search
from wavecast.systems.collectives.simulate import Cluster

SHAPES = [(4, 1), (1, 3), (4, 2), (2, 3), (3, 2)]
TOPK = 3

Homes = list[list[tuple[int, ...]]]


def homes_of(ranks: int, tokens: int = 5) -> Homes:
    """The ranks of the experts of every token, of two experts a rank; ranks have different numbers
    of tokens, the first none."""
    draw = random.Random(ranks)
    return [
        [
            tuple(expert // 2 for expert in draw.sample(range(2 * ranks), min(TOPK, 2 * ranks)))
            for _ in range(tokens if rank else 0)
        ]
        for rank in range(ranks)
    ]


def rounds_of(schedule: ExchangeSchedule, homes: Homes) -> Iterator[list[TokenMessage]]:
    rounds = defaultdict(list)
    for message in token_messages(schedule, homes):
        rounds[message.round].append(message)
    assert set(rounds) <= set(range(schedule.rounds))
    for number in sorted(rounds):
        yield rounds[number]


def test_schedules_fit_the_machine() -> None:
    assert [one.copies for one in exchange_schedules("dispatch", 8, 1)] == ["expert", "gpu"]
    assert [one.copies for one in exchange_schedules("combine", 8, 2)] == list(COPIES)


@pytest.mark.parametrize(("local", "nodes"), SHAPES)
def test_every_expert_gets_its_tokens(local: int, nodes: int) -> None:
    """A rank sends only what it has by then; no message crosses both axes in schedules of two."""
    homes = homes_of(local * nodes)
    for schedule in exchange_schedules("dispatch", local, nodes):
        present = [{(rank, token) for token in range(len(own))} for rank, own in enumerate(homes)]
        for sent in rounds_of(schedule, homes):
            before = [set(tokens) for tokens in present]
            for message in sent:
                tokens = {copy[:2] for copy in message.copies}
                assert tokens <= before[message.source], schedule.name
                present[message.target] |= tokens
                node = message.source // local == message.target // local
                number = message.source % local == message.target % local
                assert schedule.rounds == 1 or node or number
        for rank, own in enumerate(homes):
            for token, targets in enumerate(own):
                assert all((rank, token) in present[target] for target in targets), schedule.name


@pytest.mark.parametrize(("local", "nodes"), SHAPES)
def test_every_token_gets_all_results_once(local: int, nodes: int) -> None:
    homes = homes_of(local * nodes)
    for schedule in exchange_schedules("combine", local, nodes):
        sums: list[dict[tuple[int, int], Counter[int]]] = [defaultdict(Counter) for _ in homes]
        for rank, own in enumerate(homes):
            for token, targets in enumerate(own):
                for choice, target in enumerate(targets):
                    sums[target][rank, token][choice] += 1
        for sent in rounds_of(schedule, homes):
            parcels = []
            for message in sent:
                for rank, token, choice in message.copies:
                    have = sums[message.source][rank, token]
                    part = Counter({choice: have[choice]}) if choice >= 0 else Counter(have)
                    parcels.append((message, (rank, token), part))
            for message, key, part in parcels:
                sums[message.source][key] -= part
                sums[message.target][key] += part
        for rank, own in enumerate(homes):
            for token, targets in enumerate(own):
                wanted = Counter(range(len(targets)))
                assert sums[rank][rank, token] == wanted, (schedule.name, rank, token)


@pytest.mark.parametrize("copies", COPIES)
def test_the_bytes_that_are_simulated_are_those_of_the_messages(copies: str) -> None:
    """Of many tokens, whose experts are drawn independently, within three per cent."""
    local, nodes, tokens = 4, 2, 2000
    draw, ranks = random.Random(3), local * nodes
    homes = [
        [tuple(draw.randrange(ranks) for _ in range(TOPK)) for _ in range(tokens)]
        for _ in range(ranks)
    ]
    schedule = ExchangeSchedule("dispatch", copies, local, nodes)
    sent = Counter[str]()
    for message in token_messages(schedule, homes):
        sent[schedule.phases[message.round].axis] += len(message.copies)
    peers = {"all": ranks - 1, "node": local - 1, "rail": nodes - 1}
    for axis, share in schedule.shares(TOPK).items():
        assert sent[axis] / (ranks * tokens) == pytest.approx(peers[axis] * share, rel=0.03)


@pytest.mark.parametrize("machine", ["8xMI300X", "2x8xMI300X", "4x8xH100"])
@pytest.mark.parametrize("function", EXCHANGES)
def test_times_are_near_those_of_the_formula(machine: str, function: str) -> None:
    """The formula knows copies per expert, and copies per node whose rounds all overlap."""
    on = system(machine)
    cluster = Cluster(on.device, on.group(on.gpus))
    for size in (1 << 16, 1 << 24):
        found = {one.schedule.copies: one.seconds for one in search(function, size, cluster, 8)}  # type: ignore[union-attr]
        for copies, kernels in (("expert", "low-latency"), ("node", "grouped")):
            if copies in found:
                problem = Collective(
                    function, size, on.gpus, group=cluster.group, library=kernels, topk=8
                )
                assert found[copies] == pytest.approx(problem.predict(on.device).seconds, rel=0.25)


def test_oversubscribed_uplinks_and_pieces() -> None:
    on = system("64x8xMI300X")
    group = on.group(on.gpus)
    schedule = ExchangeSchedule("dispatch", "node", group.local, group.nodes)
    size = 1 << 24
    times = [
        exchange_time(schedule, Cluster(on.device, group, factor), size, 8, pieces).seconds
        for factor, pieces in ((1.0, 1), (1.0, 8), (4.0, 8))
    ]
    assert times[1] < times[0] < times[2]


@pytest.mark.parametrize(("local", "nodes"), SHAPES)
def test_every_rank_gets_its_part_of_every_buffer(local: int, nodes: int) -> None:
    """Parts (source, target) reach their target by ranks that have them; the bytes that are
    simulated are those that a rank sends."""
    ranks = local * nodes
    homes = [[(target,) for target in range(ranks)] for _ in range(ranks)]
    for schedule in exchange_schedules(ALL_TO_ALL, local, nodes):
        present = [{(rank, part) for part in range(ranks)} for rank in range(ranks)]
        sent = Counter[str]()
        for messages in rounds_of(schedule, homes):
            before = [set(parts) for parts in present]
            for message in messages:
                parts = {copy[:2] for copy in message.copies}
                assert len(parts) == len(message.copies)
                assert parts <= before[message.source], schedule.name
                present[message.target] |= parts
                sent[schedule.phases[message.round].axis] += len(parts)
        for rank in range(ranks):
            assert {(source, rank) for source in range(ranks)} <= present[rank], schedule.name
        peers = {"all": ranks - 1, "node": local - 1, "rail": nodes - 1}
        for axis, share in schedule.shares(0).items():
            assert sent[axis] == pytest.approx(ranks * ranks * peers[axis] * share)


@pytest.mark.parametrize("machine", ["8xMI300X", "2x8xMI300X", "4x8xH100"])
def test_an_all_to_all_at_once_takes_what_the_formula_says(machine: str) -> None:
    on = system(machine)
    cluster = Cluster(on.device, on.group(on.gpus))
    for size in (1 << 24, 1 << 30):
        found = {time.schedule.copies: time for time in search(ALL_TO_ALL, size, cluster)}  # type: ignore[union-attr]
        problem = Collective(ALL_TO_ALL, size, on.gpus, group=cluster.group)
        formula = problem.predict(on.device).seconds
        assert found["gpu"].seconds == pytest.approx(formula, rel=0.01)
        if on.nodes > 1:  # a node's part crosses the network once, whichever way it goes
            parts = {copies: time.network for copies, time in found.items()}
            assert parts["rail"] == parts["node"] == pytest.approx(parts["gpu"], rel=0.01)


def test_small_all_to_alls_of_many_nodes_go_by_rail() -> None:
    """A GPU posts 63 messages instead of 504, and forwards over the links."""
    on = system("64x8xMI300X")
    cluster = Cluster(on.device, on.group(on.gpus))
    small, large = (search(ALL_TO_ALL, size, cluster)[0] for size in (1 << 16, 1 << 30))
    assert small.schedule.copies in ("rail", "node")  # type: ignore[union-attr]
    slow = Cluster(on.device, cluster.group, 4.0)
    assert search(ALL_TO_ALL, 1 << 30, slow)[0].seconds > large.seconds


def test_errors() -> None:
    on = system("2x8xMI300X")
    for function, topk, error in (
        ("dispatch", 0, UsageError),
        ("all_reduce", 8, UsageError),
        ("all_to_all", 8, UsageError),
        ("scatter", 8, UnknownName),
    ):
        with pytest.raises(error):
            answer(function, 1 << 20, on, topk=topk)
    with pytest.raises(UsageError, match="no MSCCL algorithm of dispatch"):
        msccl_xml(ExchangeSchedule("dispatch", "gpu", 8, 2), "copies")
