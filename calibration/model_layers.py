"""The layers of a small model in one form: as transformers builds and runs it, and as Wavecast
reads its configuration. `calibration.config_fields` compares both for every field.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
import transformers
from torch import nn
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from wavecast.systems import huggingface
from wavecast.systems.architecture import (
    Attention,
    CompressedAttention,
    DenseMlp,
    GroupedQueryAttention,
    LatentAttention,
    Layer,
    LinearAttention,
    ModelArchitecture,
)

TOKENS = 24
"""Tokens of the prompt that a small model runs; windows, chunks and chosen keys are fewer."""
REFUSED = (
    ArithmeticError, AttributeError, AssertionError, IndexError, KeyError, NameError,
    NotImplementedError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""What the classes of transformers raise for a configuration that they do not take."""


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """What is compared of a layer: elements of all its weights, experts per token, heads (of
    queries and of keys) and their sizes (of keys and of values), whether positions rotate, how many
    keys each query sees, and elements of the cache after the prompt and of the state of linear
    attention."""

    parameters: int
    topk: int = 0
    heads: tuple[int, ...] = ()
    rotary: bool = False
    seen: tuple[int, ...] = ()
    cached: int = 0
    state: int = 0


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The layers in order, and elements of the weights outside of them."""

    layers: tuple[LayerFacts, ...]
    rest: int


@dataclass(slots=True)
class _Seen:
    """What one layer did in a run."""

    heads: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    rotary: bool = False


@dataclass
class _Probe:
    """Records the attention of each layer of a run instead of computing it."""

    layers: dict[int, _Seen] = field(default_factory=dict)
    current: int = 0

    def of(self, index: int) -> _Seen:
        return self.layers.setdefault(index, _Seen())

    def attention(self, module, query, key, value, attention_mask, *_, **__):
        seen = self.of(getattr(module, "layer_idx", self.current))
        seen.heads = (query.shape[1], key.shape[1], key.shape[-1], value.shape[-1])
        seen.keys = _visible(attention_mask, query.shape[2], key.shape[2])
        out = query.new_zeros(query.shape[0], query.shape[2], query.shape[1], value.shape[-1])
        return out, None

    def rotation(self, function):
        def recorded(*args, **kwargs):
            self.of(self.current).rotary = True
            return function(*args, **kwargs)

        return recorded


def _visible(mask: torch.Tensor | None, queries: int, keys: int) -> tuple[int, ...]:
    """How many keys each query sees; without a mask, the causal ones."""
    if mask is None:
        return tuple(keys - queries + query + 1 for query in range(queries))
    open_ = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    return tuple(int(row) for row in open_[0, 0].sum(-1))


def built(values: Mapping[str, Any], *, device: str = "cpu") -> nn.Module | None:
    """The model of a configuration; None where transformers refuses it."""
    with quiet():
        try:
            config = CONFIG_MAPPING[values["model_type"]].from_dict(copy.deepcopy(dict(values)))
            config._attn_implementation = "eager"
            with torch.device(device):
                found = _class(config)
                make = found.from_config if hasattr(found, "from_config") else found
                return make(config).eval()
        except REFUSED:
            return None
        except Exception as error:  # its checks of dataclasses have their own classes of errors
            if type(error).__name__.startswith("Strict"):
                return None
            raise


def _class(config: Any) -> Any:
    """The class that builds a model; texts of models with several kinds of input have no head, and
    some are in no list."""
    kind = type(config)
    if kind in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        return transformers.AutoModelForCausalLM
    if kind in transformers.MODEL_MAPPING:
        return transformers.AutoModel
    space = vars(importlib.import_module(kind.__module__.replace("configuration_", "modeling_")))
    return next(
        found
        for name, found in space.items()
        if name.endswith("TextModel") and getattr(found, "config_class", None) is kind
    )


def has_head(kind: str) -> bool:
    """Whether transformers builds an output projection for a type."""
    return CONFIG_MAPPING[kind] in transformers.MODEL_FOR_CAUSAL_LM_MAPPING


def parameters(module: nn.Module) -> int:
    """Elements of all weights of a module."""
    return sum(parameter.numel() for parameter in module.parameters())


def reference(values: Mapping[str, Any]) -> ModelFacts | None:
    """What transformers builds and runs; None where it refuses the configuration."""
    model = built(values)
    if model is None:
        return None
    found = _layers(model)
    probe = _Probe()
    try:
        cache = _run(model, found, probe)
    except REFUSED:
        return None
    layers = tuple(
        _facts_of_module(layer, probe.of(index), cache, index) for index, layer in enumerate(found)
    )
    return ModelFacts(layers, parameters(model) - sum(layer.parameters for layer in layers))


def _layers(model: nn.Module) -> list[nn.Module]:
    """The decoder layers: the longest list of modules that is not inside another."""
    lists = [
        (name, part) for name, part in model.named_modules() if isinstance(part, nn.ModuleList)
    ]
    outer = [part for name, part in lists if not any(name.startswith(f"{n}.") for n, _ in lists)]
    return list(max(outer, key=len))


def _run(model: nn.Module, layers: list[nn.Module], probe: _Probe) -> Any:
    """One prompt; the cache of keys and states that it leaves."""
    space = importlib.import_module(type(model).__module__)
    hooks = [
        layer.register_forward_pre_hook(lambda *_, at=index: setattr(probe, "current", at))
        for index, layer in enumerate(layers)
    ]
    rotations = {
        name: probe.rotation(getattr(space, name))
        for name in vars(space)
        if name.startswith("apply_") and "rotary" in name
    }
    try:
        with contextlib.ExitStack() as stack, quiet(), torch.no_grad():
            for name, function in rotations.items():
                stack.enter_context(mock.patch.object(space, name, function))
            if hasattr(space, "eager_attention_forward"):
                patch = mock.patch.object(space, "eager_attention_forward", probe.attention)
                stack.enter_context(patch)
            tokens = torch.arange(TOKENS)[None] % 16
            return model(tokens, use_cache=True).past_key_values
    finally:
        for hook in hooks:
            hook.remove()


def _facts_of_module(layer: nn.Module, seen: _Seen, cache: Any, index: int) -> LayerFacts:
    named: dict[str, Any] = dict(layer.named_modules())
    cached_layers = getattr(cache, "layers", ())  # none of the old caches, nor with cross-attention
    own = cached_layers[index] if cached_layers else None
    heads, keys = seen.heads, seen.keys
    if not heads and isinstance(getattr(own, "keys", None), torch.Tensor):
        heads, keys = _heads_of_cache(named.values(), own)
    return LayerFacts(
        parameters(layer),
        _topk(named.values()),
        heads,
        seen.rotary and bool(heads),
        keys,
        _cached(named, heads, own),
        _state(own),
    )


def _topk(modules: Iterable[Any]) -> int:
    counts = (getattr(module, "top_k", 0) for module in modules)
    return next((count for count in counts if isinstance(count, int) and count), 0)


def _cached(named: Mapping[str, Any], heads: tuple[int, ...], own: Any) -> int:
    """Elements of the cache after the prompt: of latent attention and its indexer as engines
    cache, of compressed keys those of the cache itself."""
    compressed = getattr(own, "compressed_kv", None)
    if compressed is not None:
        return sum(entries.numel() for entries in compressed.values() if entries is not None)
    rows = {
        name.rsplit(".", 1)[-1]: module.weight.shape[0]
        for name, module in named.items()
        if name.endswith(("kv_a_proj_with_mqa", "indexer.wk"))
    }
    if rows:
        return TOKENS * sum(rows.values())
    return TOKENS * heads[1] * (heads[2] + heads[3]) if heads else 0


def _state(cached: Any) -> int:
    """Elements of the state of linear attention, and of the tokens that its convolution keeps:
    engines keep one less than it reads."""
    if not hasattr(cached, "recurrent_states"):
        return 0
    recurrent, convolved = (
        next(iter(states.values())) for states in (cached.recurrent_states, cached.conv_states)
    )
    return recurrent.numel() + convolved[..., 1:].numel()


def _heads_of_cache(modules: Iterable[Any], cached: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Heads and keys of a layer whose attention is no function to record (BLOOM, Falcon): from its
    cache, for which Falcon repeats heads of keys. All keys are seen."""
    found = [m for m in modules if isinstance(getattr(m, "num_heads", None), int)]
    module = next((m for m in found if hasattr(m, "num_kv_heads")), found[0])
    keys = getattr(module, "num_kv_heads", cached.keys.shape[1])
    shape = (module.num_heads, keys, cached.keys.shape[-1], cached.values.shape[-1])
    return shape, tuple(range(1, TOKENS + 1))


