"""Kernels, memory and time of training steps."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import replace

import pytest

from wavecast.arch import load
from wavecast.arch.systems import system
from wavecast.errors import MissingFact, Unpredictable, UsageError
from wavecast.perfmodel.ops import Op
from wavecast.systems import huggingface
from wavecast.systems.architecture import GroupedQueryAttention, Layer
from wavecast.systems.training.answer import train
from wavecast.systems.training.flops import model_flops
from wavecast.systems.training.memory import largest_micro_batch, training_memory
from wavecast.systems.training.network import group, group_seconds
from wavecast.systems.training.setup import TrainingSetup, check
from wavecast.systems.training.step import TrainingModel

ONE = TrainingSetup(gpus=1, batch=4, sequence=2048)
LARGE = TrainingSetup(
    gpus=10240, batch=2560, sequence=8192, tensor=8, pipeline=8, schedule="interleaved", chunks=2,
    dtype="fp8",
)  # fmt: skip
config = huggingface.load


def architecture(name: str):
    return huggingface.read(huggingface.load(name)[1], name)


def model(name: str, setup: TrainingSetup, machine: str = "8xmi300x") -> TrainingModel:
    return TrainingModel(architecture(name), setup, system(machine))


def flops(op: Op) -> float:
    """Useful FLOPs of an operation."""
    return sum((op.work().flops or {}).values())


def products(built: TrainingModel, phase: str) -> float:
    """FLOPs of the products of a micro-batch outside of attention."""
    return sum(
        flops(kernel.priced.node.op) * kernel.count
        for kernel in built.kernels()
        if kernel.phase == phase and kernel.priced.node.op.kind == "gemm"
        and kernel.priced.node.name != "chunked recurrence"
    )  # fmt: skip


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "Qwen3-30B-A3B", "DeepSeek-V2-Lite"])
def test_every_pass_multiplies_by_every_weight(name) -> None:
    built, known = model(name, ONE), architecture(name)
    weights = known.active_matrices - known.vocabulary * known.hidden
    expected = 2.0 * weights * ONE.rows
    for phase in ("forward", "input_grad", "weight_grad"):
        assert products(built, phase) == pytest.approx(expected, rel=0.02), phase
    assert products(built, "recompute") == 0


def test_recomputation_repeats_the_forward_pass() -> None:
    full = model("Llama-3.1-8B", replace(ONE, recompute="full")).step()
    half = model("Llama-3.1-8B", replace(ONE, recompute="full", recompute_layers=16)).step()
    none = model("Llama-3.1-8B", ONE).step()
    selective = model("Llama-3.1-8B", replace(ONE, recompute="selective")).step()
    assert half.phases["recompute"] == pytest.approx(full.phases["recompute"] / 2)
    assert none.seconds < selective.seconds < half.seconds < full.seconds
    device = load("mi300x")
    sizes = [
        training_memory(architecture("Llama-3.1-8B"), setup, device).parts["activations"]
        for setup in (ONE, replace(ONE, recompute="selective"), replace(ONE, recompute="full"))
    ]
    assert sizes[0] > sizes[1] > sizes[2]


def test_frozen_weights_have_no_gradients() -> None:
    lora = replace(ONE, lora=16)
    built, whole = model("Llama-3.1-8B", lora), model("Llama-3.1-8B", ONE)
    assert products(built, "weight_grad") < 0.01 * products(whole, "weight_grad")
    assert products(built, "input_grad") == pytest.approx(products(whole, "input_grad"), rel=0.01)
    known = architecture("Llama-3.1-8B")
    assert model_flops(known, lora) < 0.7 * model_flops(known, ONE)
    parts = training_memory(known, lora, load("mi300x")).parts
    assert parts["optimizer states"] == pytest.approx(12 * 32 * 16 * (4096 + 6144 + 4096 + 4096))


def test_mfu_counts_six_flops_per_weight_and_token() -> None:
    known = architecture("Llama-3.1-8B")
    weights = known.active_matrices - known.vocabulary * known.hidden
    attention = 3 * 32 * 4 * 4096 * (2048 + 1) / 2
    assert model_flops(known, ONE) == pytest.approx(4 * 2048 * (6 * weights + attention))


def test_activations_are_those_of_korthikanti() -> None:
    """34 s b h of a layer of GPT has 8 s b h of an ungated MLP of 4 h and dropout masks of 3; with
    flash attention. The gated MLP of Llama stores 3 x 3.5 h, and there is no dropout."""
    known = architecture("Llama-3.1-8B")
    parts = training_memory(known, ONE, load("mi300x")).parts
    row = 2 * (2 * 4096 + 2 * 4096 + 4096 + 2048 + 4096 + 3 * 14336) + 4 * 32
    assert parts["activations"] == pytest.approx(32 * ONE.rows * row, rel=0.01)


def test_sharding_divides_states_then_gradients_then_weights() -> None:
    known, device = architecture("Llama-3.1-8B"), load("mi300x")
    setup = TrainingSetup(gpus=8, batch=8, sequence=2048, sharding=0)
    whole = training_memory(known, setup, device).parts
    for level, name in ((1, "optimizer states"), (2, "gradients"), (3, "weights")):
        parts = training_memory(known, replace(setup, sharding=level), device).parts
        assert parts[name] == pytest.approx(whole[name] / 8)


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_the_largest_micro_batch_fits_and_the_next_does_not(recompute) -> None:
    known, device = architecture("Llama-3.1-8B"), load("mi300x")
    setup = TrainingSetup(gpus=8, batch=512, sequence=8192, recompute=recompute)
    size = largest_micro_batch(known, setup, device)
    assert training_memory(known, replace(setup, micro_batch=size), device).fits
    assert not training_memory(known, replace(setup, micro_batch=2 * size), device).fits


def test_a_training_that_does_not_fit_names_what_does() -> None:
    """The issue's own example: activations of 80 layers of 8,192 tokens take 168 GiB."""
    machine = system("8xMI355X")
    setup = TrainingSetup(gpus=8, batch=512, sequence=8192, sharding=3)
    known = train(config("Llama-3.3-70B"), machine, setup)
    assert known.why_not.endswith("of mi355x; --recompute full fits")
    assert train(
        huggingface.load("Llama-3.3-70B"), machine, replace(setup, recompute="selective")
    ).why_not
    assert train(
        huggingface.load("Llama-3.3-70B"), machine, replace(setup, recompute="full")
    ).figures
    hopeless = train(
        huggingface.load("Llama-3.1-405B"), system("8xRX7900XTX"), replace(setup, recompute="full")
    )
    assert hopeless.why_not.endswith("of rx7900xtx")


