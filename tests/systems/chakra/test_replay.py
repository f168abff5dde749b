"""Simulated traces: graphs with known critical paths, and random ones by another simulation."""

from __future__ import annotations

import json
import random

import pytest
from click.testing import CliRunner

pytest.importorskip("google.protobuf", reason="needs protobuf")

from tests.systems.chakra.traces import collective, compute, node, receive, send, write
from wavecast.arch.systems import system
from wavecast.cli.model import command
from wavecast.perfmodel.ops.collectives import price
from wavecast.systems.chakra.read import read
from wavecast.systems.chakra.replay import replay
from wavecast.systems.collectives.search import answer as collective_answer

MIB = 1 << 20
MACHINE = system("2x8xMI300X")


def simulated(folder, machine=MACHINE, **options):
    settings = {"method": "library", "times": "recorded", "dtype": "bf16", **options}
    (trace,) = read(folder)
    return replay(trace, machine, **settings)


def seconds(function: str, size: int, ranks: int, stride: int = 1) -> float:
    return price(function, size, ranks, MACHINE, stride=stride).seconds


def test_a_collective_waits_for_the_last_rank_and_hides_behind_compute(tmp_path) -> None:
    """Rank 1 comes 70 µs later; then both reduce while they compute for 20 µs."""

    def rank(before: int) -> list:
        reduced = collective(2, "ALL_REDUCE", 64 * MIB, 1)
        return [compute(1, before), reduced, compute(3, 20, 1), compute(4, 5, 2, 3)]

    write(tmp_path, rank(30), rank(100))
    answer = simulated(tmp_path)
    took = seconds("all_reduce", 64 * MIB, 2)
    assert took > 20e-6
    assert answer.seconds == pytest.approx(100e-6 + took + 5e-6)
    assert answer.critical == pytest.approx({"compute": 105e-6, "communication": took, "host": 0.0})
    first, second = answer.ranks
    assert first.exposed == pytest.approx(took)
    assert first.idle == pytest.approx(50e-6)
    assert second.exposed == pytest.approx(took - 20e-6)
    assert second.idle == pytest.approx(0)
    low, high = (
        price("all_reduce", 64 * MIB, 2, MACHINE).__getattribute__(n) for n in ("low", "high")
    )
    assert (answer.low, answer.high) == pytest.approx((105e-6 + low, 105e-6 + high))


def test_one_node_at_a_time_of_a_stream_and_several_streams(tmp_path) -> None:
    write(tmp_path, [compute(1, 10), compute(2, 20), compute(3, 30, is_cpu_op=True)])
    assert simulated(tmp_path).seconds == pytest.approx(30e-6)
    streams = [compute(1, 10, stream=7), compute(2, 20, stream=8), compute(3, 4, stream=8)]
    write(tmp_path, streams)
    (rank,) = simulated(tmp_path).ranks
    assert rank.end == pytest.approx(24e-6)
    assert rank.compute == pytest.approx(24e-6)


def test_messages_of_a_pipeline(tmp_path) -> None:
    """Two micro-batches through two stages on two nodes; the first receiver waits, the second
    message is there."""
    first = [
        compute(1, 100),
        send(2, 8, MIB, 1, tag=1),
        compute(3, 100, 1),
        send(4, 8, MIB, 3, tag=2),
    ]
    second = [receive(1, 0, MIB, tag=1), compute(2, 300, 1), receive(3, 0, MIB, tag=2)]
    second.append(compute(4, 300, 3, 2))
    idle = [[compute(1, 1)] for _ in range(7)]
    write(tmp_path, first, *idle, second)
    answer = simulated(tmp_path)
    took = seconds("broadcast", MIB, 2, 8)
    assert answer.seconds == pytest.approx(100e-6 + took + 600e-6)
    assert [(one.function, one.calls, one.gpus, one.nodes) for one in answer.collectives] == [
        ("send", 2, 2, 2)
    ]
    assert answer.critical["communication"] == pytest.approx(took)


def test_sizes_are_what_a_rank_puts_in_and_groups_are_placed(tmp_path) -> None:
    kinds = {
        "ALL_GATHER": ("all_gather", 16 * MIB),
        "REDUCE_SCATTER": ("reduce_scatter", MIB),
        "ALL_TO_ALL": ("all_to_all", MIB),
        "REDUCE_SCATTER_BLOCK": ("reduce_scatter", MIB),
        "SCATTER": ("all_to_all", MIB),
        "GATHER": ("all_to_all", 16 * MIB),
        "BROADCAST": ("broadcast", MIB),
        "REDUCE": ("reduce", MIB),
        "BARRIER": ("all_reduce", 4),
    }
    for kind, (function, size) in kinds.items():
        write(tmp_path, *[[collective(1, kind, MIB)] for _ in range(16)])
        answer = simulated(tmp_path)
        assert answer.seconds == pytest.approx(seconds(function, size, 16)), kind
        (used,) = answer.collectives
        assert (used.function, used.bytes, used.nodes) == (kind.lower(), size, 2)
    pairs = [[collective(1, "ALL_REDUCE", MIB, pg_name=str(rank % 8))] for rank in range(16)]
    write(tmp_path, *pairs, groups={str(rank): [rank, rank + 8] for rank in range(8)})
    answer = simulated(tmp_path)
    assert answer.seconds == pytest.approx(seconds("all_reduce", MIB, 2, 8))
    (used,) = answer.collectives
    assert (used.gpus, used.nodes, used.calls) == (2, 2, 8)
    assert used.seconds == pytest.approx(8 * answer.seconds)


