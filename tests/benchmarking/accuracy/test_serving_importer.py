"""Serving runs of whole models as cases."""

from __future__ import annotations

import pickle

import pytest

from wavecast import arch
from wavecast.benchmarking.accuracy.importers.serving import Serving, known_model
from wavecast.errors import UnknownName
from wavecast.systems.intervals import metric_interval

pd = pytest.importorskip("pandas")

ROW = {
    "model": "DeepSeek-R1-0528-MXFP4-tp4",
    "precision": "mxfp4",
    "gpu": "MI355X",
    "n_gpus": 8.0,
    "tp": 8.0,
    "dp": 1.0,
    "ep": float("nan"),
    "framework": "ATOM-vLLM",
    "isl": 1024.0,
    "osl": 256.0,
    "batch_or_concurrency": 4.0,
    "spec_decoding": "none",
    "disagg": "false",
    "mean_ttft": 90.0,
    "mean_tpot": 10.0,
    "median_tpot": 11.0,
    "output_throughput": 400.0,
    "source_repo": "someone/somewhere",
}


def cases(**changes: object) -> list:
    return list(Serving().cases(pd.DataFrame([{**ROW, **changes}])))


def test_a_run_is_a_case_per_metric() -> None:
    found = cases()
    assert [case.op.metric for case in found] == ["ttft", "tpot", "output"]
    assert [case.seconds for case in found] == [0.09, 0.01, 1 / 400]
    op = found[0].op
    assert (op.model, op.deployment.dtype, op.deployment.engine) == (
        "DeepSeek-R1",
        "mxfp4",
        "atom-vllm",
    )
    assert op.deployment.parallel.tensor == 4  # the name says so
    assert (op.load.prompt, op.load.output, op.load.concurrency) == (1024, 256, 4)
    assert pickle.loads(pickle.dumps(op)) == op


def test_a_row_without_a_metric_names_the_reason() -> None:
    nothing = dict.fromkeys(("mean_ttft", "mean_tpot", "median_tpot", "output_throughput"))
    (case,) = cases(**nothing)
    assert case.op is None
    assert case.reason == "the row has neither a latency nor a throughput"


def test_more_than_the_gpus_can_compute_is_refused() -> None:
    """416 prompts of 15,000 tokens at once on 2 GPUs, each answered within 7.5 s."""
    impossible = {"model": "Qwen3-32B", "gpu": "B200", "tp": 2.0, "isl": 15000.0, "osl": 500.0,
                  "framework": "trtllm", "mean_ttft": 719.0, "mean_tpot": 13.7}  # fmt: skip
    found = cases(**impossible, batch_or_concurrency=416.0)
    assert all(case.op is None for case in found)
    assert {case.reason for case in found} == {"the row states 28 PFLOP/s of a b200, which has 9"}
    assert all(case.op for case in cases(**impossible, batch_or_concurrency=16.0))


def test_the_series_of_a_run_that_is_too_fast_is_counted_apart() -> None:
    """Its prompts were answered from a cache, whose share nobody states."""
    row = {**ROW, "model": "Qwen3-32B", "gpu": "B200", "tp": 2.0, "isl": 15000.0, "osl": 500.0,
           "framework": "trtllm", "mean_ttft": 719.0, "mean_tpot": 13.7}  # fmt: skip
    frame = pd.DataFrame([{**row, "batch_or_concurrency": count} for count in (416.0, 16.0)])
    found = list(Serving().cases(frame))
    assert [case.op is None for case in found] == [True] * 3 + [False] * 3
    assert [case.op.op_class for case in found if case.op] == [
        "serving cached ttft",
        "serving cached tpot",
        "serving cached output",
    ]
    assert pickle.loads(pickle.dumps(found[3].op)) == found[3].op


def test_a_throughput_that_a_table_computes_is_not_measured() -> None:
    """100 requests at once over 10 ms a token is 10,000 tokens/s, without the time of prompts."""
    row = {"disagg": "true", "precision": "mxfp4", "n_gpus": 16.0, "isl": 8192.0, "osl": 1024.0,
           "mean_ttft": 2000.0, "batch_or_concurrency": 100.0}  # fmt: skip
    derived = cases(**row, output_throughput=10000.0, output_throughput_per_gpu=1000.0, tp=8.0,
                    model="DeepSeek-R1")  # fmt: skip
    assert {case.op.metric: case.seconds for case in derived}["output"] == 1 / (8 * 1000)
    without = cases(**row, output_throughput=10000.0, tp=8.0, model="DeepSeek-R1")
    assert [case.op.metric for case in without] == ["ttft", "tpot"]
    own = cases(**row, output_throughput=8300.0, tp=8.0, model="DeepSeek-R1")
    assert {case.op.metric: case.seconds for case in own}["output"] == 1 / 8300


