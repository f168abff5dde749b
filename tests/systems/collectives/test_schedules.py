"""Schedules: every rank ends with what its collective promises; their time; MSCCL's XML."""

from __future__ import annotations

from collections import Counter, defaultdict
from xml.etree import ElementTree

import pytest

from wavecast.arch.systems import system
from wavecast.errors import UsageError
from wavecast.perfmodel.ops.collectives import price
from wavecast.perfmodel.ops.collectives.algorithms import network_rate
from wavecast.perfmodel.ops.collectives.problem import known_of
from wavecast.report.systems.msccl import msccl_xml
from wavecast.systems.collectives.schedule import MessageSchedule, messages, schedules
from wavecast.systems.collectives.search import answer, search
from wavecast.systems.collectives.simulate import Cluster, simulate
from wavecast.systems.collectives.tree import TREES, binary_tree, rank_of, relabel

SHAPES = [(4, 1), (1, 4), (3, 1), (1, 5), (4, 2), (2, 3), (4, 4), (3, 2)]


def run(schedule: MessageSchedule) -> list[dict[int, Counter[int]]]:
    """What every rank has of each chunk at the end: how often each rank's data is in it."""
    ranks = schedule.ranks
    if schedule.function == "all_gather":
        held = [{rank: Counter([rank])} for rank in range(ranks)]
    else:
        held = [{chunk: Counter([rank]) for chunk in range(ranks)} for rank in range(ranks)]
    rounds = defaultdict(list)
    for message in messages(schedule):
        rounds[message.round].append(message)
    assert sorted(rounds) == list(range(schedule.rounds))
    for number in sorted(rounds):
        sent = [
            (message, {chunk: Counter(held[message.source][chunk]) for chunk in message.chunks})
            for message in rounds[number]
        ]
        for message, data in sent:
            for chunk, value in data.items():
                mine = held[message.target]
                mine[chunk] = mine[chunk] + value if message.reduce else value
    return held


@pytest.mark.parametrize(("local", "nodes"), SHAPES)
@pytest.mark.parametrize("function", ["all_reduce", "reduce_scatter", "all_gather"])
def test_every_rank_gets_what_is_promised(function: str, local: int, nodes: int):
    found = list(schedules(function, local, nodes))
    assert len({schedule.name for schedule in found}) == len(found) >= 2
    ranks = local * nodes
    for schedule in found:
        for rank, held in enumerate(run(schedule)):
            if function == "all_gather":
                assert held == {chunk: Counter([chunk]) for chunk in range(ranks)}, schedule.name
                continue
            wanted = range(ranks) if function == "all_reduce" else [rank]
            for chunk in wanted:
                assert held[chunk] == Counter(range(ranks)), (schedule.name, rank, chunk)


@pytest.mark.parametrize(("local", "nodes"), SHAPES)
def test_the_bytes_that_are_simulated_are_those_of_the_messages(local: int, nodes: int):
    for schedule in schedules("all_reduce", local, nodes):
        sent = Counter[str]()
        for message in messages(schedule):
            if message.source == 0:
                near = message.target // local == 0
                sent["node" if near else "rail"] += len(message.chunks)
        shares = defaultdict[str, float](float)
        for phase, share in schedule.shares():
            for number in range(phase.rounds):
                steps = phase.steps(0, number)
                shares[phase.axis] += share * sum(len(step.parts) for step in steps)
        for axis, chunks in sent.items():
            assert shares[axis] == pytest.approx(chunks / schedule.ranks), schedule.name