def test_times_of_collectives_by_schedule_and_as_recorded(tmp_path) -> None:
    reduced = collective(1, "ALL_REDUCE", 64 * MIB)
    reduced.duration_micros = 77
    write(tmp_path, *[[reduced]] * 16)
    best = collective_answer("all_reduce", 64 * MIB, MACHINE).best
    answer = simulated(tmp_path, method="schedules")
    assert answer.seconds == pytest.approx(best.seconds)
    assert answer.collectives[0].algorithm == best.schedule.name
    assert simulated(tmp_path, method="recorded").seconds == pytest.approx(77e-6)


def test_compute_without_a_duration_is_predicted(tmp_path) -> None:
    device = MACHINE.device
    work = {"num_ops": 10**12, "tensor_size": 1 << 20}
    nodes = [compute(1, 50, **work), compute(2, 0, 1, **work), compute(3, 0, 2)]
    write(tmp_path, nodes)
    rate = device.sustained_flops("bf16") or device.peak_flops("bf16")
    assert rate is not None
    peak = rate.number
    answer = simulated(tmp_path)
    assert answer.sources == {"recorded": 1, "predicted": 1, "untimed": 1}
    assert answer.seconds == pytest.approx(50e-6 + 1e12 / peak, rel=1e-6)
    assert simulated(tmp_path, times="predicted").seconds == pytest.approx(2e12 / peak, rel=1e-6)


def test_a_dependency_on_control_is_one(tmp_path) -> None:
    nodes = [compute(1, 10, stream=1), node(2, "COMP_NODE", control=(1,), micros=10, stream=2)]
    write(tmp_path, nodes)
    assert simulated(tmp_path).seconds == pytest.approx(20e-6)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_by_a_simulation_in_steps(tmp_path, seed) -> None:
    """An independent simulation: microsecond by microsecond, what is ready starts in order."""
    draw = random.Random(seed)
    ranks = []
    for _ in range(draw.randint(1, 3)):
        nodes = []
        for number in range(draw.randint(1, 25)):
            before = draw.sample(range(number), min(number, draw.randint(0, 2)))
            on_host = draw.random() < 0.3
            nodes.append(
                compute(number, draw.randint(1, 9), *before, is_cpu_op=on_host)
                if draw.random() < 0.8
                else compute(number, draw.randint(1, 9), *before, stream=3)
            )
        ranks.append(nodes)
    write(tmp_path, *ranks)
    assert simulated(tmp_path).seconds * 1e6 == pytest.approx(max(map(stepped, ranks)))


def stepped(nodes: list) -> int:
    """The end of a rank by counting microseconds."""
    ready = {one.id: None if one.data_deps else 0 for one in nodes}
    ends: dict[int, int] = {}
    running: dict[object, tuple[int, int]] = {}
    now = 0
    while len(ends) < len(nodes):
        for key, (end, number) in [*running.items()]:
            if end == now:
                ends[number] = now
                del running[key]
        for one in nodes:
            if ready[one.id] is None and all(before in ends for before in one.data_deps):
                ready[one.id] = now
        order = sorted(
            (one for one in nodes if ready[one.id] is not None),
            key=lambda one: (ready[one.id], one.id),
        )
        started = {number for _, number in running.values()} | ends.keys()
        for one in order:
            about = {each.name: each.WhichOneof("value") and each for each in one.attr}
            host = about["is_cpu_op"].bool_val
            key = "host" if host else ("stream" in about, "gpu")
            if one.id not in started and key not in running:
                running[key] = (now + one.duration_micros, one.id)
        now += 1
    return max(ends.values())


def call(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False)
    return done.output


def test_text_and_json(tmp_path) -> None:
    nodes = [compute(1, 100), collective(2, "ALL_REDUCE", MIB, 1)]
    write(tmp_path, *[nodes] * 4)
    asked = ("--from-chakra", str(tmp_path), "--system", "8xMI300X,8xMI355X")
    text = call(*asked)
    assert "run: 4 ranks on 8x AMD Instinct MI355X" in text
    assert "0–3" in text
    assert "1 MiB" in text
    runs = json.loads(call(*asked, "--format", "json"))["runs"]
    assert [one["name"] for one in runs] == ["run", "run"]
    (used,) = runs[0]["collectives"]
    assert (used["calls"], used["gpus"]) == (1, 4)
    assert runs[0]["seconds"] == pytest.approx(100e-6 + used["seconds"])
    assert runs[0]["low"] <= runs[0]["seconds"] <= runs[0]["high"]
    assert sum(runs[0]["critical"].values()) == pytest.approx(runs[0]["seconds"])