def test_more_weights_than_memory_are_refused_with_their_series() -> None:
    """235 GB on one H200; the row with two GPUs is of the same table, engine and model."""
    row = {
        **ROW,
        "model": "Qwen3-235B-A22B",
        "precision": "fp8",
        "gpu": "H200",
        "framework": "vllm",
    }
    table = [{**row, "tp": 1.0}, {**row, "tp": 4.0}, {**row, "tp": 4.0, "framework": "sglang"}]
    one, several, other = (
        list(Serving().cases(pd.DataFrame(table[index:])))[:3] for index in (0, 1, 2)
    )
    assert {case.reason for case in one} == {"the row states 235 GB of weights on 151 GB"}
    assert all(case.op for case in (*several, *other))
    found = list(Serving().cases(pd.DataFrame(table)))
    assert [case.op is None for case in found] == [True] * 6 + [False] * 3
    assert found[3].reason == (
        "other rows of its series state more weights than their GPUs have room for"
    )


def test_steps_of_tensorrt_llm_have_room_for_one_prompt() -> None:
    """Its script of 2025 gives the engine the requests at once and one prompt, in steps of 64."""
    row = {"model": "DeepSeek-R1", "precision": "fp8", "gpu": "H200", "framework": "trtllm",
           "osl": 1024.0, "batch_or_concurrency": 32.0}  # fmt: skip
    assert dict(cases(**row)[0].op.deployment.settings) == {"batched_tokens": 1152}
    own = cases(**row, tp=1.0, dp=8.0)[0].op.deployment
    assert own.parallel.attention_data
    assert dict(own.settings)["batched_tokens"] == 8 * 1152
    assert dict(own.settings)["wait_steps"] == 60


def test_a_case_is_predicted() -> None:
    for case in cases(model="Llama-3.1-8B", precision="fp8", tp=1.0):
        device = arch.load(case.device)
        found, engine = case.op.predict(device), case.op.deployment.engine
        interval = metric_interval(case.op.metric, found.seconds, device, engine)
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
        assert case.op.work().bytes > 0


def test_the_stored_format_of_a_checkpoint_is_no_conversion() -> None:
    assert cases(model="deepseek-ai/DeepSeek-R1", precision="fp8")[0].op.deployment.dtype == ""
    assert cases(model="Qwen3-32B", precision="fp8")[0].op.deployment.dtype == "fp8"


def test_a_median_is_compared_with_the_median() -> None:
    means, medians = cases(), cases(mean_ttft=float("nan"), median_ttft=70.0)
    assert [case.op.statistic for case in means] == ["mean"] * 3
    assert (medians[0].op.statistic, medians[0].seconds) == ("median", 0.07)
    device = arch.load("mi355x")
    row = {"model": "Llama-3.1-8B", "tp": 1.0, "batch_or_concurrency": 32.0, "osl": 1024.0}
    mean, median = cases(**row)[0].op, cases(**row, mean_ttft=float("nan"), median_ttft=70.0)[0].op
    assert median.predict(device).seconds < mean.predict(device).seconds


def test_a_median_of_first_tokens_counts_before_the_mean() -> None:
    """A mean contains the compilation of the first requests of benchmarks without warm-up."""
    found = cases(mean_ttft=570.0, median_ttft=176.0, mean_tpot=27.0, median_tpot=26.6)
    assert [(c.op.metric, c.op.statistic, c.seconds) for c in found[:2]] == [
        ("ttft", "median", 0.176),
        ("tpot", "mean", 0.027),
    ]


@pytest.mark.parametrize(
    ("isl", "osl", "total", "shortest"),
    [
        (2048.0, 1024.0, 1193.4, 0.8),
        (2048.0, 1024.0, 1200.0, 1.0),
        (8192.0, 1024.0, 3600.0, 1.0),
        (2048.0, 1024.0, float("nan"), 1.0),
        (8192.0, 1024.0, float("nan"), 0.8),
    ],
)
def test_the_ratio_of_tokens_tells_drawn_lengths(isl, osl, total, shortest) -> None:
    """Without it the lengths that benchmarks usually draw are drawn."""
    found = cases(isl=isl, osl=osl, total_throughput=total)
    assert found[0].op.load.shortest == shortest


def test_settings_of_published_scripts() -> None:
    row = {"model": "DeepSeek-R1", "gpu": "B200", "framework": "sglang", "precision": "fp8"}

    def settings(concurrency: float, **changes: object) -> dict[str, float]:
        deployment = cases(**row, **changes, batch_or_concurrency=concurrency)[0].op.deployment
        return dict(deployment.settings)

    assert settings(4.0)["poll"] == 10
    assert settings(64.0)["poll"] == 30
    llama = {**row, "model": "Llama-3.3-70B", "framework": "trtllm", "isl": 1024, "osl": 1024}
    assert dict(cases(**{**llama, "tp": 4})[0].op.deployment.settings)["wait_steps"] == 20
    assert "wait_steps" not in dict(cases(**{**llama, "tp": 8})[0].op.deployment.settings)


