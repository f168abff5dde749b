"""Attention and perceptrons of a layer from the fields of a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wavecast.errors import UsageError
from wavecast.systems.architecture import (
    Attention,
    DenseMlp,
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    LinearAttention,
    SparseIndexer,
)
from wavecast.systems.config_fields import Fields


def grouped_query(
    fields: Fields,
    *,
    window: int | None = None,
    gated: bool = False,
    rotary: bool = True,
    chunked: bool = False,
) -> GroupedQueryAttention:
    """Softmax attention; where the class has no size for what is absent, a head of keys
    per head, and heads that divide the hidden state."""
    heads = fields.integer("num_attention_heads")
    kv_heads = fields.optional("num_key_value_heads") or heads
    if heads % kv_heads:
        raise UsageError(
            f"{fields.name}: num_attention_heads {heads} is not a multiple of num_key_value_heads "
            f"{kv_heads}"
        )
    head_dim = fields.optional("head_dim") or max(1, fields.integer("hidden_size") // heads)
    return GroupedQueryAttention(heads, kv_heads, head_dim, window or 0, gated, rotary, chunked)


def indexer(fields: Fields, *, shared: bool = False) -> SparseIndexer:
    """The indexer of sparse attention."""
    return SparseIndexer(
        fields.integer("index_n_heads"),
        fields.integer("index_head_dim"),
        fields.integer("index_topk"),
        shared,
    )


def latent(fields: Fields, index: SparseIndexer | None = None) -> LatentAttention:
    """Latent attention; a `q_lora_rank` of null does not factorise queries."""
    return LatentAttention(
        fields.integer("num_attention_heads"),
        fields.optional("q_lora_rank") or 0,
        fields.integer("kv_lora_rank"),
        fields.integer("qk_nope_head_dim"),
        fields.integer("qk_rope_head_dim"),
        fields.integer("v_head_dim"),
        index,
    )


def linear(fields: Fields) -> LinearAttention:
    """The gated delta rule."""
    return LinearAttention(
        fields.integer("linear_num_key_heads"),
        fields.integer("linear_num_value_heads"),
        fields.integer("linear_key_head_dim"),
        fields.integer("linear_value_head_dim"),
        fields.integer("linear_conv_kernel_dim"),
    )


def dense(fields: Fields) -> DenseMlp:
    """A gated perceptron."""
    return DenseMlp(fields.integer("intermediate_size"))


def experts(fields: Fields, inter: str, shared: int = 0) -> ExpertMlp:
    """Experts of the size that the field `inter` has."""
    count = fields.integer("n_routed_experts", "num_local_experts", "num_experts")
    topk = fields.integer("num_experts_per_tok", "experts_per_token")
    if topk > count:
        raise UsageError(f"{fields.name}: num_experts_per_tok {topk} of {count} experts")
    return ExpertMlp(count, topk, fields.integer(inter), shared)


def by_type(
    fields: Fields, types: Iterable[str], mixers: Mapping[str, Attention]
) -> list[Attention]:
    """The attention of each layer by its entry of `layer_types`. Raises UsageError."""
    layer_mixers = []
    for name in types:
        if name not in mixers:
            raise UsageError(f"{fields.name}: layer_types has {name!r}; known: {', '.join(mixers)}")
        layer_mixers.append(mixers[name])
    return layer_mixers


def sliding_or_full(fields: Fields, types: Iterable[str], window: int | None) -> list[Attention]:
    """Full attention, and windows in the layers that `types` names. Raises UsageError for such a
    layer without a window."""
    mixers: dict[str, Attention] = {"full_attention": grouped_query(fields)}
    if window:
        mixers["sliding_attention"] = grouped_query(fields, window=window)
    elif "sliding_attention" in types:
        raise UsageError(f"{fields.name}: layer_types has sliding_attention without sliding_window")
    return by_type(fields, types, mixers)


__all__ = [
    "by_type",
    "dense",
    "experts",
    "grouped_query",
    "indexer",
    "latent",
    "linear",
    "sliding_or_full",
]
