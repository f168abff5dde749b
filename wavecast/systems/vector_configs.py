"""Vectors of a model's layers (`vectors.py`) from the fields of its configuration, as the modelling
code of its type in transformers has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wavecast.systems.config_fields import Fields
from wavecast.systems.vectors import VectorStyle


def _plain(_: Fields) -> VectorStyle:
    return VectorStyle()


def _llama(fields: Fields) -> VectorStyle:
    bias = fields.switch("attention_bias")
    return VectorStyle(input_bias=bias, output_bias=bias, mlp_bias=fields.switch("mlp_bias"))


def _qwen2(_: Fields) -> VectorStyle:
    return VectorStyle(input_bias=True)


def _qwen2_moe(fields: Fields) -> VectorStyle:
    return VectorStyle(input_bias=fields.switch("qkv_bias"), shared_gate=True)


def _qwen3(fields: Fields) -> VectorStyle:
    bias = fields.switch("attention_bias")
    return VectorStyle(input_bias=bias, output_bias=bias, head_norm="head")


def _qwen3_shared(fields: Fields) -> VectorStyle:
    bias = fields.switch("attention_bias")
    return VectorStyle(input_bias=bias, output_bias=bias, head_norm="head", shared_gate=True)


def _minimax(_: Fields) -> VectorStyle:
    return VectorStyle(head_norm="heads")


def _gpt_oss(fields: Fields) -> VectorStyle:
    bias = fields.switch("attention_bias")
    return VectorStyle(input_bias=bias, output_bias=bias, sinks=True, expert_bias=True)


def _attention_bias(fields: Fields) -> VectorStyle:
    bias = fields.switch("attention_bias")
    return VectorStyle(input_bias=bias, output_bias=bias)


def _glm4_moe(fields: Fields) -> VectorStyle:
    norm = "head" if fields.switch("use_qk_norm") else ""
    return VectorStyle(input_bias=fields.switch("attention_bias"), head_norm=norm)


def _gpt2(_: Fields) -> VectorStyle:
    return VectorStyle(norm_vectors=2, input_bias=True, output_bias=True, mlp_bias=True)


def _opt(fields: Fields) -> VectorStyle:
    bias = fields.switch("enable_bias")
    final = fields.switch("do_layer_norm_before") and not fields.switch("_remove_final_layer_norm")
    return VectorStyle(
        norm_vectors=2 if fields.switch("layer_norm_elementwise_affine") else 0,
        final_norms=int(final),
        input_bias=bias,
        output_bias=bias,
        mlp_bias=bias,
    )


def _bloom(_: Fields) -> VectorStyle:
    """The embedding has a norm too."""
    return VectorStyle(
        norm_vectors=2, final_norms=2, input_bias=True, output_bias=True, mlp_bias=True
    )


def _neox(fields: Fields) -> VectorStyle:
    bias = fields.switch("attention_bias")
    return VectorStyle(norm_vectors=2, input_bias=bias, output_bias=bias, mlp_bias=True)


def _falcon(fields: Fields) -> VectorStyle:
    """Attention and perceptron that are added up at once have one norm, or one each."""
    bias, parallel = fields.switch("bias"), fields.switch("parallel_attn")
    count = fields.optional("num_ln_in_parallel_attn")
    if count is None and fields.switch("new_decoder_architecture"):
        count = 2
    return VectorStyle(
        norms=2 if not parallel or count == 2 else 1,
        norm_vectors=2,
        input_bias=bias,
        output_bias=bias,
        mlp_bias=bias,
    )


VECTORS: Final[Mapping[str, Callable[[Fields], VectorStyle]]] = {
    "llama": _llama,
    **dict.fromkeys(("mistral", "mixtral"), _plain),
    "deepseek_v4": lambda fields: VectorStyle(mlp_bias=fields.switch("mlp_bias")),
    **dict.fromkeys(("qwen2", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text"), _qwen2),
    "qwen2_moe": _qwen2_moe,
    **dict.fromkeys(
        ("qwen3", "qwen3_vl_text", "qwen3_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text",
         "qwen3_5_text"),
        _qwen3,
    ),
    **dict.fromkeys(("qwen3_next", "qwen3_5_moe_text"), _qwen3_shared),
    "minimax_m2": _minimax,
    "gpt_oss": _gpt_oss,
    "deepseek_v2": _llama,
    **dict.fromkeys(
        ("llama4_text", "deepseek_v3", "kimi_k2", "deepseek_v32", "glm_moe_dsa"), _attention_bias
    ),
    "glm4_moe": _glm4_moe,
    "gpt2": _gpt2,
    "opt": _opt,
    "bloom": _bloom,
    "gpt_neox": _neox,
    "falcon": _falcon,
}  # fmt: skip
"""`model_type` -> the vectors of its layers."""

__all__ = ["VECTORS"]