def test_overlap_hides_no_more_than_the_compute() -> None:
    setup = TrainingSetup(gpus=8, batch=8, sequence=2048, sharding=3)
    exposed = [
        model("Llama-3.1-8B", replace(setup, overlap=share)).step().exposed.get("data", 0.0)
        for share in (0.0, 0.5, 1.0)
    ]
    assert exposed[1] == pytest.approx(exposed[0] / 2)
    assert exposed[2] < exposed[1]


def test_gradients_of_every_micro_batch_hide_next_to_it() -> None:
    setup = TrainingSetup(gpus=8, batch=64, sequence=2048, sharding=2, overlap=1.0)
    step = model("Llama-3.1-8B", setup).step()
    assert step.exposed.get("data", 0.0) < 0.01 * step.seconds
    assert step.hidden["data"] > 0


def test_data_parallelism_costs_what_it_sends() -> None:
    """ZeRO-2 scatters gradients per micro-batch, ZeRO-3 also gathers weights twice; ZeRO-1 once."""
    setup = TrainingSetup(gpus=8, batch=64, sequence=2048, overlap=0.0)
    weights, gradients, once = (
        model("Llama-3.1-8B", replace(setup, sharding=level)).step().exposed["data"]
        for level in (3, 2, 1)
    )
    assert weights > gradients > 4 * once


def test_parallelism_divides_the_work() -> None:
    setup = TrainingSetup(gpus=8, batch=8, sequence=8192)
    whole = model("Llama-3.1-8B", replace(ONE, sequence=8192, batch=1))
    for sizes in ({"tensor": 8}, {"context": 8}, {"pipeline": 8}):
        part = model("Llama-3.1-8B", replace(setup, **sizes))
        assert 8 * products(part, "forward") == pytest.approx(products(whole, "forward"), rel=0.01)
    attention = [
        sum(
            flops(k.priced.node.op) * k.count
            for k in built.kernels()
            if k.priced.node.op.kind == "attention" and k.phase == "forward"
        )
        for built in (whole, model("Llama-3.1-8B", replace(setup, context=8)))
    ]
    assert 8 * attention[1] == pytest.approx(attention[0], rel=0.01)


def test_a_window_bounds_the_keys_of_training() -> None:
    def windowed(layer: Layer) -> bool:
        return isinstance(layer.attention, GroupedQueryAttention) and layer.attention.window > 0

    def attention(sequence: int) -> float:
        built = model("gpt-oss-20b", TrainingSetup(gpus=1, batch=1, sequence=sequence))
        nodes = built.graph.layer(
            next(found for found, _ in built.architecture.layers if windowed(found))
        )
        ops = [node.op for kernel in nodes for node in kernel.forward]
        return sum(flops(op) for op in ops if op.kind == "attention")

    assert attention(16384) == pytest.approx(2 * attention(8192), rel=0.01)


