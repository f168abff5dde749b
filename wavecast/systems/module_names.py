"""The names that checkpoints give to the large products of a layer, by role.

`quantization_config` lists modules by these names. Small products (the weights of states and
decays, a router, the indexer) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from wavecast.systems.architecture import (
    Attention,
    CompressedAttention,
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    Layer,
    LinearAttention,
)


@dataclass(frozen=True, slots=True)
class _Names:
    """Names inside a layer; `shared` are experts of all tokens."""

    layers: str = "model.layers"
    attention: tuple[str, ...] = tuple(f"self_attn.{part}_proj" for part in "qkvo")
    dense: tuple[str, ...] = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    experts: str = "mlp.experts.0"
    parts: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    shared: str = "mlp.shared_experts"


_USUAL: Final = _Names()
_MIXTRAL: Final = replace(_USUAL, experts="block_sparse_moe.experts.0", parts=("w1", "w3", "w2"))
_QWEN: Final = replace(_USUAL, shared="mlp.shared_expert")
_BY_TYPE: Final[Mapping[str, _Names]] = {
    **dict.fromkeys(("mixtral", "minimax_m2"), _MIXTRAL),
    **dict.fromkeys(("qwen2_moe", "qwen3_next", "qwen3_5_moe_text"), _QWEN),
    "llama4_text": _Names(
        dense=tuple(f"feed_forward.{part}_proj" for part in ("gate", "up", "down")),
        experts="feed_forward.experts",
        parts=("gate_up_proj", "down_proj"),
        shared="feed_forward.shared_expert",
    ),
    "gpt2": _Names("transformer.h", ("attn.c_attn", "attn.c_proj"), ("mlp.c_fc", "mlp.c_proj")),
    "opt": replace(_USUAL, layers="model.decoder.layers", dense=("fc1", "fc2")),
    **dict.fromkeys(
        ("bloom", "falcon"),
        _Names(
            "transformer.h",
            ("self_attention.query_key_value", "self_attention.dense"),
            ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
        ),
    ),
    "gpt_neox": _Names(
        "gpt_neox.layers",
        ("attention.query_key_value", "attention.dense"),
        ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
    ),
}
_ATTENTION: Final[Mapping[type[Attention], tuple[str, ...]]] = {
    LatentAttention: tuple(f"self_attn.{part}_proj" for part in ("q_b", "kv_b", "o")),
    LinearAttention: ("linear_attn.in_proj_qkvz", "linear_attn.out_proj"),
    CompressedAttention: tuple(f"self_attn.{part}_proj" for part in ("q_b", "o_a", "o_b")),
}
_PREFIXES: Final = ("", "language_model.", "thinker.")
"""Prefixes of the names of the text of a model with several kinds of input."""


def modules_by_role(kind: str, layers: Sequence[Layer]) -> dict[str, list[str]]:
    """The names of the large products of all layers of a type of model: of `attention`, `dense`
    perceptrons with shared experts, and `experts`."""
    names = _BY_TYPE.get(kind, _USUAL)
    by_role: dict[str, list[str]] = {}
    for index, layer in enumerate(layers):
        for role, parts in _of_layer(names, layer).items():
            full = (f"{names.layers}.{index}.{part}" for part in parts)
            by_role.setdefault(role, []).extend(full)
    return by_role


def _of_layer(names: _Names, layer: Layer) -> dict[str, tuple[str, ...]]:
    mixer = layer.attention
    if isinstance(mixer, LatentAttention) and not mixer.q_rank:
        attention = ("self_attn.q_proj", *_ATTENTION[LatentAttention][1:])
    elif isinstance(mixer, GroupedQueryAttention):
        attention = names.attention
    else:
        attention = _ATTENTION[type(mixer)]
    if not isinstance(layer.mlp, ExpertMlp):
        return {"attention": attention, "dense": names.dense}
    by_role = {
        "attention": attention,
        "experts": tuple(f"{names.experts}.{part}" for part in names.parts),
    }
    if layer.mlp.shared:
        by_role["dense"] = tuple(f"{names.shared}.{part}" for part in _USUAL.parts)
    return by_role


def means(pattern: str, module: str) -> bool:
    """Whether an entry of a list of modules means a module: a regular expression after `re:`, or
    the name of the module or of one that it is in, where `*` is any part of a name."""
    if pattern.startswith("re:"):
        return any(re.match(pattern[3:], name) for name in _spellings(module))
    parts = ".*".join(map(re.escape, pattern.split("*")))
    return any(re.search(rf"(^|\.){parts}(\.|$)", name) for name in _spellings(module))


def _spellings(module: str) -> Iterable[str]:
    yield from (f"{prefix}{module}" for prefix in _PREFIXES)
    yield module.replace("model.", "model.language_model.", 1)


__all__ = ["means", "modules_by_role"]
