"""Memory, and simulated loads."""

from __future__ import annotations

from dataclasses import replace

import pytest

import wavecast
from wavecast.errors import UsageError
from wavecast.systems.serving import Load, serve
from wavecast.systems.step import StepModel


def polling(model: StepModel, poll: int) -> StepModel:
    """The model of an engine that looks for requests every `poll` steps."""
    engine = replace(model.builder.engine, poll=poll)
    return StepModel(replace(model.builder, engine=engine), model.device)


def test_weights_take_their_bytes(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="bf16")
    weights = sum(
        size
        for name, size in model.memory.parts.items()
        if name.endswith("weights") or name == "embeddings"
    )
    assert weights == pytest.approx(2 * model.architecture.parameters, rel=1e-6)


def test_a_cached_token(ready) -> None:
    assert ready("Llama-3.3-70B", "8xMI300X", 8).memory.token == 80 * 2 * 128 * 2
    assert ready("Llama-3.3-70B", "mi300x", 1, dtype="fp8").memory.token == 80 * 2 * 8 * 128 * 2
    fp8 = ready("DeepSeek-R1", "8xMI300X", 8, cache="fp8").memory
    assert fp8.token == 61 * 576  # the latent vector is on every GPU


def test_what_fits(ready) -> None:
    assert not ready("Llama-3.1-405B", "mi300x", 1, dtype="bf16").memory.fits
    assert ready("Llama-3.1-405B", "8xMI300X", 8, dtype="bf16").memory.fits
    assert not ready("DeepSeek-R1", "dgx-h100", 8).memory.fits
    assert ready("DeepSeek-R1", "8xMI300X", 8).memory.fits


def test_what_engines_take_their_share_of(ready) -> None:
    size = ready("Llama-3.1-8B", "h200").system.device.facts.integer("mem_size", "B")
    pools = {}
    for name in ("vllm", "sglang", "trtllm"):
        model = ready("Llama-3.1-8B", "h200", engine=name)
        memory, share = model.memory, model.engine.memory_fraction
        weights = sum(v for k, v in memory.parts.items() if "weights" in k or k == "embeddings")
        every = sum(memory.parts.values())
        pools[name] = memory.pool
        expected = {
            "vllm": share * size - every,
            "sglang": share * size - model.engine.memory_reserve - weights,
            "trtllm": share * (size - every),
        }
        assert memory.pool == pytest.approx(expected[name])
        assert memory.pool + every <= size
    # A published script runs the model on four GPUs with 95 % for weights and cache.
    tight = {"engine": "sglang", "settings": (("memory_fraction", 0.95),)}
    assert ready("DeepSeek-R1", "4xB200", 4, **tight).memory.fits
    assert not ready("DeepSeek-R1", "4xH200", 4, **tight).memory.fits
    # So does one on four GPUs of GB200: 189,471 MiB each, not the 186 GB of the data sheet.
    assert ready("DeepSeek-R1", "4xGB200", 4, **tight).memory.fits


@pytest.mark.parametrize("engine", ["vllm", "atom"])
def test_a_closed_loop(ready, engine) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8", engine=engine)
    served = serve(model.model, model.memory, Load(512, 256, concurrency=16))
    assert served.requests == 160
    assert served.running == 16
    assert served.output_tokens <= 160 * 256
    # Little's law: requests in the system = their rate times their time in it.
    within = served.requests / served.seconds * (served.end_to_end.mean - model.engine.request)
    assert within == pytest.approx(16, rel=0.12)
    assert served.ttft.p50 <= served.ttft.p90 <= served.ttft.p99
    assert 0 < served.prefill_share < 1


