"""Chakra execution traces: messages, dependencies, times, groups of ranks."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

pytest.importorskip("google.protobuf", reason="needs protobuf")

import wavecast
from tests.cli.test_main import call
from wavecast.errors import UsageError
from wavecast.report.systems import chakra
from wavecast.systems.chakra import schema

MODEL = "Llama-3.1-8B"
EXPERTS = {"tp": 8, "dp": 2, "ep": 16, "dp_attention": True, "dtype": "fp8"}


def read(path) -> tuple:
    """The metadata and the nodes of a file."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        length = shift = 0
        while True:
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        kind = "Node" if found else "GlobalMetadata"
        message = getattr(schema.messages(), kind)()
        message.ParseFromString(data[at : at + length])
        at += length
        found.append(message)
    return found[0], found[1:]


def values(message) -> dict:
    return {one.name: getattr(one, one.WhichOneof("value")) for one in message.attr}


def test_a_message_has_the_bytes_of_the_wire_format() -> None:
    """Written by hand from the numbers of the fields and the encoding of protobuf."""
    attribute = schema.attributes({"is_cpu_op": True})
    node = schema.messages().Node(
        id=3, name="ab", type=7, data_deps=[1, 2], start_time_micros=300, attr=attribute
    )
    expected = bytes([8, 3, 18, 2, 97, 98, 24, 7, 42, 2, 1, 2, 48, 172, 2, 82, 14, 10, 9])
    expected += b"is_cpu_op" + bytes([216, 1, 1])
    assert node.SerializeToString() == expected
    assert schema.encode_delimited(node) == bytes([len(expected)]) + expected
    long = schema.messages().Node(name="x" * 300)
    assert schema.encode_delimited(long)[:2] == bytes([0b10101111, 2])  # 303 bytes


def test_every_rank_of_a_served_model_has_a_trace(tmp_path) -> None:
    report = wavecast.model(MODEL, "4xMI300X", tp=2, dp=2, dtype="fp8", concurrency=8)
    written = report.chakra(tmp_path)
    serving = report.servings[0]
    steps = {"decode": serving.decode, "prefill": serving.prefill}
    assert len(written) == 2 * 4 + 1
    groups = json.loads((tmp_path / chakra.GROUPS).read_text())
    assert sorted(groups.values()) == [[0, 1], [2, 3]]
    for step, time in steps.items():
        for rank in range(4):
            (path,) = tmp_path.glob(f"*-{step}.{rank}.et")
            metadata, nodes = read(path)
            assert metadata.version == "0.0.4"
            assert values(metadata)["rank"] == rank
            assert [node.id for node in nodes] == list(range(len(nodes)))
            assert all(dep < node.id for node in nodes for dep in node.data_deps)
            kernels = [node for node in nodes if not values(node)["is_cpu_op"]]
            assert len(kernels) == time.kernels
            for before, after in pairwise(kernels):
                assert before.id in after.data_deps
            last = kernels[-1]
            end = last.start_time_micros + last.duration_micros
            assert end == pytest.approx(time.seconds * 1e6, rel=0.01, abs=1)
            (group,) = {values(n)["pg_name"] for n in nodes if n.type == 7}
            assert rank in groups[group]
            assert sum(values(node)["seconds"] for node in kernels) == pytest.approx(
                sum(time.modules.values())
            )
            reduced = [node for node in nodes if node.name == "all_reduce"]
            assert {values(node)["comm_type"] for node in reduced} == {0}


def test_a_module_is_one_rank(tmp_path, capsys) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(
        "name: one\nkernels:\n- {op: gemm, shape: 512x512x512, dtype: bf16, times: 3}\n"
    )
    folder = tmp_path / "traces"
    code, _, err = call(capsys, "model", str(path), "--chakra", str(folder))
    assert (code, err) == (0, "")
    (trace,) = folder.glob("*.0.et")
    _, nodes = read(trace)
    products = [node for node in nodes if not values(node)["is_cpu_op"]]
    assert [values(node)["num_ops"] for node in products] == [2 * 512**3] * 3