def test_lengths_are_drawn_where_the_benchmark_draws_them() -> None:
    assert cases(isl=1024.0, osl=1024.0)[0].op.load.shortest == 0.8
    assert cases(isl=1000.0, osl=100.0)[0].op.load.shortest == 1.0


def test_speculation_and_pools() -> None:
    (drafted, *_) = cases(spec_decoding="mtp")
    assert drafted.op.deployment.speculation.tokens == 3
    assert drafted.op.op_class == "serving speculative ttft"
    (moved, *_) = cases(disagg="true", n_gpus=16.0, model="DeepSeek-R1-0528-MXFP4")
    assert (moved.op.deployment.disaggregation.prefill, moved.op.deployment.parallel.tensor) == (
        1,
        8,
    )
    assert moved.op.op_class == "serving disaggregated ttft"


def test_published_pools() -> None:
    """Instances that decode divide attention, four at a time; one alone has its own sequences."""
    row = {"model": "deepseek-r1-0528-fp4-v2", "precision": "fp4", "gpu": "GB200", "osl": 1024.0,
           "framework": "dynamo-trt", "disagg": "true",
           "source_repo": "gminneci/mantile (InferenceMAX CI artifacts)"}  # fmt: skip
    (found, *_) = cases(**row, n_gpus=36.0, batch_or_concurrency=64.0)
    how = found.op.deployment
    assert str(how.disaggregation) == "1p4d (prefill TP4 EP4)"
    assert (str(how.parallel), how.speculation) == ("TP8 EP8", None)
    assert dict(how.settings) == {"sequences": 128, "memory_fraction": 0.9}
    assert dict(how.disaggregation.settings) == {"batched_tokens": 4608, "sequences": 4}
    (wide, *_) = cases(**row, n_gpus=36.0, batch_or_concurrency=512.0, spec_decoding="mtp")
    how = wide.op.deployment
    assert (str(how.parallel), how.speculation.tokens) == ("TP32 EP32 DP attention", 3)
    assert dict(how.settings)["sequences"] == 16 * 32
    (unknown, *_) = cases(**row, n_gpus=44.0, batch_or_concurrency=64.0)
    assert unknown.reason == "disaggregated: the row does not say which of 44 GPUs prefill"
    row |= {"disagg": "false", "framework": "trtllm"}
    (whole, *_) = cases(**row, n_gpus=36.0, tp=36.0, batch_or_concurrency=64.0)
    assert whole.reason == "the row states the GPUs of all pools as those of one instance"


def test_tokens_that_take_longer_with_fewer_requests_are_not_of_one_deployment() -> None:
    def reasons(*times: float) -> set[str]:
        rows = [
            {**ROW, "batch_or_concurrency": 4.0 * 2**at, "mean_tpot": time}
            for at, time in enumerate(times)
        ]
        return {case.reason for case in Serving().cases(pd.DataFrame(rows))}

    assert reasons(10.0, 9.0, 12.0) == {""}
    assert reasons(10.0, 42.0, 20.0) == {
        "tokens take longer with fewer requests at once: not one deployment"
    }


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("amd/DeepSeek-R1-0528-MXFP4-Preview", "DeepSeek-R1"),
        ("LLAMA 3.1 (70B)", "Llama-3.3-70B"),
        ("nvidia/Qwen3-32B-NVFP4", "Qwen3-32B"),
        ("GLM-4.7-FP8-aw-tp8", "GLM-4.5"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("zai-org/GLM-5.1-FP8-tp8", "GLM-5"),
        ("Kimi-K2-Thinking-MXFP4", "Kimi-K2"),
    ],
)
def test_names_of_runs(name: str, model: str) -> None:
    assert known_model(name) == model


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(UnknownName, match="unknown model 'DeepSeek-V9-FP8'"):
        known_model("DeepSeek-V9-FP8")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"spec_decoding": "mtp", "framework": "sglang"}, "how much is drafted"),
        ({"disagg": "true", "n_gpus": 12.0}, "which of 12 GPUs prefill"),
        (
            {"disagg": "true", "n_gpus": 16.0, "model": "DeepSeek-R1-0528", "precision": None},
            "format of the weights",
        ),
        ({"source_repo": "dstackai/benchmarks (deepseek-r1-benchmark)"}, "early 2025"),
        (
            {"gpu": "B200", "framework": "trtllm", "dp": None},
            "neither all parallelism nor the engine's limits",
        ),
        ({"model": "Someone-7B"}, "unknown model"),
        ({"gpu": "MI999"}, "unknown device"),
        ({"framework": "mystery"}, "unknown engine"),
        ({"isl": float("nan")}, "empty cell: isl"),
        ({"isl": 0.0}, "prompt is 0 tokens"),
        ({"batch_or_concurrency": float("inf")}, "unreadable cell"),
    ],
)
def test_a_row_that_is_not_predicted_has_its_reason(changes, reason) -> None:
    found = cases(**changes)
    assert found
    for case in found:
        assert case.op is None
        assert reason in case.reason