def test_more_at_once_is_more_throughput_and_longer_tokens(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8")
    found = [serve(model.model, model.memory, Load(512, 128, concurrency=n)) for n in (1, 8, 64)]
    assert found[0].output_rate < found[1].output_rate < found[2].output_rate
    assert found[0].tpot.mean < found[1].tpot.mean < found[2].tpot.mean


def test_an_open_loop_waits_for_requests(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8")
    slow = serve(model.model, model.memory, Load(256, 64, rate=0.5, requests=40))
    assert slow.seconds == pytest.approx(80, rel=0.4)
    fast = serve(model.model, model.memory, Load(256, 64, rate=1000, requests=40))
    assert fast.running > slow.running
    assert fast.ttft.mean > slow.ttft.mean


def test_times_between_tokens_are_those_of_every_step(ready) -> None:
    """A run with more steps than the first array of times has rows."""
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8")
    load = Load(16, 3001, concurrency=1, requests=2, shortest=1)
    served = serve(polling(model.model, 2), model.memory, load)
    assert served.steps == 2 * 3001
    assert served.itl.mean == pytest.approx(served.tpot.mean, rel=1e-9)


def test_runs_are_deterministic(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8")
    load = Load(300, 50, concurrency=4, seed=3)
    assert serve(model.model, model.memory, load) == serve(model.model, model.memory, load)


def test_the_cache_bounds_what_runs_at_once(ready) -> None:
    model = ready("Llama-3.3-70B", "h200", dtype="fp8")
    most = model.memory.sequences(8192)
    served = serve(
        model.model, model.memory, Load(8192, 512, concurrency=64, shortest=1, requests=70)
    )
    assert model.memory.sequences(8192 + 512) <= served.running <= most < 64


def test_a_request_that_does_not_fit_is_named(ready) -> None:
    model = ready("Llama-3.3-70B", "h200", dtype="fp8")
    with pytest.raises(UsageError, match=r"of 2,000,001 tokens does not fit: the cache holds \d"):
        serve(model.model, model.memory, Load(2_000_000, 1, concurrency=1, shortest=1))


@pytest.mark.parametrize(
    "given",
    [
        {"prompt": 0, "output": 1, "concurrency": 1},
        {"prompt": 1, "output": 1 << 30, "concurrency": 1},
        {"prompt": 1, "output": 1},
        {"prompt": 1, "output": 1, "concurrency": 1, "rate": 1.0},
        {"prompt": 1, "output": 1, "concurrency": 1, "shortest": 0.0},
    ],
)
def test_an_absurd_load_is_refused(given) -> None:
    with pytest.raises(UsageError):
        Load(**given)


def test_a_pipeline_serves_its_groups_at_once(ready) -> None:
    """Two stages have half of the weights each; half of the sequences run on each of them."""
    alone = ready("Llama-3.1-8B", "8xMI300X", 1, dtype="fp8")
    staged = ready("Llama-3.1-8B", "8xMI300X", 1, dtype="fp8", pipeline=2)
    weights = [one.memory.parts["dense weights"] for one in (alone, staged)]
    assert weights[1] == weights[0] / 2
    assert staged.memory.token == alone.memory.token / 2
    few, many = (Load(512, 128, concurrency=count) for count in (1, 64))
    # One sequence passes both stages one after the other, many keep both busy.
    assert staged.serve(few).tpot.value == pytest.approx(alone.serve(few).tpot.value, rel=0.02)
    assert staged.serve(few).tpot.value > alone.serve(few).tpot.value
    half = alone.serve(replace(many, concurrency=32, requests=320))
    assert staged.serve(many).output_rate.value == pytest.approx(
        2 * half.output_rate.value, rel=0.05
    )
    sent = [kernel for kernel in staged.serve(few).kernels if kernel.priced.node.name == "send"]
    assert len(sent) == 1


def test_what_a_configuration_does_not_promise_is_said() -> None:
    system = "8xMI300X"
    report = wavecast.model(
        "Llama-3.1-8B", system, prompt=200_000, output=8, concurrency=1, requests=1,
        expert_skew=0.5, tp=8, engine="vllm@0.11",
    )  # fmt: skip
    notes = " ".join(report.answers[0].notes)
    assert "longer than the 131,072 of max_position_embeddings" in notes
    assert "the load of experts has no effect" in notes
    how = {"output": 8, "concurrency": 1, "requests": 1, "engine": "vllm@0.11"}
    quiet = wavecast.model("Llama-3.1-8B", system, tp=8, **how)
    assert not quiet.answers[0].notes
    part = wavecast.model("Llama-3.1-8B", f"{system}-CPX", **how)
    assert "no run on partitions was measured" in part.answers[0].notes[0]
