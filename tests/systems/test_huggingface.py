"""Configurations of Hugging Face models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wavecast.errors import UnknownName, UsageError
from wavecast.systems import huggingface
from wavecast.systems.architecture import ExpertMlp, GroupedQueryAttention, LinearAttention
from wavecast.systems.precision import precision

LLAMA = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
}


@pytest.mark.parametrize(
    ("model", "billions", "active"),
    [  # as published on the model cards
        ("Llama-3.1-8B", 8.03, 8.03),
        ("meta-llama/Llama-3.1-70B-Instruct", 70.6, 70.6),
        ("Llama-3.1-405B", 405.9, 405.9),
        ("Mixtral-8x7B", 46.7, 12.9),
        ("Mixtral-8x22B", 140.6, 39.1),
        ("Qwen3-235B-A22B", 235.1, 22.2),
        ("Qwen3-30B-A3B", 30.5, 3.35),
        ("DeepSeek-R1", 671.0, 37.6),
        ("Kimi-K2", 1026.5, 32.9),
        ("gpt-oss-120b", 116.8, 5.7),
        ("gpt-oss-20b", 20.9, 4.2),
        ("GLM-4.5-Air", 106.9, 13.4),
        ("Llama-4-Maverick", 400.7, 17.2),
        ("MiniMax-M2", 228.7, 11.0),
        ("Llama-3.2-1B", 1.236, 1.236),
        ("Llama-3.2-3B", 3.21, 3.21),
        ("Llama-4-Scout", 107.8, 17.2),
        ("Mistral-Small-24B", 23.6, 23.6),
        ("Mistral-Large-2407", 122.6, 122.6),
        ("Qwen2.5-7B", 7.62, 7.62),
        ("Qwen2.5-72B", 72.7, 72.7),
        ("Qwen3-Coder-480B-A35B", 480.0, 35.4),
        ("DeepSeek-V2", 235.7, 21.4),
        ("DeepSeek-V2-Lite", 15.7, 2.66),
        ("GPT-3-175B", 174.6, 174.6),
        ("gpt2-xl", 1.56, 1.56),
        ("OPT-66B", 65.7, 65.7),
        ("Falcon-40B", 41.8, 41.8),
        ("BLOOM-176B", 176.2, 176.2),
        ("DeepSeek-V4-Flash", 284.0, 13.8),
    ],
)
def test_parameters_are_those_of_the_model_card(model, billions, active) -> None:
    name, values, *_ = huggingface.load(model)
    found = huggingface.read(values, name)
    assert found.parameters / 1e9 == pytest.approx(billions, rel=0.01)
    assert found.active_parameters / 1e9 == pytest.approx(active, rel=0.02)


@pytest.mark.parametrize(
    ("model", "parameters"),
    [  # published counts of the elements of the checkpoints, before quantisation
        ("Llama-3.1-8B", 8_030_261_248),
        ("Qwen2.5-7B", 7_615_616_512),
        ("Qwen3-8B", 8_190_735_360),
        ("gpt-oss-20b", 20_914_757_184),
        ("BLOOM-176B", 176_247_271_424),
        ("DeepSeek-R1", 671_026_419_200 - 58 * 256),  # without what chooses experts, which is added
    ],
)
def test_parameters_are_those_of_the_checkpoint(model, parameters) -> None:
    assert huggingface.load(model).architecture.parameters == parameters


def test_memory_has_norms_and_biases() -> None:
    model = huggingface.load("gpt-oss-20b").architecture
    (layer, count), *others = model.layers
    hidden, experts = 2880, 32
    layer_vectors = 2 * hidden + 64 + (64 + 2 * 8) * 64 + hidden + experts + experts * 3 * hidden
    assert model.vectors_of(layer) == layer_vectors
    assert model.vector_parameters == 24 * layer_vectors + hidden
    assert sum((count, *(number for _, number in others))) == 24
    idle = 24 * 28 * 3 * hidden
    assert model.active_parameters == model.active_matrices + model.vector_parameters - idle


def test_a_file_and_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(LLAMA))
    for selector in (path, path.parent):
        name, values, *_ = huggingface.load(str(selector))
        assert name == "tiny"
        assert huggingface.read(values, name).depth == 2


def test_layers_of_a_hybrid_model() -> None:
    name, values, *_ = huggingface.load("Qwen3-Next-80B-A3B")
    found = huggingface.read(values, name)
    kinds = {type(layer.attention): count for layer, count in found.layers}
    assert kinds == {LinearAttention: 36, GroupedQueryAttention: 12}
    assert all(isinstance(layer.mlp, ExpertMlp) for layer, _ in found.layers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": None}, "no field hidden_size"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0, not 1 to"),
        ({"num_hidden_layers": 1 << 40}, "num_hidden_layers is 1099511627776"),
        ({"vocab_size": "many"}, "vocab_size is 'many', not a whole number"),
        ({"num_key_value_heads": 3}, "4 is not a multiple of num_key_value_heads 3"),
        ({"model_type": None}, "no field model_type"),
    ],
)
def test_a_bad_field_is_named(change, message) -> None:
    with pytest.raises(UsageError, match=message):
        huggingface.read({**LLAMA, **change}, "tiny")


def test_other_types_and_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="model_type 'mamba'"):
        huggingface.read({**LLAMA, "model_type": "mamba"}, "tiny")
    with pytest.raises(UnknownName, match="unknown model 'no such'"):
        huggingface.load("no such")
    path = tmp_path / "config.json"
    path.write_text("[1]")
    with pytest.raises(UsageError, match="no object of fields"):
        huggingface.load(str(path))
    path.write_text("{")
    with pytest.raises(UsageError, match="not JSON"):
        huggingface.load(str(path))


def test_experts_of_a_checkpoint_have_their_own_format() -> None:
    """DeepSeek-V4: 1.6 T parameters, of which a token uses 49 B (model card); fp4 experts."""
    _, values, *_ = huggingface.load("DeepSeek-V4-Pro")
    architecture = huggingface.read(values, "DeepSeek-V4-Pro")
    assert architecture.parameters == pytest.approx(1.6e12, rel=0.02)
    assert architecture.active_parameters == pytest.approx(49e9, rel=0.02)
    found = precision(huggingface.load("DeepSeek-V4-Pro"))
    assert (found.experts.weights, found.experts.activations) == ("mxfp4", "fp8")
    assert found.dense.weights == found.attention.weights == "fp8"
    for stored in ("fp3", ["fp4"], 4):
        method = {"quant_method": "fp8", "expert_dtype": stored}
        with pytest.raises(UsageError, match=r"expert_dtype is .*; known: fp4, fp8"):
            precision(huggingface.config_of({**values, "quantization_config": method}, "V4"))


@pytest.mark.parametrize(
    ("name", "attention", "experts"),
    [
        ("MiniMax-M2.7", "fp8 block", "fp8 block"),
        ("Kimi-K2-Instruct", "fp8 block", "fp8 block"),
        ("Kimi-K2-Thinking", "bf16 none", "int4 none"),
        ("GLM-5.1-FP8", "fp8 block", "fp8 block"),
        ("GLM-5.1", "bf16 none", "bf16 none"),
        ("GLM-5.3-FP8", "fp8 block", "fp8 block"),
        ("Qwen3-235B-A22B-FP8", "fp8 block", "fp8 block"),
    ],
)
def test_known_models_have_the_format_of_their_checkpoint(name, attention, experts) -> None:
    formats = precision(huggingface.load(name))
    assert f"{formats.attention.weights} {formats.attention.scaling}" == attention
    assert f"{formats.experts.weights} {formats.experts.scaling}" == experts


def test_an_entry_states_what_differs_from_the_one_it_is_like() -> None:
    whole, shared = huggingface.load("GLM-5"), huggingface.load("GLM-5.2-FP8")
    assert shared.values["hidden_size"] == whole.values["hidden_size"]
    assert "quantization_config" not in whole.values
    # 21 of 78 layers choose keys, the others use those of the layer before.
    assert shared.architecture.parameters < whole.architecture.parameters
    assert huggingface.models()["GLM-5.2"].get("aliases") == ["GLM-5.3"]


def test_a_checkpoint_may_say_that_queries_and_keys_have_norms(tmp_path: Path) -> None:
    values = dict(huggingface.models()["MiniMax-M2"], use_qk_norm=True)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values))
    same = huggingface.load(str(path)).architecture
    assert same.parameters == huggingface.load("MiniMax-M2").architecture.parameters
