"""Configurations of models in the form of Llama: Llama, Mistral, Qwen, MiniMax, gpt-oss.

Each function reads a configuration as the class of its type in transformers does; what vLLM reads
in addition is named where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wavecast.errors import UsageError
from wavecast.systems.architecture import Attention, DenseMlp, Layer, Mlp
from wavecast.systems.config_fields import Fields
from wavecast.systems.config_parts import (
    by_type,
    dense,
    experts,
    grouped_query,
    linear,
    sliding_or_full,
)


def _uniform_layers(fields: Fields, attention: Attention, mlp: Mlp) -> list[Layer]:
    return [Layer(attention, mlp)] * fields.depth


def _llama(fields: Fields) -> list[Layer]:
    """Windows in the layers that `layer_types` names: vLLM reads it, transformers does not."""
    types = fields.list("layer_types", fields.depth)
    if types is None:
        return _plain(fields)
    window = fields.optional("sliding_window")
    return [Layer(mixer, dense(fields)) for mixer in sliding_or_full(fields, types, window)]


def _plain(fields: Fields) -> list[Layer]:
    return _uniform_layers(fields, grouped_query(fields), dense(fields))


def _mistral(fields: Fields) -> list[Layer]:
    """A window in every layer, unless it is null."""
    window = fields.optional("sliding_window")
    return _uniform_layers(fields, grouped_query(fields, window=window), dense(fields))


def _qwen(fields: Fields) -> list[Layer]:
    """Windows where `use_sliding_window`, from layer `max_window_layers` on."""
    window = _switched_window(fields)
    first = fields.optional("max_window_layers", least=0) or 0
    types = fields.list("layer_types", fields.depth) or tuple(
        "sliding_attention" if window and n >= first else "full_attention"
        for n in range(fields.depth)
    )
    return [Layer(mixer, dense(fields)) for mixer in sliding_or_full(fields, types, window)]


def _switched_window(fields: Fields) -> int | None:
    if fields.switch("use_sliding_window"):
        return fields.optional("sliding_window")
    fields.settle("sliding_window")
    return None


def _mixtral(fields: Fields) -> list[Layer]:
    """A window in every layer, where there is one."""
    attention = grouped_query(fields, window=fields.optional("sliding_window"))
    return _uniform_layers(fields, attention, experts(fields, "intermediate_size"))


def _minimax(fields: Fields) -> list[Layer]:
    return _uniform_layers(fields, grouped_query(fields), experts(fields, "intermediate_size"))


def _sparse_mlps(fields: Fields, shared: int = 0) -> list[Mlp]:
    """Experts in every `decoder_sparse_step`-th layer but those of `mlp_only_layers`."""
    step = fields.optional("decoder_sparse_step") or 1
    only = fields.numbers("mlp_only_layers") or ()
    sparse: Mlp = experts(fields, "moe_intermediate_size", shared)
    fields.settle("intermediate_size")  # without a dense layer
    is_dense = [n in only or (n + 1) % step != 0 for n in range(fields.depth)]
    return [dense(fields) if here else sparse for here in is_dense]


def _shared_size(fields: Fields) -> int:
    return fields.optional("shared_expert_intermediate_size", least=0) or 0


def _qwen2_moe(fields: Fields) -> list[Layer]:
    """Windows where `use_sliding_window`, in every other layer before `max_window_layers`."""
    window = _switched_window(fields)
    end = fields.optional("max_window_layers", least=0) or 0
    types = fields.list("layer_types", fields.depth) or tuple(
        "sliding_attention" if window and not n % 2 and n < end else "full_attention"
        for n in range(fields.depth)
    )
    mixers = sliding_or_full(fields, types, window)
    return list(map(Layer, mixers, _sparse_mlps(fields, _shared_size(fields))))


def _qwen3_moe(fields: Fields) -> list[Layer]:
    """Windows in all layers where `use_sliding_window`."""
    attention = grouped_query(fields, window=_switched_window(fields))
    return [Layer(attention, mlp) for mlp in _sparse_mlps(fields)]


def _qwen3_vl_moe(fields: Fields) -> list[Layer]:
    return [Layer(grouped_query(fields), mlp) for mlp in _sparse_mlps(fields)]


def _hybrid(fields: Fields) -> list[Attention]:
    """Linear attention, and gated softmax attention in every `full_attention_interval`-th layer."""
    interval = fields.integer("full_attention_interval", default=4)
    types = fields.list("layer_types", fields.depth) or tuple(
        "linear_attention" if (n + 1) % interval else "full_attention" for n in range(fields.depth)
    )
    mixers: dict[str, Attention] = {
        "full_attention": grouped_query(fields, gated=True),
        "linear_attention": linear(fields),
    }
    return by_type(fields, types, mixers)


def _qwen3_next(fields: Fields) -> list[Layer]:
    return list(map(Layer, _hybrid(fields), _sparse_mlps(fields, _shared_size(fields))))


def _qwen3_5(fields: Fields) -> list[Layer]:
    return [Layer(mixer, dense(fields)) for mixer in _hybrid(fields)]


def _qwen3_5_moe(fields: Fields) -> list[Layer]:
    mlp = experts(fields, "moe_intermediate_size", _shared_size(fields))
    return [Layer(mixer, mlp) for mixer in _hybrid(fields)]


def _gpt_oss(fields: Fields) -> list[Layer]:
    """Windows in every other layer."""
    types = fields.list("layer_types", fields.depth) or tuple(
        "full_attention" if n % 2 else "sliding_attention" for n in range(fields.depth)
    )
    mlp = experts(fields, "intermediate_size")
    window = fields.optional("sliding_window")
    return [Layer(mixer, mlp) for mixer in sliding_or_full(fields, types, window)]


def _llama4(fields: Fields) -> list[Layer]:
    """A shared expert of the routed ones' size; dense layers between those with experts. Layers
    with positions see the keys of their piece of `attention_chunk_size` tokens."""
    rotary = _rotary_layers(fields)
    chunk = fields.optional("attention_chunk_size")
    types = fields.list("layer_types", fields.depth) or tuple(
        "chunked_attention" if here and chunk else "full_attention" for here in rotary
    )
    if "chunked_attention" in types and not chunk:
        raise UsageError(f"{fields.name}: layer_types has chunked_attention without "
                         "attention_chunk_size")  # fmt: skip
    inter = fields.integer("intermediate_size")
    sparse = experts(fields, "intermediate_size", inter)
    dense_mlp = DenseMlp(fields.integer("intermediate_size_mlp"))
    with_experts = _expert_layers(fields)
    layers = []
    for n, here in enumerate(rotary):
        mixers: dict[str, Attention] = {
            "full_attention": grouped_query(fields, rotary=here),
            "chunked_attention": grouped_query(fields, rotary=here, window=chunk, chunked=True),
        }
        (mixer,) = by_type(fields, types[n : n + 1], mixers)
        mlp: Mlp = sparse if n in with_experts else dense_mlp
        layers.append(Layer(mixer, mlp))
    return layers


def _rotary_layers(fields: Fields) -> list[bool]:
    interval = fields.optional("no_rope_layer_interval") or 1
    switches = fields.numbers("no_rope_layers") or ()
    if switches and len(switches) < fields.depth:
        raise UsageError(
            f"{fields.name}: no_rope_layers has {len(switches)} entries for {fields.depth} layers"
        )
    return [bool(switches[n] if switches else (n + 1) % interval) for n in range(fields.depth)]


def _expert_layers(fields: Fields) -> frozenset[int]:
    step = fields.optional("interleave_moe_layer_step") or 1
    layers = fields.numbers("moe_layers")
    return frozenset(range(step - 1, fields.depth, step) if layers is None else layers)


LLAMA_READERS: Final[Mapping[str, Callable[[Fields], list[Layer]]]] = {
    "llama": _llama,
    "qwen3_vl_text": _plain,
    "mistral": _mistral,
    **dict.fromkeys(
        ("qwen2", "qwen3", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text"), _qwen
    ),
    "mixtral": _mixtral,
    "minimax_m2": _minimax,
    "qwen2_moe": _qwen2_moe,
    "qwen3_moe": _qwen3_moe,
    **dict.fromkeys(("qwen3_vl_moe_text", "qwen3_omni_moe_text"), _qwen3_vl_moe),
    "qwen3_next": _qwen3_next,
    "qwen3_5_text": _qwen3_5,
    "qwen3_5_moe_text": _qwen3_5_moe,
    "gpt_oss": _gpt_oss,
    "llama4_text": _llama4,
}
"""`model_type` -> what makes its layers."""

__all__ = ["LLAMA_READERS"]
