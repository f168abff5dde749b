"""Models over several nodes: placements of collectives, wide expert parallelism, unequal loads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wavecast.arch.systems import system
from wavecast.errors import UsageError
from wavecast.perfmodel.ops.collectives import Collective
from wavecast.perfmodel.ops.moe import FusedMoe
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment, ModelOnSystem
from wavecast.systems.changes import parse
from wavecast.systems.experts import ExpertLoad, read_expert_load
from wavecast.systems.graph import Node, Step, layer_nodes
from wavecast.systems.parallel import Parallelism


def ready(model: str, machine: str, parallel: Parallelism, engine: str = "sglang"):
    deployment = Deployment(parallel=parallel, engine=engine)
    return ModelOnSystem(huggingface.load(model), system(machine), deployment)


def sparse_nodes(parallel: Parallelism, machine: str, decode: int = 64) -> dict[str, Node]:
    builder = ready("DeepSeek-R1", machine, parallel).model.builder
    layer = builder.architecture.layers[-1][0]
    return {node.name: node for node in layer_nodes(builder, layer, Step(decode=decode, context=9))}


WIDE = Parallelism(tensor=8, data=4, expert=32, attention_data=True)


def test_wide_experts_get_the_tokens_of_all_replicas():
    nodes = sparse_nodes(WIDE, "4x8xMI300X")
    experts, dispatch, combine = (nodes[n].op for n in ("experts", "dispatch", "combine"))
    assert isinstance(experts, FusedMoe)
    # 64 sequences on 8 GPUs of a replica: 8 tokens with 8 experts each reach every GPU.
    assert experts.tokens * experts.topk == 8 * 8
    assert experts.experts == 256 // 32
    assert isinstance(dispatch, Collective)
    assert isinstance(combine, Collective)
    assert (dispatch.bytes, combine.bytes) == (8 * 7168, 8 * 7168 * 2)
    assert dispatch.group is not None
    assert (dispatch.group.local, dispatch.group.nodes) == (8, 4)
    assert "gather tokens" not in nodes


def test_experts_of_a_replica_gather_their_tokens():
    nodes = sparse_nodes(Parallelism(tensor=8, expert=8, attention_data=True), "8xMI300X")
    assert {"gather tokens", "scatter tokens"} <= nodes.keys()
    assert "dispatch" not in nodes


def test_wide_experts_with_divided_attention_gather_what_they_combined():
    nodes = sparse_nodes(Parallelism(tensor=8, data=2, expert=16), "2x8xMI300X")
    op = nodes["gather tokens"].op
    assert isinstance(op, Collective)
    assert (op.function, op.bytes) == ("all_gather", 64 * 7168 * 2)


def test_a_model_over_nodes_reduces_over_nodes():
    one = ready("Llama-3.3-70B", "8xMI300X", Parallelism(tensor=8)).model
    two = ready("Llama-3.3-70B", "2x8xMI300X", Parallelism(tensor=16)).model
    step = Step(decode=16, context=100)
    times = [model.time(step).modules["collective"] for model in (one, two)]
    assert times[1] > 1.5 * times[0]


def test_groups_that_do_not_divide_nodes():
    with pytest.raises(UsageError, match="do not divide nodes of 6"):
        ready("Llama-3.3-70B", "2x6xMI300X", Parallelism(tensor=8))
    with pytest.raises(UsageError, match="takes 16 GPUs"):
        ready("Llama-3.3-70B", "8xMI300X", Parallelism(tensor=16))


def test_nodes_are_noted():
    from wavecast.systems.answer import answer

    found = answer(huggingface.load("gpt-oss-20b"), system("2x1xMI300X"), Deployment(), ())
    assert any("over nodes" in note for note in found.notes)


def test_faster_links_are_those_of_the_system():
    before = system("8xMI300X")
    after, _ = parse("interconnect*2")[0].apply(before, Deployment())
    assert before.fabric is not None
    assert after.fabric is not None
    assert after.fabric.rate(8) == 2 * before.fabric.rate(8)


def test_equal_loads():
    assert ExpertLoad().busiest(256, 32) == 1.0
    assert ExpertLoad(exponent=1.0).busiest(256, 1) == 1.0


def test_redundant_experts() -> None:
    """48 GPUs divide 256 experts with 32 copies; copies of popular experts level their load."""

    def divided(gpus: int, copies: int) -> ModelOnSystem:
        layout = Parallelism(gpus, expert=gpus, attention_data=True, redundant=copies)
        return ready("DeepSeek-R1", "gb200-nvl72", layout)

    with pytest.raises(UsageError, match="256 experts do not divide among 48 GPUs"):
        divided(48, 0)
    assert str(divided(48, 32).parallel) == "TP48 EP48 32 redundant experts DP attention"
    more, fewer = (divided(32, n).memory.parts["expert weights"] for n in (32, 0))
    assert more == pytest.approx(fewer * 288 / 256)
    load = ExpertLoad(exponent=1.0)
    assert 1 <= load.busiest(256, 32, 32) < load.busiest(256, 32) / 2
    assert ExpertLoad((4.0, 1.0, 1.0, 1.0)).busiest(4, 2, 0) == pytest.approx(10 / 7)
    # Thirds of the first expert: 4/3 + 4/3 + 1 of 7 tokens, and 4/3 + 1 + 1.
    assert ExpertLoad((4.0, 1.0, 1.0, 1.0)).busiest(4, 2, 2) == pytest.approx(22 / 21)


def test_a_power_law_loads_few_experts_per_gpu_most():
    law = ExpertLoad(exponent=0.8)
    assert 1 < law.busiest(256, 8) < law.busiest(256, 32) < law.busiest(256, 256)
    # One expert per GPU: the share of the most popular one.
    shares = [(k + 1) ** -0.8 for k in range(256)]
    assert law.busiest(256, 256) == pytest.approx(256 * shares[0] / sum(shares))


def test_measured_loads(tmp_path: Path):
    path = tmp_path / "load.json"
    path.write_text(json.dumps([[4, 0, 2, 2], [4, 0, 2, 2]]))
    load = read_expert_load(path)
    assert load.shares == (8, 0, 4, 4)
    assert load.busiest(4, 4) == 2.0
    assert load.busiest(4, 2) == 1.0
    with pytest.raises(UsageError, match="4 experts, a layer of the model 256"):
        load.busiest(256, 8)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("{}", "not a list of numbers"),
        ("[]", "not a list of numbers"),
        ('["a"]', "not a list of numbers"),
        ("[true, 1]", "not a list of numbers"),
        ("[[1, 2], [1]]", "2 and 1 experts"),
        ("[0, 0]", "not all zero"),
        ("[1, -1]", "not negative"),
        ("[1, NaN]", "not negative"),
        (f"[[{17 * 10**307}], [{17 * 10**307}]]", "not negative"),
        (f"[{'9' * 400}]", "not a list of numbers"),
    ],
)
def test_wrong_loads(tmp_path: Path, text: str, why: str):
    path = tmp_path / "load.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=why):
        read_expert_load(path)
    with pytest.raises(UsageError, match="exponent"):
        ExpertLoad(exponent=-1)


def test_the_busiest_gpu_decides():
    even = sparse_nodes(WIDE, "4x8xMI300X", 4096)["experts"].op
    skewed = Parallelism(
        tensor=8, data=4, expert=32, attention_data=True, load=ExpertLoad(exponent=1.0)
    )
    uneven = sparse_nodes(skewed, "4x8xMI300X", 4096)["experts"].op
    assert isinstance(even, FusedMoe)
    assert isinstance(uneven, FusedMoe)
    factor = ExpertLoad(exponent=1.0).busiest(256, 32)
    assert uneven.tokens == pytest.approx(even.tokens * factor, rel=0.01)
