"""Kernels of served models as layers of vLLM, and the operators that serve them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import wavecast
from tests.documents.support import validated
from tests.frameworks.served import served_calls
from wavecast.cli.main import run
from wavecast.errors import UnknownName, UsageError
from wavecast.kernels import registry
from wavecast.pipeline.library.library import KernelFacts, Surveyed
from wavecast.pipeline.models import engine_kernels as engine
from wavecast.pipeline.models.engine_layers import LAYERS, Uncovered, layer_of, library_calls
from wavecast.report.kit.terminal import plain
from wavecast.report.systems import engine as report
from wavecast.systems import huggingface

pytestmark = pytest.mark.torch

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1024,
}


_LINEAR = ("Linear", "QuantFP8")
SERVED_BY = {
    "QKVParallelLinear": _LINEAR,
    "ColumnParallelLinear": _LINEAR,
    "MergedColumnParallelLinear": _LINEAR,
    "RowParallelLinear": _LINEAR,
    "ReplicatedLinear": _LINEAR,
    "Attention": ("Attention", "MLAAttention"),
}
"""Names under which the plugin counts calls, by the class of vLLM's layer."""
OTHER = {
    ("VocabParallelEmbedding", "embedding"),  # no kernel of `systems.graph`
    ("GemmaRMSNorm", "rms_norm"),  # as RMSNorm
    ("GemmaRMSNorm", "rms_norm_residual"),
    ("GeluAndMul", "gelu_mul"),  # of no known model
    ("QuantFP8", "quantise_fp8_tensor"),  # scales are per token unless a checkpoint says else
    ("FusedMoE", "dequantise_mx"),  # as weights are loaded
    ("SparseAttnIndexer", "index_scores"),  # rows of sparse attention have no operators
    ("SparseAttnIndexer", "quantise_fp8_group"),
    ("Sampler", "top_k_top_p_mask"),  # where filtered logits are reported
}
"""What the plugin calls and no row has."""

GPUS = {"GPT-2-XL": 1, "Qwen2.5-7B": 4}
"""GPUs that divide the heads of models which 8 do not."""


