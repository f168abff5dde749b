"""Products and the collectives next to them as one kernel, in the profile `wavecast`."""

from __future__ import annotations

from dataclasses import replace

import pytest

import wavecast
from wavecast.arch.systems import system
from wavecast.errors import UsageError
from wavecast.perfmodel.ops.collectives.product import GemmCollective
from wavecast.systems.engine import engine
from wavecast.systems.graph import Step, layer_nodes


def test_the_profile_has_what_differs_from_its_base() -> None:
    own, base = engine("wavecast", "cdna3"), engine("vllm", "cdna3")
    assert (own.name, own.version, own.measured) == ("wavecast", "0.1", "")
    assert own.fused_products
    assert not base.fused_products
    assert own.attention_decode == "triton" != base.attention_decode
    same = ("sizes", "memory_fraction", "host_step", "expert_kernels", "batched_tokens")
    assert all(getattr(own, name) == getattr(base, name) for name in same)
    assert engine("wavecast", "cdna3", model_type="glm4_moe").router == "fp32"
    with pytest.raises(UsageError, match="aiter"):
        engine("wavecast", "cdna3", aiter=True)


@pytest.mark.parametrize("step", [Step(decode=16, context=1000), Step(chunks=2, tokens=4096)])
def test_the_same_work_in_fewer_kernels(ready, step: Step) -> None:
    nodes = {}
    for name in ("vllm", "wavecast"):
        builder = ready("Llama-3.3-70B", "8xMI300X", 8, engine=name).model.builder
        (layer, _), *_ = builder.architecture.layers
        nodes[name] = list(layer_nodes(builder, layer, step))
    flops = [
        sum(sum(node.op.work().flops.values()) for node in one if node.op.kind.startswith("gemm"))
        for one in nodes.values()
    ]
    assert flops[0] == flops[1]
    before, after = ([node.name for node in one] for one in nodes.values())
    assert before.count("all_reduce") == 2
    assert "all_reduce" not in after
    assert {"o_proj, all_reduce", "down_proj, all_reduce"} <= set(after)
    device = system("8xMI300X").device
    for node in nodes["wavecast"]:
        if isinstance(node.op, GemmCollective):
            times = [
                replace(node.op, kernels=kernels).predict(device).seconds
                for kernels in ("fused", "separate")
            ]
            assert node.op.predict(device).seconds == min(times)


def test_tokens_that_are_gathered_and_scattered(ready) -> None:
    """With attention by replicas each GPU has its tokens: the perceptron gathers those of all."""
    model = ready("Llama-3.3-70B", "8xMI300X", 8, engine="wavecast").model
    builder = replace(model.builder, parallel=replace(model.builder.parallel, attention_data=True))
    (layer, _), *_ = builder.architecture.layers
    even, odd = (
        {node.name: node for node in layer_nodes(builder, layer, Step(decode=count, context=100))}
        for count in (64, 63)
    )
    first, last = even["gather tokens, gate_up_proj"].op, even["down_proj, scatter tokens"].op
    assert isinstance(first, GemmCollective)
    assert isinstance(last, GemmCollective)
    assert (first.function, first.m, first.k) == ("all_gather_matmul", 64, 8192)
    assert (last.function, last.m, last.n) == ("matmul_reduce_scatter", 64, 8192)
    assert {"gather tokens", "scatter tokens"} <= odd.keys()  # 8 GPUs do not divide 63 tokens


def test_quantised_products_stay_separate(ready) -> None:
    builder = ready("Llama-3.3-70B", "8xMI300X", 8, engine="wavecast", dtype="fp8").model.builder
    (layer, _), *_ = builder.architecture.layers
    nodes = list(layer_nodes(builder, layer, Step(decode=16, context=1000)))
    assert not any(isinstance(node.op, GemmCollective) for node in nodes)


def test_a_deployment_says_that_it_was_not_measured() -> None:
    report = wavecast.model("Qwen3-8B", system="2xMI300X", engine="wavecast", concurrency=(1,))
    words = "no run of wavecast 0.1 was measured: the intervals come from runs of other engines"
    assert words in " ".join(str(report).split())
