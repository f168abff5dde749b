"""`quantization_config` of checkpoints, as vLLM reads it (sources in `checkpoint_formats.py`)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.systems.test_huggingface import LLAMA
from wavecast import arch
from wavecast.errors import UsageError
from wavecast.systems.huggingface import config_of, load
from wavecast.systems.precision import precision
from wavecast.systems.weight_formats import Precision, WeightFormat, weight_format

SPARSE = {
    "model_type": "deepseek_v3",
    "hidden_size": 256,
    "intermediate_size": 512,
    "moe_intermediate_size": 128,
    "num_hidden_layers": 3,
    "first_k_dense_replace": 1,
    "num_attention_heads": 4,
    "q_lora_rank": 64,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "vocab_size": 1000,
}
FP4 = {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"}
FP8 = {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}


def formats(quantisation: dict[str, Any], config: dict[str, Any] = LLAMA) -> Precision:
    return precision(config_of({**config, "quantization_config": quantisation}, "tiny"))


def groups(weights: dict[str, Any], inputs: dict[str, Any] | None = None, **more: Any) -> Any:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, **more}


def quark(weight: Any, inputs: Any = None, **more: Any) -> dict[str, Any]:
    every = {"weight": weight, "input_tensors": inputs}
    return {"quant_method": "quark", "global_quant_config": every, **more}


@pytest.mark.parametrize(
    ("quantisation", "expected"),
    [
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, ("int8", "bf16", "none", 128)),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, ("int4", "bf16", "none", 0)),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, ("int4", "bf16", "none", 64)),
        ({"quant_method": "awq", "w_bit": 8, "q_group_size": 32}, ("int8", "bf16", "none", 32)),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, ("fp8", "fp8", "block", 0)),
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, ("fp8", "fp8", "token", 0)),
        (groups({"num_bits": 4, "type": "int", "group_size": 128, "strategy": "group"}),
         ("int4", "bf16", "none", 128)),
        (groups({"num_bits": 8, "type": "int", "strategy": "channel"}),
         ("int8", "bf16", "none", 0)),
        (groups({"num_bits": 8, "type": "int", "strategy": "channel"},
                {"num_bits": 8, "type": "int", "dynamic": True}), ("int8", "int8", "token", 0)),
        (groups({"num_bits": 8, "type": "float", "strategy": "channel"},
                {"num_bits": 8, "type": "float"}), ("fp8", "fp8", "token", 0)),
        (groups({"num_bits": 8, "type": "float", "strategy": "block",
                 "block_structure": [128, 128]}, {"num_bits": 8, "type": "float",
                 "group_size": 128}), ("fp8", "fp8", "block", 0)),
        (groups({"num_bits": 8, "type": "float", "strategy": "tensor"}),
         ("fp8", "bf16", "none", 0)),
        (groups({"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"},
                {"num_bits": 4, "type": "float", "group_size": 16}), ("nvfp4", "mxfp4", "mx", 0)),
        (groups({"num_bits": 4, "type": "float", "group_size": 32}), ("mxfp4", "bf16", "mx", 0)),
        (groups({"num_bits": 4, "type": "int", "group_size": 128},
                {"num_bits": 8, "type": "float"}), ("int4", "fp8", "token", 128)),
        (quark(FP4, FP4), ("mxfp4", "mxfp4", "mx", 0)),
        (quark({"dtype": "mx", "mx_element_dtype": "fp4", "group_size": 32}),
         ("mxfp4", "bf16", "mx", 0)),
        (quark(FP4, FP8), ("mxfp4", "fp8", "mx", 0)),
        (quark(FP8, FP8), ("fp8", "fp8", "token", 0)),
        (quark({"dtype": "int8", "qscheme": "per_channel"}, {"dtype": "int8"}),
         ("int8", "int8", "token", 0)),
        (quark({"dtype": "uint4", "qscheme": "per_group", "group_size": 128}),
         ("int4", "bf16", "none", 128)),
        (quark([FP8, {"dtype": "int4", "qscheme": "per_channel"}], FP8),
         ("int4", "fp8", "token", 0)),
        (quark([{**FP4, "group_size": 16}, FP8], [{**FP4, "group_size": 16}, FP8]),
         ("nvfp4", "mxfp4", "mx", 0)),
    ],
)  # fmt: skip
def test_formats_of_all_products(quantisation, expected) -> None:
    found = formats(quantisation)
    assert found.attention == found.dense == WeightFormat(*expected)
    assert found.head.weights == "bf16"
    assert found.cache == "bf16"


def test_integers_of_8_bits_take_twice_the_memory_of_4() -> None:
    eight, four = (
        formats({"quant_method": "gptq", "bits": bits, "group_size": 128}).dense.bytes
        for bits in (8, 4)
    )
    assert (eight, four) == (1 + 2 / 128, 0.5 + 2 / 128)


@pytest.mark.parametrize(
    ("quantisation", "wide"),
    [  # the roles that keep 16 bits
        ({"quant_method": "fp8", "modules_to_not_convert": ["self_attn", "lm_head"]},
         {"attention"}),
        ({"quant_method": "fp8", "ignored_layers": ["model.layers.0.mlp", "model.layers.1.mlp"
          ".shared_experts", "model.layers.2.mlp.shared_experts"]}, {"dense"}),
        ({"quant_method": "mxfp4", "modules_to_not_convert": [
          "model.layers.*.self_attn", "model.layers.*.mlp.gate"]}, {"attention"}),
        (quark(FP4, FP4, exclude=["lm_head", "*self_attn*", "*mlp.gate"]), {"attention"}),
        (quark(FP4, FP4, exclude=["re:.*self_attn.*", "re:model.layers.61.*"]), {"attention"}),
        (quark(FP4, FP4, exclude=[f"language_model.model.layers.{n}.self_attn.{p}_proj"
          for n in range(3) for p in ("q_a", "q_b", "kv_a", "kv_b", "o")]), {"attention"}),
        (groups({"num_bits": 8, "type": "float"}, {"num_bits": 8, "type": "float"},
                ignore=["lm_head", "re:.*mlp.gate$", r"re:.*self_attn\..*"]), {"attention"}),
    ],
)  # fmt: skip
def test_modules_that_are_left_out(quantisation, wide) -> None:
    found = formats(quantisation, SPARSE)
    for role in ("attention", "dense", "experts"):
        assert (getattr(found, role).weights == "bf16") == (role in wide), role


def test_modules_with_a_format_of_their_own() -> None:
    named = {"*self_attn*": {"weight": FP8, "input_tensors": FP8}}
    found = formats(quark(FP4, FP4, layer_quant_config=named), SPARSE)
    assert (found.attention.weights, found.experts.weights) == ("fp8", "mxfp4")
    experts = {
        "targets": [r"re:.*mlp\.experts\..*"],
        "weights": {"num_bits": 4, "type": "int", "group_size": 32},
    }
    config = {"quant_method": "compressed-tensors", "config_groups": {"group_0": experts}}
    found = formats(config, SPARSE)
    assert (found.experts.weights, found.attention.weights) == ("int4", "bf16")


def test_the_cache_that_a_checkpoint_asks_for() -> None:
    fp8 = {"num_bits": 8, "type": "float"}
    config = {**LLAMA, "quantization_config": groups(fp8, fp8, kv_cache_scheme=fp8)}
    assert precision(config_of(config, "tiny")).cache == "fp8"
    assert precision(config_of(config, "tiny"), cache="bf16").cache == "bf16"


def test_formats_of_a_nested_configuration() -> None:
    quantisation = {"quant_method": "gptq", "bits": 8}
    inner = {**LLAMA, "quantization_config": quantisation}
    for config in (
        {"model_type": "llava", "text_config": LLAMA, "quantization_config": quantisation},
        {"model_type": "llava", "text_config": inner},
        {"model_type": "omni", "thinker_config": {"text_config": inner}},
    ):
        assert precision(config_of(config, "tiny")).dense.weights == "int8"


@pytest.mark.parametrize(
    ("quantisation", "message"),
    [
        ({"quant_method": "gptq", "bits": 3}, "bits is 3; known: 4, 8"),
        ({"quant_method": "gptq"}, "bits is None; known: 4, 8"),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {"-:.*moe.*": {}}},
         "dynamic is .*not read"),
        ({"quant_method": "gptq", "bits": 4, "lm_head": True}, "lm_head is True, which is not"),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "weight_block_size is .64, 64."),
        ({"quant_method": "bitsandbytes"}, "quant_method is 'bitsandbytes'; known: fp8"),
        (groups({"num_bits": 2, "type": "int"}), r"config_groups.group_0.weights.num_bits is"),
        (groups({"num_bits": 4, "type": "float", "group_size": 64}), "weights.group_size is 64"),
        (groups({"num_bits": 8, "type": "int"}, {"num_bits": 8, "type": "float"}),
         "group_0 has weights of int8 with activations of fp8"),
        (groups({"num_bits": 8}, sparsity_config={"format": "sparse-24-bitmask"}),
         "sparsity_config is"),
        (quark({"dtype": "fp6_e2m3", "qscheme": "per_group", "group_size": 32}),
         r"global_quant_config.weight.dtype is .'fp6_e2m3'."),
        (quark({**FP4, "group_size": 64}), "weight.group_size is 64"),
        (quark(FP4, FP4, layer_type_quant_config={"Linear": {}}), "layer_type_quant_config is"),
        (quark(FP4, FP4, exclude=["model.layers.0.self_attn"]),
         r"model.layers.0.self_attn.q_proj bf16 and model.layers.1.self_attn.q_proj mxfp4"),
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "'lm_head', not a list"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_named(quantisation, message) -> None:
    with pytest.raises(UsageError, match=message):
        formats(quantisation)


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4", "fp8", "int8"])
def test_a_note_names_the_format_that_a_chip_lacks(name: str) -> None:
    """nvfp4 is priced at the rate of mxfp4, and is not called so."""
    form = weight_format(name)
    head = weight_format("bf16")
    precision = Precision(form, form, form, head, "bf16")
    device = arch.load("mi210")
    formats, notes = precision.on_device(device)
    if name == "int8":
        assert (formats, notes) == (precision, ())
    else:
        assert notes == (f"mi210 does not multiply {name}: weights are widened to bf16",)
        assert (formats.dense.weights, formats.dense.activations) == (name, "bf16")


@pytest.mark.parametrize(
    ("name", "scaling"),
    [
        ("GLM-4.7-FP8", "token"),
        ("Qwen3-Next-80B-A3B-Instruct-FP8", "block"),
        ("Qwen3-235B-A22B-FP8", "block"),
        ("GLM-5.1-FP8", "block"),
    ],
)
def test_checkpoints_of_this_year_have_the_format_they_are_published_in(
    name: str, scaling: str
) -> None:
    formats = precision(load(name))
    assert formats.experts == formats.attention == weight_format("fp8", scaling)
    assert formats.head == weight_format("bf16")