def execute(text: str) -> list[list[Counter[int]]]:
    """Run an in-place all-reduce as MSCCL would: thread blocks in order, dependencies waited for,
    messages of a pair in order."""
    root = ElementTree.fromstring(text)
    ranks = int(root.attrib["ngpus"])
    buffers = [[Counter([rank]) for _ in range(ranks)] for rank in range(ranks)]
    blocks = [
        (rank, block.attrib, [step.attrib for step in block])
        for rank, gpu in enumerate(root)
        for block in gpu
    ]
    done = {(rank, block["id"]): 0 for rank, block, _ in blocks}
    fifos = defaultdict(list)
    moved = True
    while moved:
        moved = False
        for rank, block, steps in blocks:
            while (at := done[rank, block["id"]]) < len(steps):
                step = steps[at]
                if step["depid"] != "-1" and done[rank, step["depid"]] <= int(step["deps"]):
                    break
                first, count = int(step["srcoff"]), int(step["cnt"])
                if step["type"] == "s":
                    data = [Counter(one) for one in buffers[rank][first : first + count]]
                    fifos[rank, int(block["send"])].append(data)
                elif step["type"] != "nop":
                    waiting = fifos[int(block["recv"]), rank]
                    if not waiting:
                        break
                    data = waiting.pop(0)
                    assert len(data) == count
                    for chunk, value in enumerate(data, first):
                        old = buffers[rank][chunk] if step["type"] == "rrc" else Counter[int]()
                        buffers[rank][chunk] = old + value
                done[rank, block["id"]] += 1
                moved = True
    assert all(done[rank, block["id"]] == len(steps) for rank, block, steps in blocks)
    assert not any(fifos.values())
    return buffers


@pytest.mark.parametrize(("local", "nodes"), [(4, 1), (3, 1), (2, 2), (4, 2), (2, 3)])
def test_the_xml_of_msccl_adds_every_rank_once(local: int, nodes: int):
    for schedule in schedules("all_reduce", local, nodes):
        for buffer in execute(msccl_xml(schedule, "slices")):
            assert all(chunk == Counter(range(local * nodes)) for chunk in buffer), schedule.name


def test_what_has_no_xml():
    for schedule in (
        next(schedules("all_gather", 4, 1)),
        next(schedules("all_reduce", 8, 64)),
    ):
        with pytest.raises(UsageError, match="no MSCCL algorithm"):
            msccl_xml(schedule, "flags")


def cluster(selector: str, **more: float) -> Cluster:
    machine = system(selector)
    return Cluster(machine.device, machine.group(machine.gpus), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 16, 29, 64])
def test_trees_reach_all_ranks_and_no_rank_is_inside_of_both(size: int) -> None:
    shape = binary_tree(size)
    assert shape.parents.count(-1) == 1
    assert max(map(len, shape.children)) <= 2
    assert shape.rounds <= size.bit_length()
    inside = [
        {rank_of(tree, label, size) for label, below in enumerate(shape.children) if below}
        for tree in range(TREES)
    ]
    for tree in range(TREES):
        labels = [relabel(tree, rank, size) for rank in range(size)]
        assert [rank_of(tree, label, size) for label in labels] == list(range(size))
    assert size % 2 or not inside[0] & inside[1]


def test_a_tree_of_two_nodes_takes_two_halves_and_two_hops() -> None:
    on = cluster("2x1xMI300X")
    (tree,) = [one for one in schedules("all_reduce", 1, 2) if one.phases[0].algorithm == "tree"]
    facts, size = known_of(on.device), 1 << 26
    rate = network_rate(on.group, facts)
    wanted = facts["start"] + 2 * (size / 2 / rate + facts["slice_network_hop"])
    assert simulate(tree, on, size, "slices", 1).seconds == pytest.approx(wanted)


