"""Configurations of models in the form of GPT: perceptrons without a gate, layer norms, and learned
positions or biases of attention instead of rotations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.errors import UsageError
from wavecast.systems.architecture import DenseMlp, GroupedQueryAttention, Layer
from wavecast.systems.config_fields import Fields


@dataclass(frozen=True, slots=True)
class DecoderStyle:
    """What layers of a model share: the function of norms, and the number of learned positions."""

    norm: str = "rms_norm"
    positions: int = 0


def _attention(
    fields: Fields, *, kv_heads: int | None = None, rotary: bool = False
) -> GroupedQueryAttention:
    heads = fields.integer("num_attention_heads", "n_head")
    hidden = fields.integer("hidden_size", "n_embd", "n_embed")
    if hidden % heads:
        raise UsageError(f"{fields.name}: {hidden} elements do not divide among {heads} heads")
    keys = heads if kv_heads is None else kv_heads
    if heads % keys:
        raise UsageError(f"{fields.name}: {heads} heads do not share {keys} heads of keys evenly")
    return GroupedQueryAttention(heads, keys, hidden // heads, rotary=rotary)


def _mlp(fields: Fields, name: str, function: str) -> DenseMlp:
    """Four times the width where neither the configuration nor its class says."""
    width = fields.integer("hidden_size", "n_embd", "n_embed")
    inter = fields.optional(name) or 4 * width if name else 4 * width
    return DenseMlp(inter, gated=False, activation=function)


def _gpt2(fields: Fields) -> list[Layer]:
    return [Layer(_attention(fields), _mlp(fields, "n_inner", "gelu"))] * fields.depth


def _opt(fields: Fields) -> list[Layer]:
    hidden = fields.integer("hidden_size")
    narrow = fields.integer("word_embed_proj_dim", default=hidden)
    if narrow != hidden:
        raise UsageError(f"{fields.name}: word_embed_proj_dim {narrow} is not hidden_size {hidden}")
    return [Layer(_attention(fields), _mlp(fields, "ffn_dim", "relu"))] * fields.depth


def _bloom(fields: Fields) -> list[Layer]:
    """Biases by distance (ALiBi) instead of positions."""
    return [Layer(_attention(fields), _mlp(fields, "", "gelu"))] * fields.depth


def _neox(fields: Fields) -> list[Layer]:
    """Attention and perceptron have a norm each, and are added up one after the other."""
    attention = _attention(fields, rotary=True)
    return [Layer(attention, _mlp(fields, "intermediate_size", "gelu"))] * fields.depth


def _falcon(fields: Fields) -> list[Layer]:
    new = fields.switch("new_decoder_architecture")
    shared = 1 if fields.switch("multi_query") else None
    grouped = fields.optional("num_kv_heads")
    attention = _attention(
        fields, kv_heads=grouped if new else shared, rotary=not fields.switch("alibi")
    )
    parallel = fields.switch("parallel_attn") or new
    layer = Layer(attention, _mlp(fields, "ffn_hidden_size", "gelu"), parallel=parallel)
    return [layer] * fields.depth


GPT_READERS: Final[Mapping[str, Callable[[Fields], list[Layer]]]] = {
    "gpt2": _gpt2,
    "opt": _opt,
    "bloom": _bloom,
    "gpt_neox": _neox,
    "falcon": _falcon,
}
"""`model_type` -> what makes its layers."""

STYLES: Final[Mapping[str, Callable[[Fields], DecoderStyle]]] = {
    "gpt2": lambda f: DecoderStyle(
        "layer_norm", f.integer("n_positions", "max_position_embeddings")
    ),
    # The first two rows of the table of positions are for padding.
    "opt": lambda f: DecoderStyle("layer_norm", f.integer("max_position_embeddings") + 2),
    "bloom": lambda _: DecoderStyle("layer_norm"),
    "gpt_neox": lambda _: DecoderStyle("layer_norm"),
    "falcon": lambda _: DecoderStyle("layer_norm"),
}
"""`model_type` -> what its layers share, where it differs from Llama."""

__all__ = ["GPT_READERS", "STYLES", "DecoderStyle"]
