"""Configurations of Hugging Face models, as layers.

`read` takes the values of a `config.json`. Which values a model has follows from its `model_type`:
every type here is one whose layers were compared with its public modelling code; another type is
an error, not a guess.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path

from wavecast.errors import MissingTool, UnknownName, UsageError
from wavecast.files import parse_json, read_text
from wavecast.systems.architecture import (
    Attention,
    CompressedAttention,
    DenseMlp,
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    Layer,
    LinearAttention,
    Mlp,
    ModelArchitecture,
    SparseIndexer,
)
from wavecast.systems.config_fields import Fields, Values
from wavecast.systems.gpt_configs import GPT_READERS, STYLES, DecoderStyle


def _grouped(fields: Fields, *, window: int = 0, gated: bool = False) -> GroupedQueryAttention:
    heads = fields.integer("num_attention_heads")
    kv_heads = fields.integer("num_key_value_heads", default=heads)
    if heads % kv_heads:
        raise UsageError(
            f"{fields.name}: num_attention_heads {heads} is not a multiple of num_key_value_heads "
            f"{kv_heads}"
        )
    head_dim = fields.integer("head_dim", default=max(1, fields.integer("hidden_size") // heads))
    return GroupedQueryAttention(heads, kv_heads, head_dim, window, gated)


def _latent(fields: Fields) -> LatentAttention:
    indexer = None
    if fields.values.get("index_topk"):
        indexer = SparseIndexer(
            fields.integer("index_n_heads"),
            fields.integer("index_head_dim"),
            fields.integer("index_topk"),
        )
    return LatentAttention(
        fields.integer("num_attention_heads"),
        fields.integer("q_lora_rank", default=0, least=0),
        fields.integer("kv_lora_rank"),
        fields.integer("qk_nope_head_dim"),
        fields.integer("qk_rope_head_dim"),
        fields.integer("v_head_dim"),
        indexer,
    )


def _linear(fields: Fields) -> LinearAttention:
    return LinearAttention(
        fields.integer("linear_num_key_heads"),
        fields.integer("linear_num_value_heads"),
        fields.integer("linear_key_head_dim"),
        fields.integer("linear_value_head_dim"),
        fields.integer("linear_conv_kernel_dim"),
    )


def _dense(fields: Fields) -> DenseMlp:
    return DenseMlp(fields.integer("intermediate_size"))


def _experts(fields: Fields, inter: str, shared: int = 0) -> ExpertMlp:
    experts = fields.integer("n_routed_experts", "num_local_experts", "num_experts")
    topk = fields.integer("num_experts_per_tok", "experts_per_token")
    if topk > experts:
        raise UsageError(f"{fields.name}: num_experts_per_tok {topk} of {experts} experts")
    return ExpertMlp(experts, topk, fields.integer(inter), shared)


def _repeated(fields: Fields, attention: Attention, mlp: Mlp) -> list[Layer]:
    return [Layer(attention, mlp)] * fields.depth


def _llama(fields: Fields) -> list[Layer]:
    """Windows in the layers that `layer_types` names."""
    types = fields.list("layer_types", fields.depth)
    if types is None or "sliding_attention" not in types:
        return _repeated(fields, _grouped(fields), _dense(fields))
    window = fields.integer("sliding_window")
    mixers: dict[str, Attention] = {
        "full_attention": _grouped(fields),
        "sliding_attention": _grouped(fields, window=window),
    }
    return [Layer(_of_type(fields, mixers, name), _dense(fields)) for name in types]


def _mistral(fields: Fields) -> list[Layer]:
    """A window in every layer, where the model has one."""
    window = fields.integer("sliding_window", default=0)
    return _repeated(fields, _grouped(fields, window=window), _dense(fields))


def _mixtral(fields: Fields) -> list[Layer]:
    return _repeated(fields, _grouped(fields), _experts(fields, "intermediate_size"))


def _qwen_moe(fields: Fields) -> list[Layer]:
    """Experts in every `decoder_sparse_step`-th layer but those of `mlp_only_layers`."""
    depth = fields.depth
    step = fields.integer("decoder_sparse_step", default=1)
    dense = fields.values.get("mlp_only_layers") or []
    if not isinstance(dense, list) or not all(isinstance(layer, int) for layer in dense):
        raise UsageError(f"{fields.name}: mlp_only_layers is {dense!r}, not a list of numbers")
    shared = fields.integer("shared_expert_intermediate_size", default=0, least=0)
    experts = _experts(fields, "moe_intermediate_size", shared)
    attention = _grouped(fields)
    return [
        Layer(attention, _dense(fields) if n in dense or (n + 1) % step else experts)
        for n in range(depth)
    ]


def _qwen_hybrid(fields: Fields) -> list[Layer]:
    """Linear attention, and gated softmax attention in every `full_attention_interval`-th layer."""
    depth = fields.depth
    types = fields.list("layer_types", depth)
    if types is None:
        interval = fields.integer("full_attention_interval", default=4)
        types = tuple(
            "full_attention" if (n + 1) % interval == 0 else "linear_attention"
            for n in range(depth)
        )
    mixers: dict[str, Attention] = {
        "full_attention": _grouped(fields, gated=True),
        "linear_attention": _linear(fields),
    }
    if fields.values.get("num_experts"):
        shared = fields.integer("shared_expert_intermediate_size", default=0, least=0)
        mlp: Mlp = _experts(fields, "moe_intermediate_size", shared)
    else:
        mlp = _dense(fields)
    return [Layer(_of_type(fields, mixers, name), mlp) for name in types]


def _deepseek(fields: Fields) -> list[Layer]:
    """Latent attention; dense layers first, then routed and shared experts."""
    return _dense_then_experts(fields, _latent(fields))


def _glm_moe(fields: Fields) -> list[Layer]:
    return _dense_then_experts(fields, _grouped(fields))


def _dense_then_experts(fields: Fields, attention: Attention) -> list[Layer]:
    depth = fields.depth
    dense = fields.integer("first_k_dense_replace", default=0, least=0)
    shared = fields.integer("n_shared_experts", default=0, least=0)
    inter = fields.integer("moe_intermediate_size")
    experts = _experts(fields, "moe_intermediate_size", shared * inter)
    return [Layer(attention, _dense(fields) if n < dense else experts) for n in range(depth)]


def _gpt_oss(fields: Fields) -> list[Layer]:
    """Sliding windows in every other layer."""
    depth = fields.depth
    types = fields.list("layer_types", depth) or tuple(
        "full_attention" if n % 2 else "sliding_attention" for n in range(depth)
    )
    window = fields.integer("sliding_window")
    mixers: dict[str, Attention] = {
        "full_attention": _grouped(fields),
        "sliding_attention": _grouped(fields, window=window),
    }
    mlp = _experts(fields, "intermediate_size")
    return [Layer(_of_type(fields, mixers, name), mlp) for name in types]


def _llama4(fields: Fields) -> list[Layer]:
    """A shared expert of the routed ones' size; dense layers between those with experts."""
    step = fields.integer("interleave_moe_layer_step", default=1)
    inter = fields.integer("intermediate_size")
    experts = _experts(fields, "intermediate_size", inter)
    attention = _grouped(fields)
    dense = DenseMlp(fields.integer("intermediate_size_mlp", default=inter))
    return [Layer(attention, dense if (n + 1) % step else experts) for n in range(fields.depth)]


