"""Files of Chakra execution traces: three encodings, and what is wrong with damaged ones."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress

import pytest

pytest.importorskip("google.protobuf", reason="needs protobuf")

from google.protobuf.json_format import MessageToJson

from tests.systems.chakra.traces import collective, compute, encoded, node, receive, send, write
from wavecast.arch.systems import system
from wavecast.errors import WavecastError
from wavecast.systems.chakra import schema
from wavecast.systems.chakra.read import read
from wavecast.systems.chakra.replay import replay

NODES = [
    compute(7, 300),
    collective(9, "ALL_GATHER", 1 << 20, 7, pg_name="2"),
    node(3, "COMP_NODE", control=(9, 77), micros=5),
]


def simulated(folder, **options):
    settings = {"method": "library", "times": "recorded", "dtype": "bf16", **options}
    (trace,) = read(folder)
    return replay(trace, system("8xMI300X"), **settings)


def test_messages_json_of_them_and_the_graph_of_a_feeder_are_the_same(tmp_path) -> None:
    binary, zipped, jsonized, fed = (tmp_path / name for name in "abcd")
    for folder in (binary, zipped, jsonized, fed):
        folder.mkdir()
        (folder / "comm_groups.json").write_text('{"2": [0]}')
    (binary / "run.0.et").write_bytes(encoded(NODES))
    (zipped / "run.0.et").write_bytes(gzip.compress(encoded(NODES)))
    head = schema.messages().GlobalMetadata(version="0.0.4")
    text = "".join(MessageToJson(message) for message in (head, *NODES))
    (jsonized / "run.0.json").write_text(text)
    graph = [
        {"Id": 7, "Name": "n7", "NodeType": 4, "runtime": 300, "is_cpu_op": False, "data_deps": []},
        {
            "Id": 9,
            "Name": "n9",
            "NodeType": 7,
            "data_deps": [7],
            "comm_type": 2,
            "comm_size": 1 << 20,
            "pg_name": "2",
            "is_cpu_op": False,
        },
        {
            "Id": 3,
            "Name": "n3",
            "NodeType": 4,
            "runtime": 5,
            "ctrlDeps": [9, 77],
            "is_cpu_op": False,
        },
    ]
    (fed / "run.0.json").write_text(json.dumps({"workload_graph": graph}))
    traces = [read(folder)[0] for folder in (binary, zipped, jsonized, fed)]
    assert traces[1:] == traces[:1] * 3
    (rank,) = traces[0].ranks
    assert [one.after for one in rank.nodes] == [(), (0,), (1,)]
    assert [one.seconds for one in rank.nodes] == [pytest.approx(3e-4), 0, pytest.approx(5e-6)]
    assert rank.unresolved == 1
    assert traces[0].groups == {"2": (0,)}
    (without,) = read(binary, control=False)
    assert [one.after for one in without.ranks[0].nodes] == [(), (0,), ()]


def test_a_length_of_123_bytes_is_not_json(tmp_path) -> None:
    head = schema.messages().GlobalMetadata(version="x" * 121)
    assert head.ByteSize() == ord("{")
    data = schema.encode_delimited(head) + schema.encode_delimited(compute(0, 2))
    (tmp_path / "run.0.et").write_bytes(data)
    assert simulated(tmp_path).seconds == pytest.approx(2e-6)


def test_runs_of_a_folder_and_one_of_them(tmp_path) -> None:
    for name in ("a", "b.x"):
        for rank in range(2):
            (tmp_path / f"{name}.{rank}.et").write_bytes(encoded([compute(0, 1)]))
    assert [(one.name, len(one.ranks)) for one in read(tmp_path)] == [("a", 2), ("b.x", 2)]
    assert [one.name for one in read(tmp_path / "b.x")] == ["b.x"]
    assert [one.name for one in read(tmp_path / "a.1.et")] == ["a"]


def test_groups_of_metadata_nodes_of_pytorch(tmp_path) -> None:
    text = '[\'[{"pg_name": "5", "ranks": [0, 1]}, {"pg_name": "0", "ranks": []}]\']'
    stated = node(1, "METADATA_NODE")
    stated.inputs.values = text
    nodes = [stated, collective(2, "ALL_REDUCE", 4096, pg_name="5")]
    write(tmp_path, nodes, nodes)
    (used,) = simulated(tmp_path).collectives
    assert (used.gpus, used.calls) == (2, 1)


GOOD = encoded(NODES)
DAMAGED = {
    "nothing": (b"", "does not begin with the GlobalMetadata"),
    "truncated": (GOOD[:-3], "message 3 has 30 bytes, but 27 are left"),
    "length": (GOOD + b"\x80", "ends in the length of message 4"),
    "varint": (GOOD + b"\x80" * 12, "has no end of the length of message 4"),
    "message": (GOOD + bytes([2, 0x0A, 0x55]), "message 4 is damaged"),
    "node first": (schema.encode_delimited(NODES[0]) + GOOD, "message 0 is damaged"),
    "metadata": (b"\x02\x20\x01", "does not begin with"),
    "twice": (encoded([compute(1, 1), compute(1, 1)]), "two nodes have the id 1"),
    "unknown": (encoded([compute(1, 1, 8)]), "node 1 depends on 8, which is not there"),
    "gzip": (gzip.compress(GOOD)[:-9], "cannot read"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files_are_one_line(tmp_path, case) -> None:
    data, message = DAMAGED[case]
    (tmp_path / "run.0.et").write_bytes(data)
    with pytest.raises(WavecastError, match=message) as caught:
        read(tmp_path)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ('{"version": "1"} {"id": "x"}', "object 1: "),
        ('{"version": "1"} [3]', "object 1: "),
        ('{"workload_graph": 3}', "its workload_graph is not a list"),
        ('{"workload_graph": [3]}', "node 0 of its workload_graph is not an object"),
        (
            '{"workload_graph": [{"id": "x"}]}',
            "node 0 of its workload_graph has no Id and no NodeT",
        ),
        ('{"workload_graph": [{"Id": "x", "NodeType": 4}]}', "object 1: "),
        ("[1,2", "not JSON: "),
        ("[1,2]", "object 0: "),
        ("", "it is empty"),
        ('{"version": 3}', "object 0: "),
        ('{"version": "1"} {"id": 1, "type": 9}', "type 9, which is none of Chakra"),
        ("{} " + "[" * 9999, "not JSON"),
    ],
)
def test_damaged_json_is_one_line(tmp_path, text, message) -> None:
    (tmp_path / "run.0.json").write_text(text)
    with pytest.raises(WavecastError, match=message) as caught:
        read(tmp_path)
    assert "\n" not in str(caught.value)


def test_every_beginning_of_a_file_is_read_or_one_line(tmp_path) -> None:
    for length in range(len(GOOD)):
        (tmp_path / "run.0.et").write_bytes(GOOD[:length])
        with suppress(WavecastError):
            (trace,) = read(tmp_path)
            assert len(trace.ranks[0].nodes) < len(NODES)


def reduce(number: int, size: int = 64, *after: int, **about):
    return collective(number, "ALL_REDUCE", size, *after, **about)


CONTRADICTIONS = {
    "circle": (
        ([compute(1, 1, 3), compute(2, 1, 1), compute(3, 1, 2)],),
        "3 nodes depend on each other: n1 -> n3 -> n2",
    ),
    "unknown collective": (
        ([node(1, "COMM_COLL_NODE", comm_type=11, comm_size=4)],),
        "comm_type 11 is none of 0 all_reduce",
    ),
    "no size": (([node(1, "COMM_COLL_NODE", comm_type=0)],), "no comm_size"),
    "negative": (([reduce(1, -5)],), "comm_size is -5, not a number of bytes"),
    "negative message": (([send(1, 1, -5)], []), "comm_size is -5, not a number of bytes"),
    "nothing": (([], []), "run.0.et: a trace without nodes"),
    "no type": (([node(1, "COMM_COLL_NODE")],), "no comm_type and no duration"),
    "text": (([node(1, "COMM_COLL_NODE", comm_type="x")],), "comm_type is 'x', not a whole number"),
    "group": (([reduce(1, pg_name="7")],), "the ranks of group 7 are not stated"),
    "other ranks": (([reduce(1, pg_name="4")],), "group 4 has rank 5, whose trace is missing"),
    "outside": (
        ([reduce(1, pg_name="3")], [compute(1, 1)]),
        "group 3 of a collective of rank 0",
    ),
    "function": (
        ([reduce(1)], [collective(1, "ALL_GATHER", 64)]),
        "rank 0 calls all_reduce of 64 bytes .n1., rank 1 all_gather of 64 bytes",
    ),
    "size": (([reduce(1)], [reduce(1, 32)]), "rank 1 all_reduce of 32 bytes"),
    "missing": (([reduce(1), reduce(2)], [reduce(1)]), "rank 1 has no collective for n2, number 2"),
    "partner": (([send(1, 4, 64)],), "its partner is rank 4 of 1"),
    "no partner": (
        ([node(1, "COMM_SEND_NODE", comm_size=3)],),
        "its partner and its duration are missing",
    ),
    "unread": (([send(1, 1, 64)], [compute(1, 1)]), "sends 1 messages to rank 1"),
    "unsent": (
        ([compute(1, 1)], [receive(1, 0, 64)]),
        "sends 0 messages to rank 1",
    ),
    "tags": (([send(1, 1, 64, tag=1)], [receive(1, 0, 64)]), "with tag"),
    "sizes": (
        ([send(1, 1, 64)], [receive(1, 0, 32)]),
        "sends 64 bytes to rank 1",
    ),
    "of another": (
        ([node(1, "COMM_SEND_NODE", comm_src=1, comm_dst=1, comm_size=3)], []),
        "it is of rank 1",
    ),
    "deadlock": (
        (
            [receive(1, 1, 64, tag=1), send(2, 1, 64, 1, tag=2)],
            [receive(1, 0, 64, tag=2), send(2, 0, 64, 1, tag=1)],
        ),
        "ranks wait for each other: rank 0 in n1, rank 1 in n1",
    ),
    "order": (
        (
            [reduce(1, name="x"), reduce(2, 64, 1, name="y")],
            [reduce(1, name="y"), reduce(2, 64, 1, name="x")],
        ),
        "ranks wait for each other: rank 0 in x, rank 1 in y",
    ),
    "machine": (([compute(1, 1)],) * 9, r"the system \(8x AMD Instinct MI300X\) has 8 GPUs"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions_are_one_line(tmp_path, case) -> None:
    ranks, message = CONTRADICTIONS[case]
    write(tmp_path, *ranks, groups={"3": [1], "4": [0, 5]})
    with pytest.raises(WavecastError, match=message) as caught:
        simulated(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_rank_is_missing(tmp_path) -> None:
    write(tmp_path, [compute(1, 1)], [compute(1, 1)], [compute(1, 1)])
    (tmp_path / "run.1.et").unlink()
    with pytest.raises(WavecastError, match="a trace of rank 2, but none of rank 1"):
        read(tmp_path)
    (tmp_path / "run.0.json").write_text("{}")
    with pytest.raises(WavecastError, match="are one rank"):
        read(tmp_path)
    with pytest.raises(WavecastError, match="no Chakra traces"):
        read(tmp_path / "other")


@pytest.mark.parametrize("groups", ["[1]", '{"1": [0, 0]}', '{"1": [-1]}', '{"1": 3}', "{"])
def test_groups_that_are_none(tmp_path, groups) -> None:
    write(tmp_path, [compute(1, 1)])
    (tmp_path / "comm_groups.json").write_text(groups)
    with pytest.raises(WavecastError, match=r"comm_groups\.json"):
        read(tmp_path)
