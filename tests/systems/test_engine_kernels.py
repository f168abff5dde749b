"""The kernels that engines launch around products and attention, as their sources have them."""

from __future__ import annotations

from collections import Counter

import pytest

from wavecast.arch.systems import system
from wavecast.perfmodel.ops.collectives import Collective
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment, ModelOnSystem
from wavecast.systems.engine import engine
from wavecast.systems.graph import Step
from wavecast.systems.parallel import Parallelism


def kernels(model: str, name: str, *, gpus: int = 4, chip: str = "MI355X", **step: int) -> Counter:
    """How often a decode step of 4 sequences runs each kernel."""
    ready = ready_model(model, name, gpus=gpus, chip=chip)
    counts: Counter = Counter()
    for kernel in ready.model.kernels(Step(**step or {"decode": 4, "context": 1024})):
        counts[kernel.priced.node.name] += kernel.count
    return counts


def ready_model(
    model: str, name: str, *, gpus: int = 4, chip: str = "MI355X", **fields: int
) -> ModelOnSystem:
    deployment = Deployment(
        parallel=Parallelism(tensor=gpus), engine=name, engine_fields=tuple(fields.items())
    )
    return ModelOnSystem(huggingface.load(model), system(f"{gpus}x{chip}"), deployment)


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("vllm@0.11", {"gates_proj", "order", "copy values", "decay", "copy result"}),
        ("sglang@0.5.5", {"gates_proj", "order"}),
        ("atom", {"gates_proj", "decay", "copy result"}),
    ],
)
def test_linear_attention_has_the_kernels_of_the_engine(name: str, names: set[str]) -> None:
    counts = kernels("Qwen3-Next-80B-A3B", name)
    linear = counts["recurrence"]
    assert linear == 36  # three of four layers
    assert {kernel for kernel in names if counts[kernel] == linear} == names
    assert "decay" in names or not counts["decay"]


def test_norms_that_an_engine_does_not_fuse_with_the_sum_are_kernels() -> None:
    """ATOM adds up and normalises at once, but not in the layers of Qwen3-Next."""
    assert kernels("Qwen3-Next-80B-A3B", "atom")["post_norm"] == 48
    assert not kernels("GLM-4.5", "atom")["post_norm"]


def test_norms_of_queries_and_keys() -> None:
    """GLM-4.5 has them over one head: two kernels in a layer. MiniMax-M2 over all heads: their
    squares are added up among GPUs, of queries and of keys, by one kernel in ATOM."""
    counts = kernels("GLM-4.5", "atom")
    assert counts["norm queries"] == counts["norm keys"] == 92
    assert kernels("Qwen3-Next-80B-A3B", "atom")["norm queries, keys"] == 12
    assert kernels("MiniMax-M2", "vllm@0.11")["reduce squares"] == 2 * 62
    assert kernels("MiniMax-M2", "vllm@0.33")["reduce squares"] == 62
    alone = kernels("MiniMax-M2", "vllm@0.11", gpus=1, chip="B300")
    assert alone["scale queries"] == 62
    assert not alone["reduce squares"]
    assert not kernels("Llama-3.1-70B", "vllm@0.11")["norm queries"]


def test_squares_are_added_up_in_fp32() -> None:
    ready = ready_model("MiniMax-M2", "sglang")
    nodes = [kernel.priced.node for kernel in ready.model.kernels(Step(decode=8, context=64))]
    op = next(node.op for node in nodes if node.name == "reduce squares")
    assert isinstance(op, Collective)
    assert op.bytes == 8 * 2 * 4


@pytest.mark.parametrize(("name", "dtype"), [("atom", "fp32"), ("sglang", "bf16")])
def test_scores_of_experts_have_the_dtype_of_the_engine(name: str, dtype: str) -> None:
    ready = ready_model("GLM-4.5", name)
    nodes = [kernel.priced.node for kernel in ready.model.kernels(Step(decode=8, context=64))]
    assert next(node.op for node in nodes if node.name == "router").dtype == dtype
    assert any(node.name == "router input" for node in nodes) == (dtype == "fp32")


def test_what_shared_experts_add_is_weighed_by_the_kernels_of_the_engine() -> None:
    assert kernels("Qwen3-Next-80B-A3B", "sglang@0.5.5")["shared sigmoid"] == 48
    assert not kernels("Qwen3-Next-80B-A3B", "atom")["shared gate_proj"]
    assert not kernels("DeepSeek-R1", "sglang@0.5.5", gpus=8)["shared gate_proj"]


def test_the_indexer_has_the_kernels_of_the_engine() -> None:
    assert kernels("DeepSeek-V3.2", "sglang@0.5.5", gpus=8)["index transform queries"] == 61
    fused = kernels("DeepSeek-V3.2", "atom", gpus=8)
    assert sum(fused[name] for name in fused if name.startswith("index rope")) == 61


def test_experts_count_as_several_launches_on_the_host() -> None:
    """The time of a step without a graph grows by the launches; nothing else does."""
    step = Step(chunks=1, tokens=16)
    once, often = (
        ready_model("DeepSeek-R1", "trtllm", gpus=8, chip="B200", expert_launches=count).model
        for count in (1, 11)
    )
    launch = engine("trtllm").launch
    more = often.time(step).host - once.time(step).host
    assert more == pytest.approx(10 * 58 * launch)
    assert often.time(step).device == once.time(step).device
    assert often.time(Step(decode=4, context=64)) == once.time(Step(decode=4, context=64))
