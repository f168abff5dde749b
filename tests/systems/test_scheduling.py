"""What engines do differently: graph sizes, preemption, prefix caches, polling, pools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wavecast.errors import UnknownName, UsageError
from wavecast.systems.answer import ModelOnSystem
from wavecast.systems.disaggregation import Disaggregation, disaggregation
from wavecast.systems.engine import engine, engines
from wavecast.systems.parallel import Parallelism
from wavecast.systems.serving import Load, serve
from wavecast.systems.step import StepModel


def changed(model: StepModel, **fields: object) -> StepModel:
    """The model with other numbers of its engine."""
    builder = replace(model.builder, engine=replace(model.builder.engine, **fields))
    found = StepModel(builder, model.device)
    found.prices = model.prices
    return found


def test_a_graph_computes_the_sequences_it_was_captured_for(ready) -> None:
    atom = engine("atom")
    assert [atom.padded_sequences(count) for count in (1, 3, 9, 16, 17, 512, 600)] == [
        1, 4, 16, 16, 32, 512, 600,
    ]  # fmt: skip
    model = ready("Llama-3.1-8B", "mi355x", dtype="bf16", engine="atom").model
    exact = changed(model, sizes=tuple(range(1, 513)))
    assert model.seconds(17, 100, 0, 0, 0) > exact.seconds(17, 100, 0, 0, 0)
    assert model.seconds(32, 100, 0, 0, 0) == exact.seconds(32, 100, 0, 0, 0)


def test_every_engine_captures_growing_sizes() -> None:
    for found in engines().values():
        assert list(found.sizes) == sorted(set(found.sizes))
        assert found.captured >= 256


def test_settings_of_an_engine() -> None:
    found = engine("sglang").with_settings(
        [("batched_tokens", 32768), ("captured", 100), ("memory_fraction", 0.5)]
    )
    assert (found.batched_tokens, found.captured, found.memory_fraction) == (32768, 100, 0.5)
    assert found.padded_sequences(97) == 100
    assert engine("sglang").with_settings([("captured", 0)]).captured == 0
    with pytest.raises(UnknownName):
        found.with_settings([("colour", 1)])
    for name, value in (("sequences", 0), ("poll", 1.5), ("memory_fraction", 2)):
        with pytest.raises(UsageError, match=name):
            found.with_settings([(name, value)])


def test_a_full_cache_preempts_and_all_requests_end(ready) -> None:
    model = ready("Llama-3.3-70B", "h200", dtype="fp8")
    load = Load(4096, 2048, concurrency=40, requests=40, shortest=1)
    eager = serve(model.model, model.memory, load)
    assert eager.preemptions > 0
    assert eager.output_tokens == 40 * 2048
    careful = serve(changed(model.model, reserve=1.0), model.memory, load)
    assert careful.preemptions == 0
    assert careful.running < eager.running


def test_a_prefix_in_the_cache_is_not_computed_again(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8")
    load = Load(8192, 16, concurrency=4, requests=40)
    cold, warm = (
        serve(model.model, model.memory, replace(load, prefix=share)) for share in (0.0, 0.9)
    )
    assert warm.ttft.mean < cold.ttft.mean / 2
    assert warm.prompt_tokens == cold.prompt_tokens


def test_polling_and_batching_make_prompts_wait(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8")
    load = Load(256, 256, concurrency=8)
    at_once, polled, batched = (
        serve(changed(model.model, **fields), model.memory, load)
        for fields in ({}, {"poll": 30}, {"wait_steps": 20, "wait_share": 1.0})
    )
    step = at_once.tpot.p50
    assert 5 * step < polled.ttft.p50 - at_once.ttft.p50 < 30 * step
    assert 10 * step < batched.ttft.p50 - at_once.ttft.p50 < 30 * step


def test_tokens_between_prompts_take_longer(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8", engine="sglang")
    served = serve(model.model, model.memory, Load(2048, 256, concurrency=16))
    assert served.itl.p50 <= served.tpot.p50 < served.itl.p99
    assert served.itl.mean == pytest.approx(served.tpot.mean, rel=0.25)


def test_requests_of_one_server_process_follow_each_other(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8")
    slow = changed(model.model, admission=0.1)
    served = serve(slow, model.memory, Load(64, 8, concurrency=16, requests=16))
    assert served.ttft.p99 - served.ttft.p50 == pytest.approx(0.75, rel=0.2)


def test_pools_prefill_and_decode_apart(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8", engine="sglang")
    load = Load(4096, 128, concurrency=16, requests=48)
    together = serve(model.model, model.memory, load)
    apart = serve(model.model, model.memory, load, Disaggregation(1, 1))
    assert apart.itl.p99 < together.itl.p99  # no prompt interrupts the tokens
    assert apart.output_tokens == together.output_tokens
    slow = serve(model.model, model.memory, load, Disaggregation(1, 1, bandwidth=1e8))
    assert slow.ttft.p50 > apart.ttft.p50 + 0.5
    more = serve(model.model, model.memory, load, Disaggregation(3, 1))
    assert more.ttft.mean < apart.ttft.mean


def test_pools_of_different_instances(ready) -> None:
    """Instances that prefill have GPUs, steps and a cache of their own."""
    load = Load(2048, 64, concurrency=8, requests=24)

    def apart(tensor: int | None, tokens: int = 8192) -> ModelOnSystem:
        pools = Disaggregation(
            1,
            1,
            parallel=Parallelism(tensor=tensor) if tensor else None,
            settings=(("batched_tokens", tokens),),
        )
        return ready("Llama-3.1-8B", "8xMI300X", 2, dtype="fp8", disaggregation=pools)

    same, wider, narrow = apart(None), apart(4), apart(None, 512)
    found = [one.serve(load) for one in (same, wider, narrow)]
    assert same.prefill is not None
    assert wider.prefill is not None
    assert wider.prefill.memory.token == same.prefill.memory.token / 2
    assert found[1].prefill.seconds < found[0].prefill.seconds
    assert found[1].ttft.value < found[0].ttft.value
    assert found[2].served.steps > found[0].served.steps
    with pytest.raises(UsageError, match=r"1p1d \(prefill TP8\) takes 10 GPUs"):
        apart(8)


def test_first_tokens_wait_for_room_where_they_are_decoded(ready) -> None:
    """The cache of a request moves when the instance that decodes can take it."""
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8", settings=(("sequences", 4),))
    load = Load(256, 128, concurrency=16, requests=48)
    found = serve(model.model, model.memory, load, Disaggregation(1, 1))
    assert found.running == 4
    assert found.ttft.mean > 2 * found.tpot.mean * 100
    assert found.tpot.p99 < 1.5 * found.tpot.p50


def test_graphs_of_gpus_with_their_own_sequences(ready) -> None:
    """Each of 8 GPUs captures graphs of its sequences."""
    model = ready("DeepSeek-R1", "8xH200", 8, expert=8, attention_data=True, engine="sglang")
    assert model.engine.captured == 8 * 512
    assert model.engine.padded_sequences(1000) == 1024


def test_texts_of_pools() -> None:
    assert disaggregation("1p2d") == Disaggregation(1, 2)
    assert str(Disaggregation(3, 1)) == "3p1d"
    for text in ("1p", "0p1d", "p1d", "1p2", "9999p9999d"):
        with pytest.raises(UsageError):
            disaggregation(text)
