"""Speculative decoding: accepted tokens, and the cost of drafting and verifying."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wavecast.errors import UnknownName, UsageError
from wavecast.systems.graph import Step
from wavecast.systems.serving import Load, serve
from wavecast.systems.speculation import Speculation, speculation
from wavecast.systems.step import StepModel


@pytest.mark.parametrize(("acceptance", "length"), [(0.0, 1.0), (0.5, 1.875), (1.0, 4.0)])
def test_accepted_tokens_are_those_before_the_first_disagreement(ready, acceptance, length) -> None:
    assert Speculation("mtp", 3, acceptance).length == length
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8")
    load = Load(16, 4001, concurrency=1, requests=3, shortest=1)
    served = serve(with_draft(model.model, "ngram:3", acceptance), model.memory, load)
    # Three steps are prefills, each with a token.
    assert 3 * 4000 / (served.steps - 3) == pytest.approx(length, rel=0.02)


def test_accepted_tokens_depend_on_the_request_and_its_position_only(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8")
    drafted = with_draft(model.model, "ngram:3", 0.7)
    load = Load(16, 500, concurrency=1, requests=8, shortest=1)
    steps = serve(drafted, model.memory, load).steps
    slower = replace(drafted.builder, engine=replace(drafted.builder.engine, host_step=0.01))
    changed = StepModel(slower, drafted.device, speculation=drafted.speculation)
    changed.prices = drafted.prices
    assert serve(changed, model.memory, load).steps == steps


def test_requests_differ() -> None:
    drawn = Speculation("mtp", 3, 0.8, 0.06).sample(np.random.default_rng(0), 20000)
    assert drawn.mean() == pytest.approx(0.8, abs=0.005)
    assert drawn.std() == pytest.approx(0.06, rel=0.05)


def test_texts() -> None:
    assert speculation("mtp:3", 0.7) == Speculation("mtp", 3, 0.7, 0.0)
    assert speculation("eagle:5", workload="general").acceptance == 0.81
    for text in ("mtp:0", "mtp:99", "mtp:x", ":3"):
        with pytest.raises(UsageError):
            speculation(text)
    with pytest.raises(UnknownName, match="medusa"):
        speculation("medusa:3")
    with pytest.raises(UsageError, match="acceptance"):
        speculation("mtp:3", 1.5)


def with_draft(model, text: str, acceptance: float) -> StepModel:
    found = StepModel(model.builder, model.device, speculation=speculation(text, acceptance))
    found.prices = model.prices
    return found


def test_a_verifying_step_computes_every_drafted_token(ready) -> None:
    model = ready("Llama-3.1-8B", "mi300x", dtype="fp8").model
    plain, checked = (Step(decode=8, context=1000, queries=count) for count in (1, 4))

    def flops(step: Step, name: str) -> float:
        return sum(
            sum((kernel.priced.node.op.work().flops or {}).values()) * kernel.count
            for kernel in model.kernels(step)
            if kernel.priced.node.name == name
        )

    for name in ("qkv_proj", "decode attention", "lm_head"):
        assert flops(checked, name) == pytest.approx(4 * flops(plain, name), rel=0.01)


def test_a_draft_costs_time_and_saves_steps(ready) -> None:
    ready_model = ready("Llama-3.1-8B", "mi300x", dtype="fp8")
    model, memory = ready_model.model, ready_model.memory
    load = Load(256, 128, concurrency=4, requests=16)
    plain = serve(model, memory, load)
    never, always = (serve(with_draft(model, "mtp:3", a), memory, load) for a in (0.0, 1.0))
    assert never.tpot.mean > plain.tpot.mean > always.tpot.mean
    assert always.steps < plain.steps / 2
    assert always.output_tokens == plain.output_tokens
    free = serve(with_draft(model, "ngram:3", 1.0), memory, load)
    assert free.tpot.mean < always.tpot.mean


def test_a_mixed_layer_is_drafted_by_the_last_one(ready) -> None:
    model = ready("DeepSeek-R1", "8xMI355X", 8).model
    for method in ("mtp", "eagle"):
        drafted = with_draft(model, f"{method}:2", 0.8)
        assert drafted.draft is not None
        assert drafted.draft.builder.architecture.depth == 1
        assert drafted.draft.builder.architecture.sparse == (method == "mtp")


def test_a_draft_takes_memory(ready) -> None:
    plain = ready("DeepSeek-R1", "8xMI355X", 8).memory
    drafted = ready("DeepSeek-R1", "8xMI355X", 8, speculation=speculation("mtp:3")).memory
    assert drafted.parts["draft"] > 1 << 30
    assert drafted.token == pytest.approx(plain.token * 62 / 61)
