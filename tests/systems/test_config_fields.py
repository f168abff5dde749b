"""Every field of a configuration is read as transformers reads it, or refused by name.

`calibration.config_fields` builds small models with transformers and changes their fields; the
table of effects that Wavecast judges unread fields by comes from there.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from wavecast.errors import UsageError
from wavecast.systems import config_effects, config_nesting, huggingface
from wavecast.systems.architecture import GroupedQueryAttention, LatentAttention

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from calibration import (  # noqa: E402
    config_fields,
    config_variants,
    model_layers,
    nested_configs,
)

FEW: list[tuple[str, dict[str, Any]]] = [
    ("qwen2", {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 2}),
    ("qwen2", {"sliding_window": 7, "max_window_layers": 2}),
    ("qwen2_moe", {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 3}),
    ("qwen3_moe", {"use_sliding_window": True, "sliding_window": 7, "mlp_only_layers": [1]}),
    ("qwen3_next", {"decoder_sparse_step": 2, "mlp_only_layers": [3]}),
    ("llama4_text", {"moe_layers": [1, 4]}),
    ("llama4_text", {"attention_chunk_size": None, "no_rope_layers": [1, 0] * 3}),
    ("llama4_text", {"interleave_moe_layer_step": 3, "no_rope_layer_interval": 2}),
    ("deepseek_v32", {"mlp_layer_types": ["sparse", "dense"] * 3}),
    ("glm_moe_dsa", {"indexer_types": ["full", "shared"] * 3, "first_k_dense_replace": 2}),
    ("glm_moe_dsa", {"index_topk_freq": 3, "index_skip_topk_offset": 1}),
    ("glm_moe_dsa", {"index_topk_pattern": "FSSFSS"}),
    ("deepseek_v4", {"compress_ratios": [0, 128, 4, 128, 4, 0], "compress_rate_csa": 2}),
    ("gpt_oss", {"layer_types": ["full_attention", "sliding_attention", *["full_attention"] * 4]}),
    ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    ("gpt2", {"n_inner": 40}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("deepseek_v2", {"attention_bias": True, "mlp_bias": True, "q_lora_rank": None}),
    ("deepseek_v4", {"mlp_bias": True}),
    ("qwen2_moe", {"qkv_bias": False}),
    ("gpt_oss", {"attention_bias": False}),
    ("glm4_moe", {"use_qk_norm": True, "attention_bias": True}),
    ("qwen3_next", {"attention_bias": True, "linear_conv_kernel_dim": 3}),
    ("opt", {"enable_bias": False, "layer_norm_elementwise_affine": False}),
    ("opt", {"do_layer_norm_before": False}),
    ("falcon", {"bias": True, "parallel_attn": False}),
    ("falcon", {"new_decoder_architecture": True, "num_ln_in_parallel_attn": 1}),
]


@pytest.mark.torch
@pytest.mark.parametrize(("kind", "changes"), FEW)
def test_layers_are_those_of_transformers(kind, changes) -> None:
    values = {**config_variants.base(kind), **changes}
    built = model_layers.reference(values)
    assert built is not None
    assert built == model_layers.reading(values)


@pytest.mark.torch
@pytest.mark.thorough
@pytest.mark.parametrize("kind", [k for k in huggingface.READERS if k != "kimi_k2"])
def test_every_field_is_read_or_refused(kind) -> None:
    found = config_fields.measure(kind)
    start = found.results[0]
    assert start.built is not None
    assert start.built == start.read, "the small configuration itself is compared"
    assert [each.values for each in found.results if each.differs] == []
    assert {row[0]: row[1] for row in found.rows} == {
        name: effect.effect for name, effect in config_effects.table()[kind].items()
    }


def test_the_table_has_the_fields_of_this_version_of_transformers() -> None:
    """Where its version is another, `make newest` says so: the table is then written again."""
    assert config_effects.version() == importlib.metadata.version("transformers")
    known = config_effects.table()
    assert set(config_variants.measurable()) == set(known) - {config_effects.EVERY_TYPE}
    for kind in config_variants.measurable():
        fields = config_variants.every_field(kind)
        assert {name: effect.default for name, effect in known[kind].items()} == fields, kind
    assert {**config_variants.base_fields(), "per_layer_config": None} == {
        name: effect.default for name, effect in known[config_effects.EVERY_TYPE].items()
    }


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention is True, .*changes its"),
        ("llama", {"per_layer_config": [{}]}, "per_layer_config is .*changes its layers"),
        ("llama", {"sliding_window": 4096}, "sliding_window is 4096, .*layers of other types"),
        ("minimax_m2", {"moe_layers": [1]}, r"moe_layers is \[1\], .*layers of other types"),
        ("deepseek_v3", {"mlp_layer_types": ["dense"] * 6}, "mlp_layer_types is .*other types"),
        ("qwen2", {"layer_types": ["sliding_attention"] * 6}, "without sliding_window"),
        ("qwen3_next", {"mlp_only_layers": [1.5]}, "mlp_only_layers is .1.5., not a list of"),
        ("glm_moe_dsa", {"indexer_types": ["shared"] * 6}, "the first full"),
        ("glm_moe_dsa", {"mlp_layer_types": ["moe"] * 6}, "mlp_layer_types has 'moe'; known:"),
        ("llama4_text", {"no_rope_layers": [1]}, "no_rope_layers has 1 entries for 6 layers"),
        ("mixtral", {"num_experts": 4}, "num_local_experts is 8 and num_experts is 4"),
    ],
)  # fmt: skip
def test_a_field_that_changes_layers_and_is_not_read_is_named(kind, changes, message) -> None:
    values = {**config_variants.base(kind), **changes}
    with pytest.raises(UsageError, match=message):
        huggingface.read(values, "tiny")


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("llama", {"attention_dropout": 0.1, "pretraining_tp": 2, "torch_dtype": "bfloat16"}),
        ("llama", {"sliding_window": None, "num_experts": 0, "auto_map": {"AutoModel": "x"}}),
        ("deepseek_v3", {"num_nextn_predict_layers": 1, "ep_size": 1, "moe_layer_freq": 1}),
        ("qwen3_moe", {"use_sliding_window": False, "sliding_window": 4096}),
        ("qwen3_moe", {"use_sliding_window": False, "max_window_layers": 48}),
        ("llama", {"use_sliding_window": False, "sliding_window": 4096}),
        ("qwen3_5_moe_text", {"decoder_sparse_step": 1, "mlp_only_layers": []}),
        ("llama4_text", {"moe_layers": list(range(6)), "no_rope_layers": []}),
    ],
)
def test_fields_without_effect_are_not_refused(kind, changes) -> None:
    values = config_variants.base(kind)
    found, changed = (huggingface.read(v, "tiny") for v in (values, {**values, **changes}))
    assert found == changed


@pytest.mark.parametrize("kind", config_variants.measurable())
def test_the_default_configuration_of_a_type_is_read(kind) -> None:
    if kind == "deepseek_v2":  # its class has no number of experts per token
        with pytest.raises(UsageError, match="no field num_experts_per_tok"):
            huggingface.load(kind)
        return
    config = huggingface.load(kind)
    depth = config.values.get("num_hidden_layers", config.values.get("n_layer"))
    assert config.architecture.depth == depth


def test_shared_indexers_have_no_weights_and_no_cache() -> None:
    name, values, *_ = huggingface.load("GLM-5")
    found = huggingface.read({**values, "index_topk_freq": 2}, name)
    assert found.depth == 78
    shared = 0
    for layer, count in found.layers:
        assert isinstance(layer.attention, LatentAttention)
        index = layer.attention.indexer
        assert index is not None
        assert (layer.attention.index_elements == 0) == index.shared
        assert index.topk == 2048
        shared += count * index.shared
    assert shared == 38


def test_layers_of_a_nested_configuration() -> None:
    """Qwen-Omni has the sizes of its text two levels down; old Qwen-VL has them at the top."""
    text = {k: v for k, v in config_variants.base("qwen2").items() if k != "model_type"}
    plain = huggingface.read({"model_type": "qwen2", **text}, "tiny")
    for nested in (
        {"model_type": "qwen2_5_omni", "thinker_config": {"text_config": text}},
        {"model_type": "qwen2_5_omni", "thinker_config": {
            "model_type": "qwen2_5_omni_thinker",
            "text_config": {"model_type": "qwen2_5_omni_text", **text}}},
        {"model_type": "qwen2_5_vl", "vision_config": {"depth": 2}, **text},
        {"model_type": "qwen2_vl", "text_config": text},
        {"model_type": "llava", "text_config": {"model_type": "qwen2", **text}},
    ):  # fmt: skip
        assert huggingface.read(nested, "tiny") == plain


def _nested(kind: str, outer: bool | None, inner: bool | None) -> dict[str, Any]:
    """A small configuration of a type around a text, with `tie_word_embeddings` of both."""
    text_type = {"qwen2_vl": "qwen2_vl_text", "qwen3_vl": "qwen3_vl_text", "opt": "opt"}.get(kind)
    text = config_variants.base(text_type or "llama")
    levels: list[dict[str, Any]] = [{"model_type": kind}, text]
    for level, value in zip(levels, (outer, inner), strict=True):
        if value is not None:
            level["tie_word_embeddings"] = value
    return {**levels[0], "text_config": text}


@pytest.mark.parametrize(
    ("kind", "outer", "inner", "tied"),
    [
        ("llava", True, None, True), ("llava", None, True, True), ("llava", False, True, True),
        ("llava", True, False, True),
        ("qwen3_vl", True, True, True), ("qwen3_vl", True, None, True),
        ("qwen3_vl", False, None, False), ("qwen3_vl", True, False, "text_config"),
        ("qwen3_vl", None, True, "text_config"), ("qwen3_vl", False, True, "text_config"),
        ("mistral3", None, None, False), ("mistral3", None, False, False),
        ("mistral3", True, None, True), ("mistral3", False, True, "text_config"),
        ("llama4", None, True, True), ("llama4", True, None, "llama4"),
        ("voxtral", None, True, "text_config"), ("voxtral", True, None, "voxtral"),
        ("somebodys_own", True, None, True), ("somebodys_own", None, True, True),
        ("llava", "yes", None, "not true or false"),
    ],
)  # fmt: skip
def test_the_level_that_ties_the_embedding(kind, outer, inner, tied) -> None:
    values = _nested(kind, outer, inner)
    if isinstance(tied, str):
        with pytest.raises(UsageError, match=f"tie_word_embeddings is .*{tied}"):
            huggingface.read(values, "tiny")
    else:
        assert huggingface.read(values, "tiny").tied == tied


def test_the_thinker_ties_the_embedding_of_qwen_omni() -> None:
    text = {k: v for k, v in config_variants.base("qwen2").items() if k != "model_type"}
    thinker = {"text_config": text, "tie_word_embeddings": True}
    values = {"model_type": "qwen2_5_omni", "thinker_config": thinker}
    assert huggingface.read(values, "tiny").tied
    above = {**values, "thinker_config": {"text_config": text}, "tie_word_embeddings": True}
    with pytest.raises(UsageError, match="tie_word_embeddings is True in qwen2_5_omni:"):
        huggingface.read(above, "tiny")


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["llava", "qwen3_vl", "mistral3", "qwen2_5_omni_thinker"])
def test_what_ties_is_measured(kind) -> None:
    """One type per kind of rule; `calibration.nested_configs` measures all."""
    text = dict(nested_configs.nested_types())[kind]
    found = nested_configs.row(kind, text)
    tying = config_nesting.tyings()[kind]
    assert found[2:] == (tying.decides, str(tying.default).lower())


def test_the_table_of_nested_types_has_those_of_transformers() -> None:
    assert config_nesting.version() == importlib.metadata.version("transformers")
    assert {kind for kind, _ in nested_configs.nested_types()} == {*config_nesting.tyings()}


@pytest.mark.torch
@pytest.mark.parametrize(
    ("values", "expected"),
    [  # all parameters of transformers 5.24.0
        ({"model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5632,
          "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 2,
          "head_dim": 256, "vocab_size": 151936, "linear_conv_kernel_dim": 4,
          "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
          "linear_num_value_heads": 32, "decoder_sparse_step": 2, "moe_intermediate_size": 512,
          "shared_expert_intermediate_size": 512, "num_experts_per_tok": 10, "num_experts": 512},
         7_476_850_816),
        ({"model_type": "glm_moe_dsa", "hidden_size": 6144, "intermediate_size": 12288,
          "moe_intermediate_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 64,
          "vocab_size": 154880, "n_shared_experts": 1, "n_routed_experts": 256,
          "num_experts_per_tok": 8, "kv_lora_rank": 512, "q_lora_rank": 2048,
          "qk_rope_head_dim": 64, "v_head_dim": 256, "qk_nope_head_dim": 192, "index_topk": 2048,
          "index_head_dim": 128, "index_n_heads": 32, "first_k_dense_replace": 3,
          "mlp_layer_types": ["dense", *["sparse"] * 7]}, 71_445_901_312),
    ],
)  # fmt: skip
def test_parameters_of_whole_models(values, expected) -> None:
    model = model_layers.built(values, device="meta")
    assert model is not None
    assert model_layers.parameters(model) == expected
    assert huggingface.read(values, "model").parameters == expected


def test_keys_that_a_query_sees() -> None:
    window = GroupedQueryAttention(1, 1, 8, window=4)
    piece = GroupedQueryAttention(1, 1, 8, window=4, chunked=True)
    assert [window.keys_seen(n) for n in (1, 4, 5, 9)] == [1, 4, 4, 4]
    assert [piece.keys_seen(n) for n in (1, 4, 5, 9)] == [1, 4, 1, 1]


def test_the_documented_tables_are_those_of_the_readers() -> None:
    page = Path(__file__).parents[2] / "docs" / "configurations.md"
    text = page.read_text(encoding="utf-8")
    assert text.endswith(config_fields.markdown() + "\n")
    assert f"\n\n{nested_configs.markdown()}\n\n" in text