@pytest.mark.parametrize("nodes", [5, 8, 13])
def test_the_time_of_a_tree_lies_between_its_bounds(nodes: int) -> None:
    """At least its busiest NIC by the messages, and its hops; in pieces at most twice that."""
    on = cluster(f"{nodes}x8xMI300X")
    (tree,) = [
        one
        for one in schedules("all_reduce", 8, nodes)
        if [phase.algorithm for phase in one.phases] == ["direct", "tree", "direct"]
    ]
    facts, size = known_of(on.device), 1 << 28
    sent = Counter[int]()
    for message in messages(tree):
        if message.source // 8 != message.target // 8:
            sent[message.source] += len(message.chunks)
    network = max(sent.values()) / tree.ranks * size / network_rate(on.group, facts)
    whole, pieces = (simulate(tree, on, size, "slices", number) for number in (1, 16))
    assert [whole.network, pieces.network] == pytest.approx([network, network])
    hops = 2 * binary_tree(nodes).rounds * facts["slice_network_hop"]
    assert network + hops < pieces.seconds < whole.seconds
    assert pieces.seconds < 2 * (pieces.network + pieces.links)
    slow = cluster(f"{nodes}x8xMI300X", oversubscription=4.0, leaf=2)
    assert simulate(tree, slow, size, "slices", 16).seconds > pieces.seconds


def test_a_ring_in_a_node_takes_what_the_formula_says():
    for selector in ("8xMI300X", "dgx-a100"):
        ring = next(schedules("all_gather", 8, 1))
        assert ring.phases[0].algorithm == "ring"
        found = simulate(ring, cluster(selector), 2**32, "slices", 1).seconds
        formula = price("all_gather", 2**32, 8, system(selector)).seconds
        # The formula has the copy of a rank's own part, too.
        assert 0.85 * formula < found <= formula


def test_pieces_overlap_links_and_network():
    eight = cluster("8x8xMI300X")
    schedule = next(schedules("all_reduce", 8, 8))
    one, many = (simulate(schedule, eight, 2**30, "slices", n) for n in (1, 8))
    assert many.seconds < one.seconds
    assert many.seconds > max(many.links, many.network)


def test_long_rings_are_extrapolated_exactly():
    """A ring of 200 nodes is long enough to be cut short; with one piece its time is a sum."""
    far = cluster("200x8xMI300X")
    schedule = next(schedules("all_reduce", 8, 200))
    found = simulate(schedule, far, 2**30, "slices", 1)
    hops = found.seconds - found.links - found.network
    from wavecast.perfmodel.ops.collectives import known_of

    known = known_of(far.device)
    network, links = known["slice_network_hop"], known["slice_hop"]
    assert hops == pytest.approx(known["start"] + 2 * 199 * network + 2 * 7 * links)


def test_oversubscription_and_what_if():
    full, thin = (
        search("all_reduce", 2**30, cluster("64x8xMI300X", oversubscription=n)) for n in (1.0, 8.0)
    )
    # Messages to all nodes cross the uplinks; neighbours in a ring do once in 32.
    assert "direct reduce-scatter (rail)" in full[0].schedule.name
    assert "ring reduce-scatter (rail)" in thin[0].schedule.name
    assert thin[0].seconds > full[0].seconds
    before, after = (
        next(time for time in found if time.schedule == full[0].schedule) for found in (full, thin)
    )
    assert after.seconds > 3 * before.seconds
    assert after.limiter == "network"
    machine = system("64x8xMI300X")
    found = answer("all_reduce", 2**30, machine, oversubscription=8, changes="links*2; latency*2")
    assert (
        found.changes["links*2"].seconds < found.best.seconds < found.changes["latency*2"].seconds
    )
    low, high = found.interval(found.best)
    assert low < found.best.seconds < high


def test_small_messages_are_bound_by_latency_and_large_ones_by_links():
    far = cluster("64x8xMI300X")
    small, large = (search("all_reduce", size, far)[0] for size in (2**10, 2**32))
    assert (small.limiter, large.limiter) == ("latency", "links")
    assert (small.protocol, large.protocol) == ("flags", "slices")


def test_ten_thousand_gpus():
    found = search("all_reduce", 2**26, cluster("1250x8xMI300X"))
    assert found[0].schedule.ranks == 10_000
    assert found[0].seconds < found[-1].seconds
    # More GPUs take no fewer seconds than an eighth of them.
    assert search("all_reduce", 2**26, cluster("125x8xMI300X"))[0].seconds <= found[0].seconds
