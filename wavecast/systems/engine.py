"""What an engine does around the kernels: fusions, scheduling, graphs, and host time.

`engines.toml` has a profile per engine with its version, its source and the status of every number,
and what differs in later releases. `vllm@0.21` names a release, `vllm` the newest.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from typing import Any, Final

from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.ops.attention.libraries import resolve_libraries

Setting = float | str
"""The value of a setting."""
SETTINGS: Final = (
    "batched_tokens",
    "sequences",
    "memory_fraction",
    "captured",
    "poll",
    "wait_steps",
    "wait_share",
    "attention",
    "aiter",
)
"""What a deployment may set, as the engine's command line does: numbers of a profile (those of
tokens and sequences are of all GPUs of an instance), the library of all attention, and `aiter=1`,
which is VLLM_ROCM_USE_AITER=1."""
_ATTENTION: Final = (
    *("attention_prefill", "attention_decode", "latent_prefill", "latent_decode"),
    "sparse_attention",
)
_SHARES: Final = ("memory_fraction", "wait_share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A profile of an engine at a `version`; `release` says why of that one, after its status.
    `measured` is the version whose runs the profile was compared with, "" without such.

    `fused_reduce_norm`: all-reduce, residual and norm are one kernel. `fused_products`: 16-bit
    products and the collectives next to them are one kernel where that is predicted to be faster;
    its buffers take half of `communication_bytes`. `fused_quantisation`: the scalings whose
    activations are quantised in the kernel before the product, where that is not attention;
    `attention_quantisation`: those that attention writes. `rope_kernels`: those that rotate,
    concatenate and write the cache. `plain_absorb`: products with the weights of latent attention
    convert and scale them in every step, and copy the result.
    `expert_kernels`: of `sort` and `quantise`, those launched before the products of experts.
    `head_norm_kernels` and `heads_norm_kernels` are those of norms of queries and keys over one
    head and over all, before rotation; `reduce squares` is a collective. `linear_kernels` are
    those of linear attention next to its convolution, recurrence, norm and products,
    `index_kernels` those of sparse attention's indexer between its products, and
    `shared_gate_kernels` those that weigh the result of shared experts. `router` is the dtype of
    the scores of experts.

    `attention_prefill` and the four fields after it are libraries of `ops.attention`, by commas in
    the order in which they are tried: grouped-query attention, latent attention, and latent
    attention to the keys that an indexer chose. `products_library` is that of block-scaled
    products ("": the best). `experts_tile` (rows, columns, tokens up to which the best tile runs;
    0: the best) with the kernels `experts_part`, and `products_tile` (rows, columns, bytes of K)
    are what block-scaled experts and products run with where the library has no tuned
    configuration; those of `tuned_products` (columns, K) have one. Empty: all are tuned.

    `batched_tokens`: the most tokens of a step; `sequences`: the most sequences.
    `memory_fraction`: the share of the GPU's memory that the engine takes for everything
    (`fraction_of` is `all`), that it takes for weights and cache (`static`), or of what everything
    else leaves that it takes for the cache (`free`); `memory_reserve` bytes less. `mixed`: a step
    may have decoding sequences and chunks of prompts. `graphs`: steps of decoding sequences are
    captured graphs, for the numbers of sequences in `sizes`; a step with prompts of at most
    `prompt_graph` tokens consists of graphs and the kernels of attention. `cache`: dtype of keys
    and values, `sparse_cache` that of models whose indexer chooses keys ("": as `cache`).

    A request is admitted when its prompt fits with the share `reserve` of the outputs to come.
    While sequences decode, the engine looks for new requests every `poll` steps, and one that was
    prefilled elsewhere joins them `handover` steps after its cache arrives. Prompts wait at
    most `wait_steps` decode steps until they fill the share `wait_share` of `batched_tokens`.

    Times in seconds: `host_step` of a step and `host_sequence` for each of its sequences.
    `admission` of a request and `tokenise` for each token of its prompt, one request after the
    other; `request` from then to the scheduler and from it to the client, for all requests at once.
    `asynchronous`: the host prepares a step while the GPU runs the one before. `launch` is what
    every kernel of a step without a graph takes on the host; the experts of a layer take it
    `expert_launches` times. `graph_bytes` and `communication_bytes` are what graphs and the
    buffers of collectives take of every GPU.
    """

    name: str
    version: str
    release: str
    measured: str
    fused_reduce_norm: bool
    fused_products: bool
    fused_quantisation: tuple[str, ...]
    attention_quantisation: tuple[str, ...]
    rope_kernels: tuple[str, ...]
    plain_absorb: bool
    expert_kernels: tuple[str, ...]
    head_norm_kernels: tuple[str, ...]
    heads_norm_kernels: tuple[str, ...]
    linear_kernels: tuple[str, ...]
    index_kernels: tuple[str, ...]
    shared_gate_kernels: tuple[str, ...]
    router: str
    attention_prefill: str
    attention_decode: str
    latent_prefill: str
    latent_decode: str
    sparse_attention: str
    experts_part: str
    experts_tile: tuple[int, ...]
    products_library: str
    products_tile: tuple[int, ...]
    tuned_products: tuple[tuple[int, ...], ...]
    batched_tokens: int
    sequences: int
    memory_fraction: float
    memory_reserve: float
    fraction_of: str
    mixed: bool
    asynchronous: bool
    graphs: bool
    sizes: tuple[int, ...]
    prompt_graph: int
    cache: str
    sparse_cache: str
    reserve: float
    poll: int
    handover: int
    wait_steps: int
    wait_share: float
    host_step: float
    host_sequence: float
    admission: float
    tokenise: float
    request: float
    launch: float
    expert_launches: int
    graph_bytes: float
    communication_bytes: float

    @property
    def captured(self) -> int:
        """The most sequences of a graph."""
        return self.sizes[-1] if self.sizes else 0

    def padded_sequences(self, sequences: int) -> int:
        """The sequences that a decode step computes: those of the next larger graph, if any."""
        index = bisect_left(self.sizes, sequences)
        return self.sizes[index] if self.graphs and index < len(self.sizes) else sequences

    def with_settings(self, settings: Iterable[tuple[str, Setting]]) -> Engine:
        """With other values of `SETTINGS`. Raises UnknownName and UsageError."""
        profile = self
        for name, value in settings:
            if name not in SETTINGS:
                raise UnknownName("setting of an engine", name, SETTINGS)
            if name == "attention":
                resolve_libraries(str(value), "")
                profile = replace(profile, **dict.fromkeys(_ATTENTION, str(value)))
                continue
            if name == "aiter":
                continue  # `engine` has read it
            if isinstance(value, str):
                raise UsageError(f"{name} is {value!r}, not a number")
            if name in _SHARES:
                if not 0 < value <= 1:
                    raise UsageError(f"{name} is {value:g}, not a share")
                reserve = 0.0 if name == "memory_fraction" else profile.memory_reserve
                profile = replace(profile, **{name: value}, memory_reserve=reserve)
                continue
            if not 0 <= value <= 1 << 24 or value != int(value):
                raise UsageError(f"{name} is {value:g}, not a number of 0 to {1 << 24}")
            if name != "wait_steps" and value < 1 and name != "captured":
                raise UsageError(f"{name} is {value:g}, not at least 1")
            if name == "captured":
                profile = profile.up_to(int(value))
            else:
                profile = replace(profile, **{name: int(value)})
        return profile

    def up_to(self, captured: int) -> Engine:
        """With graphs of at most `captured` sequences, and one of exactly those."""
        sizes = sorted({*(size for size in self.sizes if size < captured), captured} - {0})
        return replace(self, sizes=tuple(sizes), graphs=bool(sizes) and self.graphs)

    def over(self, ranks: int) -> Engine:
        """The profile of an instance with `ranks` GPUs that have separate sequences: each captures
        graphs of its sequences and has as many of them as the engine on one GPU."""
        sizes = tuple(size * ranks for size in self.sizes)
        return replace(self, sizes=sizes, sequences=self.sequences * ranks)

    def scale(self, factor: float) -> Engine:
        """With `factor` times the work of the CPU."""
        if factor == 1.0:
            return self
        host = ("host_step", "host_sequence", "admission", "tokenise", "request", "launch")
        return replace(self, **{name: factor * getattr(self, name) for name in host})


