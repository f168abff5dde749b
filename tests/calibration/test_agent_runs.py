"""Runs of coding agents and of aiconfigurator's generator as cases: their loads and engines."""

from __future__ import annotations

import pytest

from wavecast import arch
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers.agent_runs import cases
from wavecast.benchmarking.accuracy.importers.generated import generated_load, generated_settings
from wavecast.benchmarking.accuracy.importers.serving import Serving
from wavecast.systems import huggingface
from wavecast.systems.op import ServedModel

pd = pytest.importorskip("pandas")

RUN = {"source_repo": "a/b", "source_path": "c", "run_id": "d", "phase": "serve",
       "model": "MiniMaxAI/MiniMax-M2.5", "gpu": "MI355X", "tp": 2.0, "precision": "fp8",
       "framework": "vllm", "software": "vllm/vllm-openai-rocm:v0.22.0",
       "notes": "image; offloading=none"}  # fmt: skip
METRICS = {"mean_ttft": 800.0, "mean_tpot": 40.0, "mean_e2el": 35000.0, "mean_qps": 0.31,
           "mean_input_tokens": 83000.4, "mean_output_tokens_actual": 797.9,
           "server_gpu_cache_hit_rate": 0.95}  # fmt: skip


def agent_cases(without: str = "", **changes: object) -> list[Case]:
    metrics = {name: value for name, value in METRICS.items() if name != without}
    rows = [
        {**RUN, **changes, "metric": name, "value": value, "unit": ""}
        for name, value in metrics.items()
    ]
    return list(cases(pd.DataFrame(rows)))


def test_a_run_of_agents_has_its_requests_in_flight_and_its_cached_share() -> None:
    ttft, tpot, requests = agent_cases()
    assert isinstance(ttft.op, ServedModel)
    assert isinstance(tpot.op, ServedModel)
    load = ttft.op.load
    assert (load.prompt, load.output, load.prefix) == (83000, 798, 0.95)
    assert load.concurrency == 11  # 0.31 requests/s for 35 s
    assert ttft.op.deployment.engine == "vllm@0.21"  # the newest profile before 0.22
    assert ttft.op.deployment.parallel.tensor == 2
    assert (ttft.op.op_class, tpot.op.op_class) == ("serving cached ttft", "serving cached tpot")
    assert (ttft.seconds, tpot.seconds) == (0.8, 0.04)
    assert isinstance(requests.op, ServedModel)
    assert (requests.op.op_class, requests.seconds) == ("serving cached requests", 1 / 0.31)


def test_rates_of_a_run_are_times_of_all_gpus() -> None:
    """300 tokens/s of each of two GPUs; a request has as many tokens as the run states."""
    rates = {"output_throughput_per_gpu": 300.0, "mean_qps": 0.31}
    rows = [
        {**RUN, "n_gpus": 2.0, "metric": name, "value": value, "unit": ""}
        for name, value in (METRICS | rates).items()
    ]
    found = {case.op.metric: case for case in cases(pd.DataFrame(rows))}
    assert found["output"].seconds == pytest.approx(1 / 600)
    device = arch.load("mi355x")
    output, requests = (found[name].op for name in ("output", "requests"))
    assert requests.predict(device).seconds == pytest.approx(798 * output.predict(device).seconds)
    prompt = 2 * 83000 * 0.05 * huggingface.load(output.model).architecture.active_matrices / 2
    assert requests.work().flops["bf16"] == pytest.approx(
        798 * output.work().flops["bf16"] + prompt
    )


@pytest.mark.parametrize(
    ("without", "changes", "reason"),
    [
        ("server_gpu_cache_hit_rate", {}, "share of prompts"),
        ("", {"notes": "offloading=lmcache"}, "behind"),
        ("", {"notes": "offloading=none; flagged faulty by its authors"}, "faulty"),
        ("", {"software": "image"}, "version"),
        ("", {"framework": None}, "name its engine"),
        ("", {"gpu": "L40S"}, "L40S"),
        ("mean_qps", {}, "mean_qps"),
    ],
)
def test_other_runs_are_not_cases(without: str, changes: dict, reason: str) -> None:
    found = agent_cases(without, **changes)
    assert all(case.op is None for case in found)
    assert all(reason in case.reason for case in found), found[0].reason


def test_rows_of_other_benchmarks_are_no_agents() -> None:
    assert not agent_cases("mean_input_tokens", phase="train")
    frame = pd.DataFrame([{**RUN, "metric": "mean_ttft", "value": 1.0, "unit": "ms"}])
    assert not list(cases(frame))


GENERATED = {
    "source_repo": "ai-dynamo/aiconfigurator",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "gpu": "H200",
    "precision": "fp8",
    "tp": 1.0,
    "n_gpus": 1.0,
    "isl": 4000.0,
    "osl": 1000.0,
    "batch_or_concurrency": 128.0,
    "mean_ttft": 115.0,
    "mean_tpot": 22.0,
}


def generated(**changes: object) -> ServedModel:
    frame = pd.DataFrame([{**GENERATED, **changes}])
    (op, *_) = (case.op for case in Serving().cases(frame))
    assert isinstance(op, ServedModel)
    return op


def test_generated_engines_have_room_for_exactly_their_load() -> None:
    """One prompt and 1,500 tokens, in vLLM also the decoding sequences; SGLang mixes them."""
    assert generated_settings(4000, 128, "vllm") == (
        (("batched_tokens", 5628), ("sequences", 128)), ()
    )  # fmt: skip
    settings, fields = generated_settings(4000, 128, "sglang")
    assert dict(settings) == {"batched_tokens": 5500, "sequences": 128}
    assert dict(fields) == {"mixed": True}
    assert (
        generated(framework="vllm").deployment.settings == generated_settings(4000, 128, "vllm")[0]
    )
    assert generated(framework="sglang").deployment.engine_fields == (("mixed", True),)
    plain = generated(framework="sglang", isl=1024.0, osl=1024.0)
    assert ("sequences", 128) not in plain.deployment.settings


@pytest.mark.parametrize(
    ("concurrency", "engine", "share"),
    [
        (128, "vllm", 0.99),  # the warm-up has sent all 100 prompts
        (32, "vllm", 1 - 36 / 640),  # 64 of 100 in the warm-up
        (1, "vllm", 0.0),  # 20 requests, all of other prompts
        (128, "sglang", 0.0),
    ],
)
def test_prompts_repeat(concurrency: int, engine: str, share: float) -> None:
    load = generated_load((4000, 1000), concurrency, engine)
    assert load.prefix == pytest.approx(share)
    assert load.count == 20 * concurrency
    assert load.shortest == 1.0
