"""Configurations of models in the form of DeepSeek: DeepSeek, Kimi, GLM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wavecast.errors import UsageError
from wavecast.systems.architecture import Attention, CompressedAttention, Layer, Mlp
from wavecast.systems.config_fields import Fields
from wavecast.systems.config_parts import by_type, dense, experts, grouped_query, indexer, latent


def _deepseek(fields: Fields) -> list[Layer]:
    """Latent attention; dense layers first, then routed and shared experts. vLLM reads `index_topk`
    of this type too, and `moe_layer_freq`, which transformers does not."""
    index = indexer(fields) if fields.get("index_topk") else None
    step = fields.integer("moe_layer_freq", default=1)
    first = _first_dense(fields)
    mixer, sparse = latent(fields, index), _experts(fields)
    return [
        Layer(mixer, dense(fields) if n < first or n % step else sparse)
        for n in range(fields.depth)
    ]


def _deepseek_v32(fields: Fields) -> list[Layer]:
    """The same with an indexer in every layer, and dense layers by `mlp_layer_types`."""
    _require_indexers(fields)
    mixer = latent(fields, indexer(fields))
    return [Layer(mixer, mlp) for mlp in _mlps_by_type(fields)]


def _glm_dsa(fields: Fields) -> list[Layer]:
    """DeepSeek-V3.2 whose layers may share the keys that a layer before them chose."""
    _require_indexers(fields)
    mixers = [
        latent(fields, indexer(fields, shared=kind == "shared")) for kind in _indexers(fields)
    ]
    return list(map(Layer, mixers, _mlps_by_type(fields)))


def _glm_moe(fields: Fields) -> list[Layer]:
    first, sparse = _first_dense(fields), _experts(fields)
    mixer = grouped_query(fields)
    return [Layer(mixer, dense(fields) if n < first else sparse) for n in range(fields.depth)]


def _first_dense(fields: Fields) -> int:
    fields.settle("intermediate_size")  # without a dense layer
    return fields.optional("first_k_dense_replace", least=0) or 0


def _experts(fields: Fields) -> Mlp:
    shared = fields.optional("n_shared_experts", least=0) or 0
    inter = fields.integer("moe_intermediate_size")
    return experts(fields, "moe_intermediate_size", shared * inter)


def _mlps_by_type(fields: Fields) -> list[Mlp]:
    first, sparse = _first_dense(fields), _experts(fields)
    types = fields.list("mlp_layer_types", fields.depth) or tuple(
        "dense" if n < first else "sparse" for n in range(fields.depth)
    )
    for name in types:
        if name not in ("dense", "sparse"):
            raise UsageError(f"{fields.name}: mlp_layer_types has {name!r}; known: dense, sparse")
    return [dense(fields) if name == "dense" else sparse for name in types]


def _require_indexers(fields: Fields) -> None:
    """Every layer has an indexer; the second name is that of older checkpoints."""
    for name in fields.list("layer_types", fields.depth) or ():
        if name not in ("indexed_attention", "deepseek_sparse_attention"):
            raise UsageError(f"{fields.name}: layer_types has {name!r}; known: indexed_attention")


def _indexers(fields: Fields) -> tuple[str, ...]:
    """`full` or `shared` per layer: a list, a pattern of letters, or every so many layers."""
    depth = fields.depth
    frequency = max(1, fields.integer("index_topk_freq", default=1, least=0))
    offset = fields.integer("index_skip_topk_offset", default=2, least=0)
    pattern = fields.get("index_topk_pattern")
    kinds = fields.list("indexer_types", depth)
    if kinds is None and isinstance(pattern, str):
        kinds = tuple({"F": "full", "S": "shared"}.get(letter, letter) for letter in pattern)
    elif kinds is None and pattern is not None:
        kinds = fields.list("index_topk_pattern", depth)
    if kinds is None:
        kinds = tuple(
            "shared" if max(n - offset + 1, 0) % frequency else "full" for n in range(depth)
        )
    if len(kinds) != depth or kinds[0] != "full" or not set(kinds) <= {"full", "shared"}:
        raise UsageError(
            f"{fields.name}: the indexers of {depth} layers are {', '.join(kinds)}; "
            "known: full, shared, the first full"
        )
    return kinds


_RATES = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
_OLD_RATES = {
    "compressed_sparse_attention": "compress_rate_csa",
    "heavily_compressed_attention": "compress_rate_hca",
}
_TYPES_OF_RATES = {
    "0": "sliding_attention",
    "4": "compressed_sparse_attention",
    "128": "heavily_compressed_attention",
}


def _deepseek_v4(fields: Fields) -> list[Layer]:
    """Windows, and in most layers compressed keys: with an indexer, or more compressed without."""
    if (shared := fields.optional("n_shared_experts", least=0)) != 1:
        raise UsageError(f"{fields.name}: n_shared_experts is {shared}; transformers builds 1")
    if fields.optional("hc_mult") == 1:
        raise UsageError(f"{fields.name}: hc_mult is 1; hyper-connections need 2 hidden states")
    fields.settle("num_hash_layers")  # how their experts are chosen, not how many
    rates = _compress_rates(fields)
    index = indexer(fields)
    mixers: dict[str, Attention] = {
        name: CompressedAttention(
            heads=fields.integer("num_attention_heads"),
            head_dim=fields.integer("head_dim"),
            q_rank=fields.integer("q_lora_rank"),
            window=fields.integer("sliding_window"),
            rate=rates.get(name, 0),
            groups=fields.integer("o_groups"),
            out_rank=fields.integer("o_lora_rank"),
            indexer=index if name == "compressed_sparse_attention" else None,
        )
        for name in ("sliding_attention", *_RATES)
    }
    sparse = _experts(fields)
    return [Layer(mixer, sparse) for mixer in by_type(fields, _compressed_types(fields), mixers)]


def _compressed_types(fields: Fields) -> tuple[str, ...]:
    """Lists may have entries of the layers that draft tokens, after the others."""
    depth = fields.depth
    types = fields.list("layer_types", depth, longer=True)
    ratios = fields.list("compress_ratios", depth, longer=True)
    if types is None and ratios is not None:
        types = tuple(_TYPES_OF_RATES.get(rate, f"rate {rate}") for rate in ratios)
    return types or tuple(
        "compressed_sparse_attention" if n > 2 and n % 2 else "heavily_compressed_attention"
        for n in range(depth)
    )


def _compress_rates(fields: Fields) -> dict[str, int]:
    compress_rates = fields.get("compress_rates") or _RATES
    if not isinstance(compress_rates, Mapping):
        raise UsageError(f"{fields.name}: compress_rates is {compress_rates!r}, not a mapping")
    rates = Fields(f"{fields.name}: compress_rates", compress_rates)
    return {
        name: fields.integer(old) if fields.get(old) is not None else rates.integer(name)
        for name, old in _OLD_RATES.items()
    }


DEEPSEEK_READERS: Final[Mapping[str, Callable[[Fields], list[Layer]]]] = {
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2"), _deepseek),
    "deepseek_v32": _deepseek_v32,
    "glm_moe_dsa": _glm_dsa,
    "deepseek_v4": _deepseek_v4,
    "glm4_moe": _glm_moe,
}
"""`model_type` -> what makes its layers."""

__all__ = ["DEEPSEEK_READERS"]