def reading(values: Mapping[str, Any]) -> ModelFacts:
    """What Wavecast reads. Raises UsageError."""
    config = huggingface.config_of(values, "config")
    model = config.architecture
    layers = tuple(_facts_of_layer(layer, model) for layer in config.layers)
    head = 0 if has_head(values["model_type"]) or model.tied else model.vocabulary * model.hidden
    return ModelFacts(layers, model.embedding_parameters + model.vectors - head)


def _facts_of_layer(layer: Layer, model: ModelArchitecture) -> LayerFacts:
    mlp, hidden = layer.mlp, model.hidden
    total = layer.attention.parameters(hidden) + mlp.parameters(hidden) + model.mixing
    topk = 0 if isinstance(mlp, DenseMlp) else mlp.topk
    return LayerFacts(total + model.vectors_of(layer), topk, *_attention_facts(layer.attention))


def _attention_facts(
    attention: Attention,
) -> tuple[tuple[int, ...], bool, tuple[int, ...], int, int]:
    causal = range(1, TOKENS + 1)
    match attention:
        case GroupedQueryAttention(heads, keys, size):
            return (
                (heads, keys, size, size),
                attention.rotary,
                tuple(attention.keys_seen(length) for length in causal),
                TOKENS * attention.cached_elements,
                0,
            )
        case LatentAttention(heads):
            topk = attention.indexer.topk if attention.indexer else TOKENS
            size = attention.nope + attention.rope
            return (
                (heads, heads, size, attention.value),
                True,
                tuple(min(length, topk) for length in causal),
                TOKENS * (attention.cached_elements + attention.index_elements),
                0,
            )
        case LinearAttention():
            return ((), False, (), 0, attention.state_elements)
        case CompressedAttention(heads):
            index = attention.indexer.dim if attention.indexer else 0
            window = 2 * TOKENS * attention.head_dim
            entries = (attention.head_dim + index) * (TOKENS // (attention.rate or TOKENS))
            return (
                (heads, 1, attention.head_dim, attention.head_dim),
                True,
                tuple(_compressed(attention, length) for length in causal),
                entries if attention.rate else window,
                0,
            )


def _compressed(attention: CompressedAttention, length: int) -> int:
    entries = length // attention.rate if attention.rate else 0
    if attention.indexer:
        entries = min(entries, attention.indexer.topk)
    return min(length, attention.window) + entries


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without warnings of transformers, whose configurations here are odd on purpose."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


__all__ = [
    "REFUSED",
    "LayerFacts",
    "ModelFacts",
    "built",
    "parameters",
    "quiet",
    "reading",
    "reference",
]