def engines() -> Mapping[str, Engine]:
    """The newest profile of every engine by name."""
    return {name: engine(name) for name in _tables()}


def releases(name: str) -> tuple[str, ...]:
    """The releases of an engine that have a profile, the oldest first, whose runs were measured."""
    table = _tables()[name]
    return (table["version"]["value"], *table.get("releases", ()))


def split_release(name: str) -> tuple[str, str]:
    """Engine and release of `vllm@0.21.0`; the newest release where none is named, and that of a
    patch (`0.21.0`) where it has no profile. Raises UnknownName, UsageError."""
    engine, at, release = name.lower().partition("@")
    if engine not in _tables():
        raise UnknownName("engine", engine, _tables())
    versions = releases(engine)
    if not at:
        return engine, versions[-1]
    for version in reversed(versions):
        if f"{release}.".startswith(f"{version}."):
            return engine, version
    raise UsageError(
        f"no profile of release {release!r} of {engine}", hint=f"releases: {', '.join(versions)}"
    )


@cache
def engine(name: str, generation: str = "", *, aiter: bool = False, model_type: str = "") -> Engine:
    """The profile of an engine (`split_release`) as it runs models of a type of transformers on a
    generation of GPUs, with the switch `aiter` or without. What is stated for a generation or a
    type holds in later releases until one states another value for it. Raises as `split_release`,
    and UsageError without such a switch."""
    name, release = split_release(name)
    rows = _rows(name, release, generation, aiter=aiter, model_type=model_type)
    version = rows["version"]
    return Engine(
        name=name,
        version=release,
        release=f"{version['status']}: {version['source']}",
        measured="" if "base" in _tables()[name] else releases(name)[0],
        **{key: _value(key, rows[key]) for key in _ROWS},
    )


