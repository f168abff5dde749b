"""Links that collectives and messages share: hand-made cases, and random ones in small steps."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("google.protobuf", reason="needs protobuf")

from tests.systems.chakra.traces import collective, compute, receive, send, write
from wavecast.arch.systems import system
from wavecast.errors import InputError
from wavecast.perfmodel.ops.collectives import price
from wavecast.perfmodel.ops.collectives.problem import Collective
from wavecast.systems.chakra.read import read
from wavecast.systems.chakra.replay import replay
from wavecast.systems.chakra.sharing import SharedLinks, paces

MIB = 1 << 20
MESH, SWITCH = system("2x8xMI300X"), system("2x8xH100")


def simulated(folder, machine):
    (trace,) = read(folder)
    return replay(trace, machine, method="library", times="recorded", dtype="bf16")


def alone(machine, function: str, size: int, ranks: int) -> tuple[float, float]:
    """Seconds of a collective of a node alone, and the part of them that its links are busy."""
    seconds = price(function, size, ranks, machine).seconds
    group = machine.group(ranks)
    problem = Collective(function, size, ranks, group=group)
    return seconds, problem.transfers(machine.device)["links"] / seconds


@pytest.mark.parametrize("machine", [MESH, SWITCH])
def test_two_collectives_of_one_group_at_once(tmp_path, machine) -> None:
    """Each gets half of every link: both take their time alone times twice the load. One that
    begins in the middle of the other lets it go on at that pace, and then has the links."""
    seconds, load = alone(machine, "all_reduce", 256 * MIB, 4)
    assert load > 0.9
    pace = 1 / (2 * load)
    both = [collective(n, "ALL_REDUCE", 256 * MIB, stream=n, name=f"n{n}") for n in (1, 2)]
    write(tmp_path, *[both] * 4)
    answer = simulated(tmp_path, machine)
    assert answer.seconds == pytest.approx(seconds / pace)
    assert answer.slowed == 2
    assert answer.slowed_by == pytest.approx(2 * (seconds / pace - seconds))
    later = round(seconds * 1e6 / 3)
    first, second = both
    third = collective(2, "ALL_REDUCE", 256 * MIB, 3, stream=2, name="n2")
    write(tmp_path, *[[first, compute(3, later), third]] * 4)
    begins = later * 1e-6
    first_ends = begins + (seconds - begins) / pace
    left = seconds - (first_ends - begins) * pace
    assert simulated(tmp_path, machine).seconds == pytest.approx(first_ends + left)
    del second


def test_small_collectives_do_not_fill_links(tmp_path) -> None:
    both = [collective(n, "ALL_REDUCE", 4096, stream=n, name=f"n{n}") for n in (1, 2)]
    write(tmp_path, *[both] * 4)
    answer = simulated(tmp_path, MESH)
    assert answer.seconds == pytest.approx(price("all_reduce", 4096, 4, MESH).seconds)
    assert answer.slowed == 0


def test_groups_with_one_gpu_in_common(tmp_path) -> None:
    """In a mesh they have no link in common; the port of a switch carries both."""

    def node(number: int, group: str):
        return collective(number, "ALL_REDUCE", 256 * MIB, stream=number, pg_name=group)

    ranks = [[node(1, "1"), node(2, "2")], [node(1, "1")], [node(1, "2")]]
    write(tmp_path, *ranks, groups={"1": [0, 1], "2": [0, 2]})
    seconds, _ = alone(MESH, "all_reduce", 256 * MIB, 2)
    answer = simulated(tmp_path, MESH)
    assert (answer.seconds, answer.slowed) == (pytest.approx(seconds), 0)
    seconds, load = alone(SWITCH, "all_reduce", 256 * MIB, 2)
    answer = simulated(tmp_path, SWITCH)
    assert (answer.seconds, answer.slowed) == (pytest.approx(seconds * 2 * load), 2)


def test_two_messages_to_one_gpu(tmp_path) -> None:
    """They share its port of a switch; of a mesh each has its link; between nodes, its NIC."""
    size = 256 * MIB
    sends = [[send(1, 2, size)], [send(1, 2, size)], [receive(1, 0, size), receive(2, 1, size)]]
    write(tmp_path, *sends)
    seconds, load = alone(SWITCH, "broadcast", size, 2)
    assert simulated(tmp_path, SWITCH).seconds == pytest.approx(seconds * max(1, 2 * load))
    seconds, _ = alone(MESH, "broadcast", size, 2)
    assert simulated(tmp_path, MESH).seconds == pytest.approx(seconds)
    idle = [[compute(1, 1)] for _ in range(6)]
    far = [[send(1, 8, size)], [send(1, 8, size)], *idle]
    write(tmp_path, *far, [receive(1, 0, size), receive(2, 1, size)])
    group = MESH.group(2, 8)
    problem = Collective("broadcast", size, 2, group=group)
    seconds = problem.predict(MESH.device).seconds
    load = problem.transfers(MESH.device)["network"] / seconds
    assert simulated(tmp_path, MESH).seconds == pytest.approx(seconds * max(1, 2 * load))


def test_paces_by_hand() -> None:
    link, other = ("pair", 0, 1), ("pair", 1, 0)
    assert paces({1: {link: 1.0}, 2: {link: 1.0}}) == pytest.approx({1: 0.5, 2: 0.5})
    assert paces({1: {link: 0.25}, 2: {link: 1.0}}) == pytest.approx({1: 1.0, 2: 0.75})
    assert paces({1: {link: 0.6}, 2: {other: 1.0}, 3: {}}) == {1: 1.0, 2: 1.0, 3: 1.0}
    # 1 shares a link with 2 and 3, so a third for each; 4 gets what 3 leaves of the other link
    loads = {1: {link: 1.0}, 2: {link: 1.0}, 3: {link: 1.0, other: 1.0}, 4: {other: 1.0}}
    assert paces(loads) == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 1 / 3, 4: 2 / 3})


def stepped(loads: dict[int, dict], step: float = 1e-4) -> dict[int, float]:
    """Paces by giving every user one small part of its most loaded link after the other, while all
    its links have room for it."""
    got = dict.fromkeys(loads, 0.0)
    room = dict.fromkeys({link for on in loads.values() for link in on}, 1.0)
    growing = {number for number in loads if loads[number]}
    while growing:
        for number in sorted(growing):
            most = max(loads[number].values())
            more = min(step / most, 1 - got[number])
            takes = {link: load * more for link, load in loads[number].items()}
            if more <= 0 or any(room[link] < part - 1e-12 for link, part in takes.items()):
                growing.discard(number)
                continue
            got[number] += more
            for link, part in takes.items():
                room[link] -= part
    return {number: got[number] if loads[number] else 1.0 for number in loads}


@pytest.mark.parametrize("seed", range(15))
def test_random_paces_by_small_steps(seed) -> None:
    draw = random.Random(seed)
    links = [("pair", 0, number) for number in range(1, draw.randint(2, 5))]
    loads = {
        number: {
            link: draw.uniform(0.1, 1.0) for link in draw.sample(links, draw.randint(1, len(links)))
        }
        for number in range(draw.randint(2, 6))
    }
    expected = stepped(loads)
    for number, pace in paces(loads).items():
        assert pace == pytest.approx(expected[number], abs=2e-3), loads


@pytest.mark.parametrize("seed", range(10))
def test_random_messages_by_small_steps(seed) -> None:
    """Messages of GPUs of a switch that begin at random times, against a simulation that moves
    parts of them in steps of time."""
    draw = random.Random(seed)
    messages = {}
    for number in range(draw.randint(2, 6)):
        source, target = draw.sample(range(4), 2)
        messages[number] = (draw.uniform(0, 2), draw.uniform(0.5, 2), source, target)
    shared, ends, now = SharedLinks(system("8xH100")), {}, 0.0
    waiting, due = dict(messages), {}
    while waiting or due:
        begin = min(waiting, key=lambda n: messages[n][0], default=None)
        end = min(due, key=due.__getitem__, default=None)
        if end is None or (begin is not None and messages[begin][0] < due[end]):
            now, seconds, source, target = waiting.pop(begin)
            due |= shared.start(
                now, begin, (source, target), seconds, (seconds, 0), is_message=True
            )
        else:
            now = ends[end] = due.pop(end)
            due |= shared.end(now, end)
    step, left, clock, seen = 1e-3, {n: row[1] for n, row in messages.items()}, 0.0, {}
    of_active: dict[frozenset, dict] = {}
    while left:
        active = frozenset(n for n in left if messages[n][0] <= clock)
        if active not in of_active:
            of_active[active] = stepped(
                {n: {("out", messages[n][2]): 1.0, ("in", messages[n][3]): 1.0} for n in active},
                1e-3,
            )
        for number, pace in of_active[active].items():
            left[number] -= pace * step
            if left[number] <= 0:
                seen[number] = clock
                del left[number]
        clock += step
    assert ends == pytest.approx(seen, abs=0.05)


def test_dimensions_of_a_network(tmp_path) -> None:
    """The GPUs of each node, the nodes, both; groups are cut to the dimension."""
    for dims, count, stride in (([1, 0], 8, 1), ([0, 1], 2, 8), ([1, 1], 16, 1)):
        write(tmp_path, *[[along(dims)] for _ in range(16)])
        answer = simulated(tmp_path, MESH)
        expected = price("all_reduce", MIB, count, MESH, stride=stride).seconds
        assert answer.seconds == pytest.approx(expected)
        assert {(used.gpus, used.calls) for used in answer.collectives} == {(count, 16 // count)}
    write(
        tmp_path,
        *[
            [along([0, 1], pg_name="1")] if rank in (0, 8) else [compute(1, 1)]
            for rank in range(16)
        ],
        groups={"1": [0, 8]},
    )
    assert simulated(tmp_path, MESH).collectives[0].gpus == 2
    for wrong in ([0, 0], [1, 0, 1], [0]):
        write(tmp_path, *[[along(wrong)] for _ in range(16)])
        with pytest.raises(InputError, match="a system has two dimensions"):
            simulated(tmp_path, MESH)


def along(dims: list[int], **about):
    node = collective(1, "ALL_REDUCE", MIB, **about)
    attribute = node.attr.add(name="involved_dim")
    attribute.bool_list.values.extend(bool(dim) for dim in dims)
    return node