_RATES = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
_TYPES_OF_RATES = {
    "0": "sliding_attention",
    "4": "compressed_sparse_attention",
    "128": "heavily_compressed_attention",
}


def _deepseek_v4(fields: Fields) -> list[Layer]:
    """Windows, and in most layers compressed keys: with an indexer, or more compressed without."""
    depth = fields.depth
    types = fields.list("layer_types", depth)
    ratios = fields.list("compress_ratios", depth)
    if types is None and ratios is not None:
        types = tuple(_TYPES_OF_RATES.get(rate, f"rate {rate}") for rate in ratios)
    if types is None:
        types = tuple(
            "compressed_sparse_attention" if n > 2 and n % 2 else "heavily_compressed_attention"
            for n in range(depth)
        )
    given = fields.values.get("compress_rates") or _RATES
    if not isinstance(given, Mapping):
        raise UsageError(f"{fields.name}: compress_rates is {given!r}, not a mapping")
    rates = Fields(f"{fields.name}: compress_rates", given)
    indexer = SparseIndexer(
        fields.integer("index_n_heads"),
        fields.integer("index_head_dim"),
        fields.integer("index_topk"),
    )
    mixers: dict[str, Attention] = {
        name: CompressedAttention(
            heads=fields.integer("num_attention_heads"),
            head_dim=fields.integer("head_dim"),
            q_rank=fields.integer("q_lora_rank"),
            window=fields.integer("sliding_window"),
            rate=rates.integer(name) if name in _RATES else 0,
            groups=fields.integer("o_groups"),
            out_rank=fields.integer("o_lora_rank"),
            indexer=indexer if name == "compressed_sparse_attention" else None,
        )
        for name in ("sliding_attention", *_RATES)
    }
    inter = fields.integer("moe_intermediate_size")
    shared = fields.integer("n_shared_experts", default=0, least=0)
    experts = _experts(fields, "moe_intermediate_size", shared * inter)
    return [Layer(_of_type(fields, mixers, name), experts) for name in types]


