"""Kernels of a step: what they compute, and their time from the grid."""

from __future__ import annotations

from itertools import pairwise

import pytest

from wavecast.errors import UsageError
from wavecast.systems.graph import Step
from wavecast.systems.parallel import Parallelism, check


def flops(model, step: Step) -> float:
    """Useful FLOPs of the matrix products outside of attention, of all GPUs."""
    kinds = ("gemm", "moe")
    return model.parallel.tensor * sum(
        sum((kernel.priced.node.op.work().flops or {}).values()) * kernel.count
        for kernel in model.model.kernels(step)
        if kernel.priced.node.op.kind in kinds and not kernel.priced.node.name.startswith("index")
    )


@pytest.mark.parametrize(
    "name",
    ["Llama-3.3-70B", "Qwen3-235B-A22B", "DeepSeek-R1", "gpt-oss-120b", "Qwen3-Next-80B-A3B"],
)
def test_flops_are_two_per_active_parameter_and_token(ready, name) -> None:
    """The embedding is looked up, not multiplied."""
    model = ready(name, "mi355x")
    rows = 64
    known = model.architecture
    expected = 2.0 * rows * (known.active_parameters - known.vocabulary * known.hidden)
    assert flops(model, Step(decode=rows, context=1)) == pytest.approx(expected, rel=0.02)


def test_tensor_parallelism_divides_all_but_small_projections(ready) -> None:
    whole, part = (ready("Llama-3.3-70B", f"{n}xMI355X", n) for n in (1, 8))
    step = Step(decode=64, context=1)
    assert flops(part, step) == pytest.approx(flops(whole, step), rel=1e-6)


@pytest.mark.parametrize("name", ["Llama-3.3-70B", "DeepSeek-R1", "Qwen3-Next-80B-A3B"])
def test_the_grid_gives_the_time_of_exact_steps(ready, name) -> None:
    model = ready(name, "8xMI355X", 8 if "Next" not in name else 2).model
    for decode, context in ((3, 700), (24, 1536), (100, 5000)):
        exact = model.time(Step(decode=decode, context=context)).seconds
        assert model.seconds(decode, context, 0, 0, 0) == pytest.approx(exact, rel=0.12)
    exact = model.time(Step(chunks=1, tokens=3000)).seconds
    assert model.seconds(0, 0, 1, 3000, 0) == pytest.approx(exact, rel=0.12)


