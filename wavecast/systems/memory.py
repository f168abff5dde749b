"""What a model takes of every GPU's memory, and how many tokens the rest can cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from wavecast import dtypes
from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.systems.architecture import (
    CompressedAttention,
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    LinearAttention,
    ModelArchitecture,
)
from wavecast.systems.engine import Engine
from wavecast.systems.parallel import Parallelism
from wavecast.systems.precision import Precision

_STATE_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes on one GPU by use (`parts`), the bytes that the engine may take (`available`), and the
    bytes that a cached token (`token`) and a sequence (`sequence`: state of linear attention) take.
    """

    parts: Mapping[str, float]
    available: float
    token: float
    sequence: float

    @property
    def pool(self) -> float:
        """Bytes left for keys, values and states; negative where the model does not fit."""
        return self.available - sum(self.parts.values())

    @property
    def fits(self) -> bool:
        """Whether anything is left for a cache."""
        return self.pool > 0

    def share(self, groups: int) -> MemoryUse:
        """What one of `groups` groups of sequences has, which divide the pool."""
        return replace(self, available=self.available - self.pool * (1 - 1 / groups))

    def sequences(self, context: int) -> int:
        """Sequences of `context` tokens that the pool holds."""
        each = self.token * context + self.sequence
        return max(0, int(self.pool // each)) if each else 1 << 30


def memory(
    architecture: ModelArchitecture,
    precision: Precision,
    parallel: Parallelism,
    engine: Engine,
    device: Device,
    *,
    draft: ModelArchitecture | None = None,
) -> MemoryUse:
    """What one GPU stores, with the layers of a `draft`.

    Raises MissingFact where the size of its memory is unknown.
    """
    if device.get("mem_size") is None:
        raise MissingFact(f"the memory of {device.id} is not known")
    size = device.facts.integer("mem_size", "B")
    weights = _weights(architecture, precision, parallel)
    if draft:
        shared = ("embeddings", "other weights")
        draft_weights = _weights(draft, precision, parallel)
        weights["draft"] = sum(size for name, size in draft_weights.items() if name not in shared)
    rest = {
        "activations": _activations(architecture, parallel, engine),
        "graphs": engine.graph_bytes if engine.graphs else 0.0,
        "communication": engine.communication_bytes if parallel.tensor > 1 else 0.0,
    }
    footprint = sum(weights.values()) + sum(rest.values())
    available = size * engine.memory_fraction - engine.memory_reserve
    if engine.fraction_of == "static":
        available = min(size, available + sum(rest.values()))
    elif engine.fraction_of == "free":
        available = footprint + engine.memory_fraction * (size - footprint)
    return MemoryUse(
        {**weights, **rest},
        available,
        sum(_token(a, precision, parallel) for a in (architecture, draft) if a),
        sum(_state(a, parallel) for a in (architecture, draft) if a),
    )


def _weights(
    architecture: ModelArchitecture, precision: Precision, parallel: Parallelism
) -> dict[str, float]:
    hidden, tensor = architecture.hidden, parallel.tensor
    sizes = {"attention weights": 0.0, "dense weights": 0.0, "expert weights": 0.0}
    for layer, count in architecture.layers:
        projections = layer.attention.parameters(hidden) / parallel.attention_tensor
        sizes["attention weights"] += count * projections * precision.attention.bytes
        mlp = layer.mlp
        if isinstance(mlp, ExpertMlp):
            experts = mlp.expert_parameters(hidden) / max(tensor, parallel.expert)
            experts *= (mlp.experts + parallel.redundant) / mlp.experts
            rest = mlp.parameters(hidden) - mlp.expert_parameters(hidden)
            rest /= 1 if parallel.dispatches(mlp.topk) else tensor
            sizes["expert weights"] += count * experts * precision.experts.bytes
            sizes["dense weights"] += count * rest * precision.dense.bytes
        else:
            rest = mlp.parameters(hidden) / tensor
            sizes["dense weights"] += count * rest * precision.dense.bytes
    rest = architecture.depth * architecture.mixing + architecture.vector_parameters
    sizes["dense weights"] += rest * precision.head.bytes
    sizes["embeddings"] = architecture.embedding_parameters / tensor * precision.head.bytes
    sizes["other weights"] = architecture.extra_parameters / tensor * precision.head.bytes
    return {
        name: size / (parallel.pipeline if name != "embeddings" else 1)
        for name, size in sizes.items()
    }


def _activations(architecture: ModelArchitecture, parallel: Parallelism, engine: Engine) -> float:
    """The largest step: hidden states twice, and the widest intermediate, in 16 bits; logits."""
    widest = max(
        (layer.mlp.topk * layer.mlp.inter if isinstance(layer.mlp, ExpertMlp) else layer.mlp.inter)
        for layer, _ in architecture.layers
    )
    tokens = min(engine.batched_tokens, 1 << 15)
    hidden = 2 * architecture.hidden + 3 * widest / parallel.tensor
    logits = min(engine.sequences, 1024) * architecture.vocabulary * 4 / parallel.tensor
    return tokens * hidden * 2 + logits


def _token(architecture: ModelArchitecture, precision: Precision, parallel: Parallelism) -> float:
    """Bytes of a cached token. Heads of keys are replicated where GPUs are more; the latent vector
    always is."""
    size = dtypes.lookup(precision.cache).bytes
    total = 0.0
    for layer, count in architecture.layers:
        match layer.attention:
            case GroupedQueryAttention() as attention if not attention.window:
                heads = max(1, attention.kv_heads // parallel.attention_tensor)
                total += count * 2 * heads * attention.head_dim * size
            case LatentAttention() | CompressedAttention() as attention:
                total += count * (attention.cached_elements * size + attention.index_elements)
            case _:
                pass
    return total / parallel.pipeline


def _state(architecture: ModelArchitecture, parallel: Parallelism) -> float:
    """Bytes of a sequence that do not grow: states of linear attention, and sliding windows."""
    total = 0.0
    for layer, count in architecture.layers:
        match layer.attention:
            case LinearAttention() as attention:
                state = attention.state_elements / parallel.attention_tensor
                total += count * state * _STATE_BYTES
            case GroupedQueryAttention() as attention if attention.window:
                heads = max(1, attention.kv_heads // parallel.attention_tensor)
                total += count * 2 * heads * attention.head_dim * 2 * attention.window
            case CompressedAttention() as attention:
                total += count * attention.head_dim * 2 * attention.window
            case _:
                pass
    return total / parallel.pipeline


__all__ = ["MemoryUse", "memory"]
