"""Small configurations of the model types that Wavecast reads, their fields, and values to change
them to."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from wavecast.systems import huggingface

SMALL = {
    "vocab_size": 96, "hidden_size": 64, "n_embd": 64, "intermediate_size": 48,
    "intermediate_size_mlp": 80, "moe_intermediate_size": 24, "ffn_dim": 144,
    "shared_expert_intermediate_size": 40, "num_hidden_layers": 6, "n_layer": 6,
    "num_attention_heads": 4, "n_head": 4, "num_key_value_heads": 2, "head_dim": 24,
    "num_experts": 8, "num_local_experts": 8, "n_routed_experts": 8, "num_experts_per_tok": 3,
    "n_group": 2, "topk_group": 2, "kv_lora_rank": 20, "q_lora_rank": 28, "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 8, "v_head_dim": 10, "index_n_heads": 3, "index_head_dim": 16,
    "index_topk": 5, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "linear_key_head_dim": 8, "linear_value_head_dim": 12, "linear_conv_kernel_dim": 4,
    "word_embed_proj_dim": 64, "max_position_embeddings": 128, "n_positions": 128, "o_groups": 2,
    "o_lora_rank": 12,
}  # fmt: skip
"""Sizes that are small, and unlike where a product could hide which is which."""
WINDOWS = {"sliding_window": 7, "attention_chunk_size": 9, "max_window_layers": 2}
"""What is set where another field switches it on."""
TYPES = {
    "layer_types": (
        "full_attention", "sliding_attention", "chunked_attention", "linear_attention",
        "indexed_attention", "deepseek_sparse_attention", "compressed_sparse_attention",
        "heavily_compressed_attention",
    ),
    "mlp_layer_types": ("dense", "sparse", "moe", "hash_moe"),
    "indexer_types": ("full", "shared"),
    "index_topk_pattern": ("full", "shared"),
}  # fmt: skip
"""Entries of lists of layers."""
WORDS = ("gelu", "relu", "sigmoid", "greedy")
UNMEASURED = ("layerdrop", "rope_parameters", "rope_scaling", "quantization_config")
"""Fields without variants: dropped layers of training, positions, and formats (`precision.py`)."""
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
SECTIONS = {
    **{kind: [2, 3, 3] for kind in ("qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text")},
    "qwen3_omni_moe_text": [4, 4, 4],
}
"""Positions of time, height and width in half a head."""
RATES = {"compressed_sparse_attention": 3, "heavily_compressed_attention": 6}


def base(kind: str) -> dict[str, Any]:
    """A small configuration of a type: sizes that its class has, all else absent."""
    own = class_defaults(kind)
    values: dict[str, Any] = {
        name: size
        for name, size in SMALL.items()
        if name in own and target_of(kind, name) in (name, None)
    }
    if own.get("sliding_window") and "use_sliding_window" not in own:
        values["sliding_window"] = WINDOWS["sliding_window"]
    if "attention_chunk_size" in own:
        values["attention_chunk_size"] = WINDOWS["attention_chunk_size"]
    if "compress_rates" in own:
        values["compress_rates"] = RATES
    if kind in SECTIONS:
        values["rope_parameters"] = {**ROPE, "mrope_section": SECTIONS[kind]}
    return {"model_type": kind, **values}


def switched(kind: str) -> dict[str, Any]:
    """The small configuration with windows, and with what is off by default switched on: some
    fields change layers only together with two others."""
    own = class_defaults(kind)
    windows = {name: size for name, size in WINDOWS.items() if name in own}
    switches_on = {
        name: True for name, value in own.items() if name.startswith("use_") and value is False
    }
    return {**base(kind), **windows, **switches_on}


def class_defaults(kind: str) -> dict[str, Any]:
    """The fields of a class with what it has for absent ones, and other names of them."""
    config = CONFIG_MAPPING[kind]
    own = {field.name: field.default for field in dataclasses.fields(config)}
    for name, target in config.attribute_map.items():
        own.setdefault(name, own.get(target))
    return {name: value for name, value in own.items() if _plain(value)}


def target_of(kind: str, name: str) -> str | None:
    """The field of the class that another name means; None for a field without one."""
    names = {field.name for field in dataclasses.fields(CONFIG_MAPPING[kind])}
    target = CONFIG_MAPPING[kind].attribute_map.get(name)
    return None if name in names else target


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, list, dict, tuple))


def every_field(kind: str) -> dict[str, Any]:
    """Fields that change something or might: of the class, of its code, and of the modelling."""
    config = CONFIG_MAPPING[kind]
    found = class_defaults(kind)
    modelling = config.__module__.replace("configuration_", "modeling_")
    module = importlib.import_module(modelling)
    own_class = ast.parse(inspect.getsource(config))
    for name in (*_taken(own_class), *_asked(ast.parse(inspect.getsource(module)))):
        found.setdefault(name, None)
    methods = dir(PreTrainedConfig)
    return {
        name: value
        for name, value in found.items()
        if not name.startswith("_") and name not in methods
    }


def _taken(tree: ast.AST) -> Iterator[str]:
    """Names in `kwargs.pop("name")`, `kwargs.get("name")` and the like."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "kwargs"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def _asked(tree: ast.AST) -> Iterator[str]:
    """Names in `getattr(config, "name")` and `hasattr(config, "name")`."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "hasattr")
            and ast.unparse(node.args[0]).endswith("config")
            and isinstance(node.args[1], ast.Constant)
        ):
            yield str(node.args[1].value)


def variants(name: str, default: Any, depth: int) -> list[Any]:
    """Values of a field that its type allows, and some more."""
    if name in UNMEASURED:
        return []
    if name in WINDOWS:
        return [WINDOWS[name], 4, None, 0]
    if name in TYPES:
        return _lists_of_types(name, depth)
    if name.endswith(("_layers", "_ratios")) and not isinstance(default, int):
        return [[], [1], [0, 2], list(range(depth)), [0] * depth, [1, 0] * (depth // 2),
                [4, 128, 0] * (depth // 3)]  # fmt: skip
    if name.endswith("_token_id"):
        return [1]
    if isinstance(default, bool):
        return [not default]
    if isinstance(default, int):
        least = () if name.endswith("_dim") else (1,)  # positions rotate pairs
        return [default * 2, default + 1, *least, 0, None]
    if isinstance(default, float):
        return [default * 2 + 0.5]
    if isinstance(default, str):
        return list(WORDS)
    if isinstance(default, dict):
        return [{**default, key: value * 2} for key, value in default.items() if value]
    if name.endswith("_dim"):
        return [2, 12, 40]  # positions rotate pairs
    return [2, True, 1, 3, 5, 40, False, 0.5]


def _lists_of_types(name: str, depth: int) -> list[Any]:
    found: list[Any] = [[kind] * depth for kind in TYPES[name]]
    found += [[*pair] * (depth // 2) for pair in itertools.permutations(TYPES[name], 2)]
    return [*found, "FS" * (depth // 2), "F" * depth] if name.endswith("_pattern") else found


def switches(name: str, default: Any) -> bool:
    """Whether a field may switch something on: no size, rate, token, name or output."""
    if name in UNMEASURED or name.endswith(("_token_id", "_dropout", "_pdrop", "_act")):
        return False
    if name.startswith(("output_", "summary_", "use_cache", "norm_", "scale_")):
        return False
    return not isinstance(default, (float, str))


def few(name: str, default: Any, depth: int) -> list[Any]:
    """The variants of one field of a pair: one per list of types that the name can have."""
    found = variants(name, default, depth)
    if name in TYPES:
        first, *others = TYPES[name]
        return [[first, other] * (depth // 2) for other in others[:3]]
    if name.endswith("_layers"):
        return [[0, 2]] if not isinstance(default, int) else [2]
    return found[:3] if default is None else found[:2]


def depth_of(values: Mapping[str, Any]) -> int:
    return values.get("num_hidden_layers") or values["n_layer"]


def base_fields() -> dict[str, Any]:
    """Fields that every class has."""
    every = {field.name: field.default for field in dataclasses.fields(PreTrainedConfig)}
    return {name: value for name, value in every.items() if _plain(value)}


def measurable() -> list[str]:
    """The types that Wavecast reads and transformers has a class for."""
    return [kind for kind in huggingface.READERS if kind in CONFIG_MAPPING]


__all__ = [
    "UNMEASURED",
    "WINDOWS",
    "base",
    "base_fields",
    "class_defaults",
    "depth_of",
    "every_field",
    "few",
    "measurable",
    "switched",
    "switches",
    "target_of",
    "variants",
]
