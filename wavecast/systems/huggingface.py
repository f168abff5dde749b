"""Configurations of Hugging Face models, as layers.

`config_of` takes the values of a `config.json`. Which values a model has follows from its
`model_type`: every type here is one whose layers were compared with what transformers builds of it,
for every field (`config_effects.py`); another type, or a field that may change layers and is not
read, is an error, not a guess.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from wavecast.errors import MissingTool, UnknownName, UsageError
from wavecast.extras import install_hint
from wavecast.files import parse_json, read_text
from wavecast.systems.architecture import Layer, ModelArchitecture
from wavecast.systems.config_effects import check_unread, defaults
from wavecast.systems.config_fields import TEXT_CONFIGS, Fields, Values
from wavecast.systems.config_nesting import is_tied
from wavecast.systems.deepseek_configs import DEEPSEEK_READERS
from wavecast.systems.gpt_configs import GPT_READERS, STYLES, DecoderStyle
from wavecast.systems.llama_configs import LLAMA_READERS
from wavecast.systems.vector_configs import VECTORS

READERS: Final[Mapping[str, Callable[[Fields], list[Layer]]]] = {
    **LLAMA_READERS,
    **DEEPSEEK_READERS,
    **GPT_READERS,
}
"""`model_type` -> what makes its layers."""


class ModelConfig(NamedTuple):
    """The configuration of a model: its name, its values as Hugging Face names them, and what is
    read of them: the type of its text, the layers one by one, and the architecture."""

    name: str
    values: Values
    kind: str
    layers: tuple[Layer, ...]
    architecture: ModelArchitecture


def config_of(values: Values, name: str) -> ModelConfig:
    """A configuration that is read; where it has a `text_config`, at any depth, that is what is
    read as its text.

    Raises UsageError for a missing or absurd field, and for one that is not read and may change
    layers; UnknownName for another `model_type`.
    """
    kind, text = _text_values(values, name)
    fields = Fields(name, text, defaults(kind))
    layers = layers_of(kind, fields)
    model = architecture(kind, fields, layers)
    check_unread(kind, fields)
    return ModelConfig(name, values, kind, layers, model)


def read(values: Values, name: str) -> ModelArchitecture:
    """The architecture of a configuration. Raises as `config_of`."""
    return config_of(values, name).architecture


def architecture(kind: str, fields: Fields, layers: Sequence[Layer]) -> ModelArchitecture:
    """What a type makes of its fields, with the layers that it makes of them."""
    layer_counts: dict[Layer, int] = {}
    for layer, run in groupby(layers):
        layer_counts[layer] = layer_counts.get(layer, 0) + len(list(run))
    style = STYLES[kind](fields) if kind in STYLES else DecoderStyle()
    hidden, streams = _hidden(fields), _streams(fields)
    return ModelArchitecture(
        name=fields.name,
        hidden=hidden,
        vocabulary=fields.integer("vocab_size"),
        layers=tuple(layer_counts.items()),
        tied=fields.switch("tie_word_embeddings"),
        context=fields.integer("max_position_embeddings", "n_positions", default=0, least=0),
        vectors=VECTORS[kind](fields).outside(hidden, streams),
        norm=style.norm,
        positions=style.positions,
        streams=streams,
    )


def layers_of(kind: str, fields: Fields) -> tuple[Layer, ...]:
    """The layers that a type makes of its fields, one by one, with their vectors."""
    style, hidden, streams = VECTORS[kind](fields), _hidden(fields), _streams(fields)
    return tuple(style.apply(layer, hidden, streams) for layer in READERS[kind](fields))


def _hidden(fields: Fields) -> int:
    return fields.integer("hidden_size", "n_embd", "n_embed")


def _streams(fields: Fields) -> int:
    return fields.optional("hc_mult") or 1


def _text_values(values: Values, name: str) -> tuple[str, Values]:
    """The type and the values of the text of a configuration. Which level ties its embedding is in
    `config_nesting`. Raises UsageError, UnknownName."""
    kind, around = values.get("model_type"), list[tuple[str, Values]]()
    while key := next((key for key in TEXT_CONFIGS if values.get(key)), None):
        inner = values[key]
        if not isinstance(inner, Mapping):
            raise UsageError(f"{name}: {key} is {inner!r}, not an object")
        around.append((str(kind), values))
        usual = _text_type(kind) if key == "text_config" else f"{kind}_thinker"
        kind, values = inner.get("model_type", usual), inner
    if kind is None:
        raise UsageError(f"{name}: no field model_type")
    if not isinstance(kind, str):
        raise UsageError(f"{name}: model_type is {kind!r}, not a name")
    if kind not in READERS and _text_type(kind) in READERS:
        kind = _text_type(kind)  # a text_config whose fields are not nested
        values = {"tie_word_embeddings": False, **values}
    if kind not in READERS:
        raise UnknownName("model_type", kind, READERS)
    if around:
        values = {**values, "tie_word_embeddings": is_tied(name, around, kind, values)}
    return kind, values


def _text_type(kind: Any) -> str:
    """The type of the text in a type that has several kinds of input, as transformers names it."""
    return f"{str(kind).removesuffix('_thinker')}_text"


def load(selector: str) -> ModelConfig:
    """A configuration: a `config.json`, a folder with one, a name of
    `models.toml`, or a model type of transformers (its default sizes).

    Raises UsageError for a file that cannot be read, UnknownName for a name nobody knows,
    MissingTool for a model type without transformers, and as `config_of`.
    """
    path = Path(selector)
    if path.is_dir():
        path /= "config.json"
    if path.suffix == ".json" or path.exists():
        nameless = path.name == "config.json" and path.parent.name
        return config_of(_json(path), path.parent.name if nameless else path.stem)
    configs = models()
    key = _key(selector)
    for name, values in configs.items():
        for spelling in (name, *values.get("aliases", ())):
            if key == _key(spelling):
                return config_of(values, spelling)
    default_values = _of_transformers(selector)
    if default_values is not None:
        return config_of(default_values, selector)
    raise UnknownName("model", selector, configs)


@cache
def models() -> Mapping[str, Values]:
    """The table of known models: name -> values of its configuration, with their source. What an
    entry is `like` is above it."""
    text = (resources.files("wavecast.systems") / "models.toml").read_text(encoding="utf-8")
    known: dict[str, Values] = {}
    for name, values in tomllib.loads(text).items():
        other = {key: value for key, value in known.get(values.get("like"), {}).items()
                 if key not in ("aliases", "quantization_config")}  # fmt: skip
        known[name] = {**other, **values, **dict.fromkeys(values.get("null", ()))}
    return known


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
    if name not in READERS and _text_type(name) not in READERS:
        return None
    try:
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    except ImportError:
        raise MissingTool(
            f"the default sizes of {name} are in transformers, which is not installed",
            hint=install_hint("models"),
        ) from None
    if name not in CONFIG_MAPPING:
        return None
    return CONFIG_MAPPING[name]().to_dict()


__all__ = [
    "READERS",
    "ModelConfig",
    "architecture",
    "config_of",
    "layers_of",
    "load",
    "models",
    "read",
]
