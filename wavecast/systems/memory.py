"""What a model takes of every GPU's memory, and how many tokens the rest can cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wavecast import dtypes
from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.systems.architecture import (
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    LinearAttention,
    ModelArchitecture,
)
from wavecast.systems.engine import Engine
from wavecast.systems.parallel import Parallelism
from wavecast.systems.precision import Precision

COMMUNICATION: Final = 1.0 * 2**30
"""Bytes of the buffers of a communication library and of engines' own all-reduce. Assumed."""
GRAPHS: Final = 1.5 * 2**30
"""Bytes of captured graphs and their pools. Assumed."""
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
) -> MemoryUse:
    """What one GPU holds. Raises MissingFact where the size of its memory is unknown."""
    if device.get("mem_size") is None:
        raise MissingFact(f"the memory of {device.id} is not known")
    available = device.facts.integer("mem_size", "B") * engine.memory_fraction
    return MemoryUse(
        {
            **_weights(architecture, precision, parallel),
            "activations": _activations(architecture, parallel, engine),
            "graphs": GRAPHS if engine.graphs else 0.0,
            "communication": COMMUNICATION if parallel.tensor > 1 else 0.0,
        },
        available,
        _token(architecture, precision, parallel),
        _state(architecture, parallel),
    )


def _weights(
    architecture: ModelArchitecture, precision: Precision, parallel: Parallelism
) -> dict[str, float]:
    hidden, tensor = architecture.hidden, parallel.tensor
    found = {"attention weights": 0.0, "dense weights": 0.0, "expert weights": 0.0}
    for layer, count in architecture.layers:
        projections = layer.attention.parameters(hidden) / parallel.attention_tensor
        found["attention weights"] += count * projections * precision.attention.bytes
        mlp = layer.mlp
        if isinstance(mlp, ExpertMlp):
            experts = mlp.expert_parameters(hidden) / max(tensor, parallel.expert)
            rest = mlp.parameters(hidden) - mlp.expert_parameters(hidden)
            rest /= 1 if parallel.wide else tensor
            found["expert weights"] += count * experts * precision.experts.bytes
            found["dense weights"] += count * rest * precision.dense.bytes
        else:
            rest = mlp.parameters(hidden) / tensor
            found["dense weights"] += count * rest * precision.dense.bytes
    embeddings = architecture.vocabulary * hidden * (1 if architecture.tied else 2)
    found["embeddings"] = embeddings / tensor * precision.head.bytes
    found["other weights"] = architecture.extra_parameters / tensor * precision.head.bytes
    return {
        name: size / (parallel.pipeline if name != "embeddings" else 1)
        for name, size in found.items()
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
            case LatentAttention() as attention:
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
            case _:
                pass
    return total / parallel.pipeline


__all__ = ["COMMUNICATION", "GRAPHS", "MemoryUse", "memory"]