def _of_type(fields: Fields, mixers: Mapping[str, Attention], name: str) -> Attention:
    if name not in mixers:
        raise UsageError(f"{fields.name}: layer_types has {name!r}; known: {', '.join(mixers)}")
    return mixers[name]


READERS: dict[str, Callable[[Fields], list[Layer]]] = {
    **dict.fromkeys(("llama", "qwen2", "qwen3", "qwen3_vl_text"), _llama),
    "mistral": _mistral,
    **dict.fromkeys(("mixtral", "minimax_m2"), _mixtral),
    **dict.fromkeys(("qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text"), _qwen_moe),
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_moe"), _qwen_hybrid
    ),
    **dict.fromkeys(
        ("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa"), _deepseek
    ),
    "deepseek_v4": _deepseek_v4,
    "glm4_moe": _glm_moe,
    "gpt_oss": _gpt_oss,
    "llama4_text": _llama4,
    **GPT_READERS,
}
"""`model_type` -> what makes its layers."""


def read(values: Values, name: str) -> ModelArchitecture:
    """The layers of a configuration; where it has a `text_config`, that is what is
    read as its text.

    Raises UsageError for a missing or absurd field, UnknownName for another `model_type`.
    """
    text = values.get("text_config")
    if isinstance(text, Mapping):
        values = {**{k: v for k, v in values.items() if k == "quantization_config"}, **text}
    fields = Fields(name, values)
    kind = values.get("model_type")
    if not isinstance(kind, str):
        raise UsageError(f"{name}: no field model_type")
    if kind not in READERS:
        raise UnknownName("model_type", kind, READERS)
    layers = READERS[kind](fields)
    counted: dict[Layer, int] = {}
    for layer, run in groupby(layers):
        counted[layer] = counted.get(layer, 0) + len(list(run))
    style = STYLES[kind](fields) if kind in STYLES else DecoderStyle()
    return ModelArchitecture(
        name=name,
        hidden=fields.integer("hidden_size", "n_embd"),
        vocabulary=fields.integer("vocab_size"),
        layers=tuple(counted.items()),
        tied=bool(values.get("tie_word_embeddings", style.tied)),
        context=fields.integer("max_position_embeddings", "n_positions", default=0, least=0),
        norm=style.norm,
        positions=style.positions,
        streams=fields.integer("hc_mult", default=1),
    )


def load(selector: str) -> tuple[str, Values]:
    """Name and values of a configuration: a `config.json`, a folder with one, a name of
    `models.toml`, or a model type of transformers (its default sizes).

    Raises UsageError for a file that cannot be read, UnknownName for a name nobody knows,
    MissingTool for a model type without transformers.
    """
    path = Path(selector)
    if path.is_dir():
        path /= "config.json"
    if path.suffix == ".json" or path.exists():
        return (path.parent.name or path.stem if path.name == "config.json" else path.stem), _json(
            path
        )
    known = models()
    key = _key(selector)
    for name, values in known.items():
        for spelling in (name, *values.get("aliases", ())):
            if key == _key(spelling):
                return spelling, values
    found = _of_transformers(selector)
    if found is None:
        raise UnknownName("model", selector, known)
    return selector, found


@cache
def models() -> Mapping[str, Values]:
    """The table of known models: name -> values of its configuration, with their source."""
    text = (resources.files("wavecast.systems") / "models.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _key(name: str) -> str:
    """The part of a name that counts: without the owner, in lower case."""
    return name.rsplit("/", 1)[-1].lower()


def _json(path: Path) -> Values:
    try:
        values = parse_json(read_text(path))
    except ValueError as error:
        raise UsageError(f"{path}: not JSON: {error}") from error
    if not isinstance(values, dict):
        raise UsageError(f"{path}: no object of fields")
    return values


def _of_transformers(name: str) -> Values | None:
    """The default configuration of a model type of transformers."""
    if name not in READERS:
        return None
    try:
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    except ImportError:
        raise MissingTool(
            f"the default sizes of {name} are in transformers, which is not installed",
            hint="pip install 'wavecast[models]'",
        ) from None
    if name not in CONFIG_MAPPING:
        return None
    return CONFIG_MAPPING[name]().to_dict()


__all__ = ["READERS", "load", "models", "read"]