def test_a_training_step_of_every_rank(tmp_path) -> None:
    """2 x tensor, 2 x pipeline, 2 replicas: what one sends another receives, and every rank reduces
    its gradients with that of the other replica."""
    report = wavecast.model(
        MODEL, "8xMI300X", train=True, batch=8, seq=1024, tp=2, pp=2, zero=0, recompute="full"
    )
    report.chakra(tmp_path)
    groups = json.loads((tmp_path / chakra.GROUPS).read_text())
    assert sorted(groups.values()) == [[0, 2], [1, 3], [4, 6], [5, 7]]
    sent, received = [], []
    for rank in range(8):
        (path,) = tmp_path.glob(f"*.{rank}.et")
        _, nodes = read(path)
        assert all(dep < node.id for node in nodes for dep in node.data_deps)
        for kind, found in ((5, sent), (6, received)):
            own = [values(node) for node in nodes if node.type == kind]
            assert {one["comm_src" if kind == 5 else "comm_dst"] for one in own} == {rank}
            names = ("comm_src", "comm_dst", "comm_tag", "comm_size")
            found += [tuple(one[name] for name in names) for one in own]
        (gradients,) = (node for node in nodes if node.type == 7)
        assert rank in groups[values(gradients)["pg_name"]]
        assert values(gradients)["comm_size"] == pytest.approx(8.03e9 / 4 * 4, rel=0.1)
        assert nodes[-1].name == "optimizer"
        assert list(nodes[-1].data_deps) == [gradients.id]
        computed = sum(values(node)["seconds"] for node in nodes if node.type == 4)
        assert computed <= report.answers[0].figures.step.seconds
    assert sorted(sent) == sorted(received)
    assert len(set(sent)) == len(sent) == 4 * 2 * 4  # micro-batches, both ways, pairs of ranks
    assert {size for *_, size in sent} == {1024 // 2 * 4096 * 2}


def test_a_gather_states_what_a_rank_puts_in(tmp_path) -> None:
    """Readers count the input of a rank (ASTRA-sim, all-gather in Ring.cc); `Collective` the whole.
    Exchanges of tokens put in a copy per expert."""
    report = wavecast.model("DeepSeek-R1", "2x8xMI300X", concurrency=8, **EXPERTS)
    report.chakra(tmp_path)
    (path,) = tmp_path.glob("*-decode.3.et")
    _, nodes = read(path)
    layers = report.servings[0].kernels
    ops = [each.priced.node.op for each in layers if each.priced.node.op.kind == "collective"]
    whole = {(each.function, each.bytes) for each in ops}
    stated = [(node.name, values(node)) for node in nodes if node.type == 7]
    gathered = {
        ("all_gather", 8 * about["comm_size"]) for _, about in stated if about["comm_type"] == 2
    }
    sent = {
        (about["function"], about["comm_size"] // about["topk"])
        for _, about in stated
        if about["comm_type"] == 6
    }
    assert gathered == {one for one in whole if one[0] == "all_gather"}
    assert sent == {one for one in whole if one[0] in ("dispatch", "combine")}


@pytest.mark.parametrize("times", ["library", "recorded"])
def test_a_served_model_takes_as_long_from_its_traces(tmp_path, times) -> None:
    report = wavecast.model("DeepSeek-R1", "2x8xMI300X", concurrency=8, **EXPERTS)
    report.chakra(tmp_path)
    replayed = wavecast.model(from_chakra=tmp_path, system="2x8xMI300X", collective_times=times)
    decode, prefill = replayed.answers
    serving = report.servings[0]
    assert decode.seconds == pytest.approx(serving.decode.seconds, rel=1e-9)
    assert prefill.seconds == pytest.approx(serving.prefill.seconds, rel=1e-9)
    modules = sum(serving.decode.modules.values())
    (rank,) = {one.compute + one.communication for one in decode.ranks}
    assert rank == pytest.approx(modules)


def test_a_pipeline_takes_as_long_from_its_traces(tmp_path) -> None:
    """Tensor parallelism is in the times of its nodes; nothing hides what stages send."""
    report = wavecast.model(
        MODEL, "8xMI300X", train=True, batch=8, seq=1024, tp=2, pp=4, recompute="full"
    )
    report.chakra(tmp_path)
    (answer,) = wavecast.model(from_chakra=tmp_path, system="8xMI300X").answers
    step = report.answers[0].figures.step
    assert answer.seconds == pytest.approx(step.seconds, rel=1e-9)
    busy = max(rank.compute for rank in answer.ranks)
    assert busy == pytest.approx(step.pipeline.busy + step.optimizer, rel=0.01)


def test_traces_of_too_many_ranks_are_refused(tmp_path) -> None:
    report = wavecast.model(
        MODEL, "512x8xMI300X", train=True, batch=65536, seq=1024, tp=2, pp=4, zero=1
    )
    with pytest.raises(UsageError, match="nodes, at most"):
        report.chakra(tmp_path / "many")