def test_nodes_are_filled_in_order() -> None:
    machine = system("8x8xMI300X")
    for ranks, stride, local in ((8, 1, 8), (4, 4, 2), (64, 1, 8), (8, 8, 1), (12, 2, 4)):
        found = group(machine, ranks, stride)
        assert (found.local, found.ranks) == (local, ranks)
    assert group_seconds(machine, "all_gather", 1e9, 1) == 0


def test_nodes_without_a_network_are_an_error() -> None:
    machine = replace(system("8xMI300X"), gpus=16, nodes=2, network=None)
    with pytest.raises(MissingFact, match="on several nodes, whose network is not known"):
        group_seconds(machine, "all_reduce", 1e9, 16)
    machine = replace(machine, fabric=None)
    with pytest.raises(MissingFact, match="links between the GPUs of a node are not known"):
        group_seconds(machine, "all_reduce", 1e9, 8)


def test_experts_are_divided() -> None:
    setup = TrainingSetup(gpus=8, batch=8, sequence=2048, expert=8)
    known, device = architecture("Qwen3-30B-A3B"), load("mi300x")
    parts = training_memory(known, setup, device).parts
    assert parts["weights"] < 0.25 * 2 * known.parameters
    step = model("Qwen3-30B-A3B", setup).step()
    assert step.exposed["expert"] > 0


def test_arriving_tokens_are_sorted_by_expert() -> None:
    """Once there and once back, where a GPU has several experts of other GPUs' tokens."""

    def sorts(setup: TrainingSetup) -> int:
        kernels = model("Mixtral-8x7B", setup).kernels()
        return sum(kernel.priced.node.name.startswith("sort by") for kernel in kernels)

    eight = TrainingSetup(gpus=8, batch=8, sequence=1024)
    assert sorts(replace(eight, expert=4)) == 4  # two kernels and their gradients
    assert sorts(replace(eight, expert=8)) == sorts(eight) == 0


def test_exchanges_with_experts_hide_next_to_another_micro_batch() -> None:
    setup = TrainingSetup(gpus=8, batch=16, sequence=1024, expert=8)
    plain = model("Qwen3-30B-A3B", setup).step()
    hidden = model("Qwen3-30B-A3B", replace(setup, expert_overlap=True)).step()
    every = plain.exposed["expert"]
    assert hidden.exposed["expert"] == pytest.approx(0.25 * every)
    assert plain.seconds - hidden.seconds == pytest.approx(0.75 * every, rel=1e-6)
    with pytest.raises(UsageError, match="needs experts on several GPUs"):
        replace(setup, expert=1, expert_overlap=True)


def test_linear_attention_trains() -> None:
    step = model("Qwen3-Next-80B-A3B", ONE).step()
    assert step.phases["weight_grad"] > 0


@pytest.mark.parametrize(
    ("name", "given", "error", "message"),
    [
        ("Llama-3.1-8B", {"batch": 6, "gpus": 4}, UsageError, "batch of 6 does not divide by 4"),
        ("Llama-3.1-8B", {"gpus": 6, "tensor": 4}, UsageError, "6 GPUs do not divide by TP4"),
        ("Llama-3.1-8B", {"gpus": 8, "expert": 8, "batch": 8}, UsageError, "has no experts"),
        ("Llama-3.1-8B", {"gpus": 64, "pipeline": 64}, UsageError, "fewer than 64 stages"),
        ("Llama-3.1-8B", {"schedule": "interleaved"}, UsageError, "several chunks"),
        ("Llama-3.1-8B", {"schedule": "zero-bubble"}, UsageError, "needs several stages"),
        ("Llama-3.1-8B", {"recompute_layers": 2}, UsageError, "belongs to the recomputation full"),
        ("Llama-3.1-8B", {"gpus": 3, "tensor": 3, "sequence": 3}, UsageError, "32 heads do not"),
        ("Llama-3.1-8B", {"sequence": 1023, "gpus": 2, "context": 2}, UsageError, "1023 tokens"),
        ("DeepSeek-V3.2", {}, Unpredictable, "training of sparse latent attention is not"),
        ("DeepSeek-V4-Flash", {}, Unpredictable, "training of attention, 1/128 of keys is not"),
    ],
)
def test_sizes_that_do_not_divide(name, given, error, message) -> None:
    with pytest.raises(error, match=message):
        check(architecture(name), replace(ONE, **given))


def test_ten_thousand_gpus_are_fast_and_small() -> None:
    """One GPU of a stage represents all of them."""
    tracemalloc.start()
    start = time.process_time()
    answer = train(
        huggingface.load("Llama-3.1-405B"), system("1280x8xH100"), replace(LARGE, recompute="full")
    )
    took, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.figures is not None
    assert took < 30
    assert peak < 1 << 30
    rate = answer.figures.rate
    seconds = answer.figures.seconds
    assert rate.low / rate.value == pytest.approx(seconds.value / seconds.high)
    assert 0 < answer.figures.exposed.low <= answer.figures.exposed.value < 1
