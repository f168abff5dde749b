"""Parameters of one GPU of a training step: of a layer, and of a stage."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.systems.architecture import (
    CompressedAttention,
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    Layer,
    ModelArchitecture,
)
from wavecast.systems.training.setup import LORA_TARGETS, TrainingSetup


@dataclass(frozen=True, slots=True)
class RankParameters:
    """Elements on one GPU before sharding: `dense` and `experts`, and the part of both that is
    trained."""

    dense: float
    experts: float
    trained_dense: float
    trained_experts: float

    def scale(self, factor: float) -> RankParameters:
        """So many of them."""
        return RankParameters(
            self.dense * factor,
            self.experts * factor,
            self.trained_dense * factor,
            self.trained_experts * factor,
        )

    def plus(self, other: RankParameters) -> RankParameters:
        """Both together."""
        return RankParameters(
            self.dense + other.dense,
            self.experts + other.experts,
            self.trained_dense + other.trained_dense,
            self.trained_experts + other.trained_experts,
        )

    @property
    def trained_total(self) -> float:
        """Elements that are updated."""
        return self.trained_dense + self.trained_experts


def of_layer(architecture: ModelArchitecture, setup: TrainingSetup, layer: Layer) -> RankParameters:
    """Parameters of one layer on one GPU."""
    hidden, tensor = architecture.hidden, setup.tensor
    dense, experts = layer.attention.parameters(hidden) / tensor, 0.0
    if isinstance(layer.mlp, ExpertMlp):
        routed = layer.mlp.expert_parameters(hidden)
        experts = routed / (setup.expert if setup.expert > 1 else tensor)
        dense += (layer.mlp.parameters(hidden) - routed) / tensor
    else:
        dense += layer.mlp.parameters(hidden) / tensor
    if not setup.lora:
        return RankParameters(dense, experts, dense, experts)
    adapters = _adapters(hidden, setup.lora, layer) / tensor
    return RankParameters(dense + adapters, experts, adapters, 0.0)


def of_stage(
    architecture: ModelArchitecture, setup: TrainingSetup, layers: float, *, embeddings: int
) -> RankParameters:
    """Parameters of a stage of `layers` layers and `embeddings` embeddings on one GPU."""
    parameters = RankParameters(0.0, 0.0, 0.0, 0.0)
    for layer, count in architecture.layers:
        share = count / architecture.depth * layers
        parameters = parameters.plus(of_layer(architecture, setup, layer).scale(share))
    table = embeddings * architecture.vocabulary * architecture.hidden / setup.tensor
    table += architecture.positions * architecture.hidden
    return parameters.plus(RankParameters(table, 0.0, 0.0 if setup.lora else table, 0.0))


def _adapters(hidden: int, rank: int, layer: Layer) -> float:
    """Parameters of the adapters of a layer's projections."""
    match layer.attention:
        case GroupedQueryAttention() as attention:
            out = attention.heads * attention.head_dim
            qkv = out * (1 + attention.gated) + 2 * attention.kv_heads * attention.head_dim
            widths = {"qkv_proj": hidden + qkv, "o_proj": hidden + out}
        case LatentAttention() as attention:
            widths = {"o_proj": hidden + attention.heads * attention.value}
        case CompressedAttention() as attention:
            widths = {"o_proj": hidden + attention.groups * attention.out_rank}
        case attention:
            widths = {"o_proj": hidden + attention.value_heads * attention.value_dim}
    return rank * sum(width for name, width in widths.items() if name in LORA_TARGETS)


__all__ = ["RankParameters", "of_layer", "of_stage"]