@pytest.fixture
def config(tmp_path: Path) -> str:
    """The path of a small model's configuration."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    return str(path)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any], str]]:
    """Nothing is compiled: every operator takes 1 µs, and `rope` does not compile. The calls."""
    asked: list[tuple[str, dict[str, Any], str]] = []

    def survey(calls: Any, *, jobs: int = 1) -> Any:
        assert jobs == 1
        for name, sizes, device in calls:
            asked.append((name, dict(sizes), device))
            failure = "too large" if name == "rope" else ""
            facts = KernelFacts(f"_{name}", "", "", 64, 0, 0, 8, 1e-6, 1e-6, 1e-6, "memory")
            yield Surveyed(name, sizes, device, () if failure else (facts,), failure=failure)

    monkeypatch.setattr(engine, "survey", survey)
    return asked


@pytest.mark.parametrize("name", sorted(huggingface.models()))
def test_every_kernel_of_every_model_has_a_layer(name: str) -> None:
    """And the operators exist and take the sizes: their work is a formula of them."""
    operators = set()
    for dtype in ("bf16", "fp8", "int8", "int4", ""):
        model = engine.EngineModel.of(
            name, "mi300x", engine.vllm_deployment(GPUS.get(name, 8), dtype)
        )
        for _, step in engine.steps(100, 8, 100):
            for kernel, _ in model.kernels(step):
                assert kernel.node.name.removeprefix("shared ") in LAYERS, kernel.node.name
                calls = library_calls(kernel)
                if isinstance(calls, Uncovered):
                    continue
                operators |= {operator for operator, _ in calls}
                for operator, sizes in calls:
                    assert registry.operator(operator).work(**sizes).flops
    assert operators >= {"top_k_top_p_sample"}


def test_what_is_served_and_why_the_rest_is_not(config: str, compiled: list[Any]) -> None:
    """Counts of layers, sums of times, refusals of the compiler."""
    found = engine.engine_report(
        config, "gfx942", engine.vllm_deployment(1), engine.steps(64, 4, 64)
    )
    prefill, decode = found.steps
    by_name = {one.name: one for one in decode.kernels}
    assert by_name["qkv_proj"].count == 3
    assert by_name["qkv_proj"].operators == ("matmul",)
    assert by_name["qkv_proj"].kernels == ("_matmul",)
    assert by_name["rope"].why_not == "rope: too large"
    default = sum(one.default.seconds * one.count for one in decode.kernels)
    assert decode.before == pytest.approx(default)
    rope = by_name["rope"].default.seconds * 3
    assert decode.after == pytest.approx(rope + 1e-6 * (3 * 9 + 3))
    assert decode.covered == pytest.approx(1 - rope / default)
    assert ("matmul", {"m": 4, "n": 512, "k": 256, "dtype": "bfloat16"}, "mi300x") in compiled
    attention = dict(one[:2] for one in compiled if one[0] == "paged_attention" and one[1]["new"])
    assert attention["paged_attention"]["prefills"] == 1
    assert prefill.step.tokens == attention["paged_attention"]["new"] == 64


def test_formats_choose_operators(config: str, compiled: list[Any]) -> None:
    """fp8 weights are multiplied in the GPU's fp8, of caches too; mxfp4 ones remain vLLM's."""
    engine.engine_report(
        config, "gfx942", engine.vllm_deployment(1, "fp8", "fp8"), engine.steps(8, 4, 8)
    )
    sizes = {name: given for name, given, _ in compiled}
    assert sizes["scaled_matmul"]["dtype"] == "float8_e4m3fnuz"
    assert sizes["quantise_fp8_token"]["to"] == "float8_e4m3fnuz"
    assert sizes["kv_cache_write"]["cache"] == "float8_e4m3fnuz"
    asked = engine.vllm_deployment(1, "mxfp4")
    left = engine.engine_report(config, "mi355x", asked, engine.steps(8, 4, 8)).steps[1]
    whys = {one.name: one.why_not for one in left.kernels}
    why = "the plugin has no linear layer of mxfp4 weights and mxfp4 activations"
    assert whys["o_proj"] == whys["down_proj"] == why
    assert whys["lm_head"] == ""


def test_experts_of_several_kernels_are_one_operator(compiled: list[Any]) -> None:
    """The kernels before the products are part of the operator, or remain with the products."""
    steps = engine.steps(8, 4, 8)
    for model, dtype, operators, why in (
        ("Qwen3-30B-A3B", "bf16", ("moe_experts",), ""),
        ("Qwen3-30B-A3B", "int8", ("moe_experts_int8",), ""),
        ("Qwen3-30B-A3B", "int4", ("moe_experts_w4a16",), ""),
        ("gpt-oss-20b", "", (), "the plugin has no experts of mxfp4 weights"),
    ):
        found = engine.engine_report(model, "mi300x", engine.vllm_deployment(1, dtype), steps)
        by_name = {one.name: one for one in found.steps[1].kernels}
        assert by_name["experts"].operators == operators
        assert by_name["experts"].why_not == why
        assert by_name["sort tokens"].why_not == why
        before = by_name["sort tokens"].default.seconds
        assert by_name["sort tokens"].after == (before if why else 0.0)


def test_rows_agree_with_the_plugin() -> None:
    """Operators of a row are those that the plugin's modules call for its layer, and every operator
    that they call is one of a row, but for those in `OTHER`."""
    declared = served_calls("vllm")
    named = set()
    for name in huggingface.models():
        for dtype in ("bf16", "fp8", "int8", "int4", ""):
            model = engine.EngineModel.of(
                name, "mi300x", engine.vllm_deployment(GPUS.get(name, 8), dtype)
            )
            for _, step in engine.steps(100, 8, 100):
                for kernel, _ in model.kernels(step):
                    layers = layer_of(kernel.node.name).name.split(", ")
                    also = {other for layer in layers for other in SERVED_BY.get(layer, (layer,))}
                    calls = library_calls(kernel)
                    if isinstance(calls, Uncovered):
                        continue
                    for operator, _ in calls:
                        found = {(layer, operator) for layer in also} & declared
                        assert found, (kernel.node.name, layers, operator)
                        named |= found
    assert declared - named == OTHER


def test_formats_of_the_report(
    config: str,
    compiled: list[Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Text, JSON with its schema, and Markdown have the same kernels."""
    monkeypatch.delenv("COLUMNS", raising=False)
    shown = {}
    for form in ("text", "json", "markdown"):
        arguments = ["vllm-report", config, "--in", "64", "--concurrency", "4", "-f", form]
        with pytest.raises(SystemExit) as ended:
            run(arguments)
        assert ended.value.code == 0
        shown[form] = capsys.readouterr().out
    document = validated(json.loads(shown["json"]), "wavecast.engine/1")
    report = wavecast.vllm_report(config, prompt=64, concurrency=4)
    assert document == report.to_dict()
    assert shown == {
        "text": str(report),
        "json": report.json() + "\n",
        "markdown": report.markdown(),
    }
    assert [step["phase"] for step in document["steps"]] == ["prefill", "decode"]
    kernels = document["steps"][1]["kernels"]
    assert [one["why_not"] for one in kernels if one["name"].startswith("rope")]
    for one in kernels:
        line = next(line for line in shown["text"].splitlines() if one["name"] in line)
        assert one["layer"] in line
        assert f"| {one['name']} | {one['layer']} |" in shown["markdown"]
    narrow = plain(lambda console: report.render(console), 80)
    assert "…" not in narrow
    assert max(map(len, narrow.splitlines())) <= 80
    assert {one["layer"] for one in kernels} <= {*narrow.split()}
    assert "rope: rope: too large" in shown["text"]
    assert "- rope: rope: too large" in shown["markdown"]


def test_markdown_of_a_bound(config: str, compiled: list[Any]) -> None:
    """Notes are a list at the end."""
    found = engine.engine_report(config, "gfx942", engine.vllm_deployment(1), engine.steps(8, 4, 8))
    assert report.markdown(replace(found, notes=("a | note",))).endswith("- a | note\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(("no-model", "gfx942"), UnknownName), (("Llama-3.1-8B", "gfx000"), UnknownName)],
)
def test_unknown_names(arguments: tuple[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        engine.engine_report(*arguments, engine.vllm_deployment(1), engine.steps(8, 4, 8))


def test_other_engines_are_refused() -> None:
    other = replace(engine.vllm_deployment(1), engine="sglang")
    with pytest.raises(UsageError, match="sglang: only layers of vllm are known"):
        engine.engine_report("Llama-3.1-8B", "gfx942", other, engine.steps(8, 4, 8))


@pytest.mark.thorough
def test_compiled_for_the_gpu(config: str) -> None:
    """Every kernel of a small Llama is served, in a time."""
    found = engine.engine_report(
        config, "gfx942", engine.vllm_deployment(1), engine.steps(64, 4, 64)
    )
    for step in found.steps:
        assert step.covered == pytest.approx(1)
        assert all(one.seconds and one.kernels for one in step.kernels)