def _rows(
    name: str, release: str, generation: str, *, aiter: bool, model_type: str
) -> dict[str, Mapping[str, Any]]:
    """The rows of a profile by field, over those of the newest release of its `base`."""
    table, versions = _tables()[name], releases(name)
    followed = versions[: versions.index(release) + 1]
    parts = [table, *(table["releases"][version] for version in followed[1:])]
    switched = [part.get("aiter", {}) for part in parts] if aiter else []
    if aiter and not any(switched):
        raise UsageError(f"{name} {release} has no setting aiter")
    chips = [part.get("on", {}).get(generation, {}) for part in (*parts, *switched)]
    models = [part.get("of", {}).get(model_type, {}) for part in parts]
    rows = {}
    if "base" in table:
        base = table["base"]["value"]
        rows = _rows(base, releases(base)[-1], generation, aiter=False, model_type=model_type)
    return rows | {key: row for part in (*parts, *chips, *models) for key, row in part.items()}


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    text = (resources.files("wavecast.systems") / "engines.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _value(key: str, row: Mapping[str, Any]) -> Any:
    value = row["value"]
    if key == "sizes":
        return _sizes(value)
    if isinstance(value, list):
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return value


def _sizes(ranges: Iterable[tuple[int, int, int]]) -> tuple[int, ...]:
    """Sizes of graphs from ranges of first, last and step."""
    return tuple(
        sorted({size for first, last, step in ranges for size in range(first, last + 1, step)})
    )


_ROWS: Final = tuple(
    field.name
    for field in fields(Engine)
    if field.name not in ("name", "version", "release", "measured")
)
"""Fields that are rows of `engines.toml`."""

__all__ = ["SETTINGS", "Engine", "Setting", "engine", "engines", "releases", "split_release"]