def test_more_work_takes_longer(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x").model
    times = [model.time(Step(decode=n, context=c)) for n, c in ((1, 100), (64, 100), (64, 8000))]
    assert times[0].device < times[1].device < times[2].device
    for time in times:
        assert 0.3 < time.low / time.device < 0.99
        assert 1.05 < time.high / time.device < 1.5
        assert sum(time.modules.values()) == pytest.approx(time.device)


def test_a_window_bounds_the_keys(ready) -> None:
    model = ready("gpt-oss-20b", "mi300x", dtype="bf16")
    keys = {
        kernel.priced.node.op.seq_k
        for kernel in model.model.kernels(Step(decode=4, context=5000))
        if kernel.priced.node.name == "decode attention"
    }
    assert keys == {128, 5000}


def test_experts_spread_over_gpus_take_whole_experts(ready) -> None:
    def experts(model):
        (found,) = {
            kernel.priced.node.op
            for kernel in model.model.kernels(Step(decode=64, context=1))
            if kernel.priced.node.name == "experts"
        }
        return found

    divided = experts(ready("Qwen3-235B-A22B", "8xMI355X", 8))
    spread = experts(ready("Qwen3-235B-A22B", "8xMI355X", 8, expert=8))
    assert (divided.experts, divided.inter, divided.topk) == (128, 192, 8)
    assert (spread.experts, spread.inter, spread.topk, spread.tokens) == (16, 1536, 1, 64)


def test_kernels_without_a_tuned_configuration_run_with_their_only_tile(ready) -> None:
    """AITER of November 2025 has tables for MI355X and none for the experts of MI300X."""
    step = Step(decode=4, context=1500)
    found = {}
    for machine in ("8xMI300X", "8xMI355X"):
        model = ready("DeepSeek-R1", machine, 8, engine="sglang@0.5.5").model
        found[machine] = {k.priced.node.name: k.priced for k in model.kernels(step)}
    untuned, tuned = found["8xMI300X"], found["8xMI355X"]
    op = untuned["experts"].node.op
    assert (op.part, op.block_m, op.tile_n) == ("one-kernel", 32, 256)
    assert tuned["experts"].node.op.part == "layer"
    assert untuned["experts"].seconds > 2 * tuned["experts"].seconds
    assert untuned["qkv_a_proj"].node.op.tile == (16, 128, 256)
    assert untuned["o_proj"].node.op.tile is None  # its shape is in the table
    assert "rope" in untuned
    assert "rope, cache write" in tuned


def test_engines_launch_what_they_do_not_fuse(ready) -> None:
    step = Step(decode=4, context=1500)

    def names(engine: str, dtype: str = "") -> list[str]:
        model = ready("DeepSeek-R1", "8xMI300X", 8, engine=engine, dtype=dtype).model
        return [kernel.priced.node.name for kernel in model.kernels(step)]

    separate, fused = names("sglang"), names("atom")
    assert separate.count("quantise") > fused.count("quantise") == fused.count("o_proj")
    after = (following for name, following in pairwise(fused) if name == "quantise")
    assert set(after) == {"o_proj"}  # what attention writes is not quantised with it
    assert "quantise" not in names("trtllm")
    for kernels in (separate, fused):
        assert {"sort tokens", "quantise tokens"} <= set(kernels)
    assert "quantise tokens" not in names("atom", "mxfp4")  # the kernel that sorts does it
    assert "scale for absorb keys" in separate
    assert "scale for absorb keys" not in fused


def test_attention_with_own_sequences_has_no_all_reduce(ready) -> None:
    model = ready("DeepSeek-R1", "8xMI355X", 8, attention_data=True)
    names = [k.priced.node.name for k in model.model.kernels(Step(decode=64, context=1000))]
    assert "all_reduce" not in names
    assert {"gather tokens", "scatter tokens"} <= set(names)


def test_a_format_that_the_device_does_not_multiply_is_widened(ready) -> None:
    for machine, activations in (("mi355x", "mxfp4"), ("mi300x", "bf16")):
        model = ready("Llama-3.1-8B", machine, dtype="mxfp4")
        assert model.precision.dense.weights == "mxfp4"
        assert model.precision.dense.activations == activations
        assert bool(model.notes) == (activations == "bf16")
        assert model.model.time(Step(decode=4, context=100)).seconds > 0


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("Llama-3.3-70B", {"tensor": 7}, "64 heads of attention do not divide among 7 GPUs"),
        ("Llama-3.3-70B", {"tensor": 8, "expert": 8}, "no experts for 8 GPUs"),
        ("Llama-3.3-70B", {"pipeline": 81}, "80 layers, fewer than 81 stages"),
        (
            "Qwen3-235B-A22B",
            {"tensor": 4, "expert": 3},
            "3 GPUs divide the experts, which are neither",
        ),
    ],
)
def test_what_does_not_divide_is_refused(name, given, message) -> None:
    from wavecast.systems import huggingface

    label, values, *_ = huggingface.load(name)
    with pytest.raises(UsageError, match=message):
        check(huggingface.read(values, label), Parallelism(**given))


def test_heads_that_do_not_divide_name_a_number_that_does() -> None:
    from wavecast.systems import huggingface

    label, values, *_ = huggingface.load("Llama-3.1-8B")
    with pytest.raises(UsageError) as caught:
        check(huggingface.read(values, label), Parallelism(tensor=72))
    assert caught.value.hint == "--tp 32 divides them"


def test_graphs_of_prompts_leave_the_launches_of_attention(ready) -> None:
    """vLLM captures the pieces between the operators of attention up to 512 tokens."""
    model = ready("Llama-3.1-8B", "h200", engine="vllm@0.11").model
    launch = model.builder.engine.launch
    base = model.builder.engine.host_step + model.builder.engine.host_sequence
    short, long = Step(chunks=1, tokens=512), Step(chunks=1, tokens=513)
    count = sum(kernel.count for kernel in model.kernels(short))
    attention = sum(
        kernel.count for kernel in model.kernels(short) if kernel.priced.node.module == "attention"
    )
    assert model.time(short).host == pytest.approx(base + launch * attention)
    assert model.time(long).host == pytest.approx(base + launch * count)
    assert (
        model.time(Step(decode=513, context=8)).host > model.time(Step(decode=512, context=8)).host
    )
    for step in (short, Step(chunks=2, tokens=256)):
        grid = model.seconds(0, 0.0, step.chunks, step.tokens, 0.0)
        assert grid == pytest.approx(model.time(step).seconds, rel=1e-6)
