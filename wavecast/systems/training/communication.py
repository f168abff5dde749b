"""What the GPUs of a training step send each other, by parallelism, and how long it takes.

GPUs are numbered with those of tensor parallelism next to each other, then those of context, data
and pipeline parallelism (the order of Megatron-LM); experts are divided among neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.systems.architecture import (
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    Layer,
    ModelArchitecture,
)
from wavecast.systems.training.assumptions import assumptions
from wavecast.systems.training.network import TrainingNetwork, group
from wavecast.systems.training.parameters import RankParameters
from wavecast.systems.training.setup import TrainingSetup

PARALLELISMS: Final[tuple[str, ...]] = ("tensor", "context", "expert", "data")
_BF16: Final = 2


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Seconds of communication by parallelism, of the forward and of the backward pass."""

    forward: Mapping[str, float]
    backward: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TrainingCommunication:
    """The collectives of a setup on a network."""

    architecture: ModelArchitecture
    setup: TrainingSetup
    network: TrainingNetwork

    def layer(self, layer: Layer) -> Exchanges:
        """One micro-batch of a layer."""
        forward, backward = {}, {}
        for name, of in (
            ("tensor", self._tensor),
            ("context", self._context),
            ("expert", self._expert),
        ):
            there, back = of(layer)
            if there or back:
                forward[name], backward[name] = there, back
        return Exchanges(forward, backward)

    def boundary(self) -> float:
        """Seconds of one micro-batch from one stage to the next."""
        setup = self.setup
        if setup.pipeline == 1:
            return 0.0
        size = setup.rows / setup.norm_ranks * self.architecture.hidden * _BF16
        crosses = setup.gpus // setup.pipeline >= self.network.node
        return self.network.point_to_point(size, crosses=crosses)

    def weights_per_pass(self, layer: RankParameters) -> Exchanges:
        """Gathering the weights of a layer, and scattering its gradients, of fully sharded
        training: once per micro-batch and pass."""
        if self.setup.sharding < 3:
            return Exchanges({}, {})
        gather = self._weights("all_gather", layer.dense, layer.experts, self._weight_bytes)
        scatter = self._weights(
            "reduce_scatter", layer.trained_dense, layer.trained_experts, self.setup.gradient_bytes
        )
        return Exchanges({"data": gather}, {"data": gather + scatter})

    def gradients(self, rank: RankParameters) -> float:
        """Seconds of the reduction of gradients, and of the gathering of weights where optimizer
        states are sharded, once per step. Fully sharded training has neither at the end."""
        if self.setup.sharding == 3:
            return 0.0
        dense, experts = rank.trained_dense, rank.trained_experts
        if self.setup.sharding == 0:
            return self._weights("all_reduce", dense, experts, self.setup.gradient_bytes)
        scatter = self._weights("reduce_scatter", dense, experts, self.setup.gradient_bytes)
        return scatter + self._weights("all_gather", dense, experts, self._weight_bytes)

    # --- by parallelism ------------------------------------------------------------------------

    @property
    def _narrow(self) -> float:
        """Bytes of an element that is gathered as the input of a product."""
        return _BF16 if self.setup.dtype == "bf16" else 1

    @property
    def _weight_bytes(self) -> float:
        """Bytes of a weight that is gathered."""
        return assumptions().weight_bytes if self.setup.dtype == "bf16" else 1.0

    def _tensor(self, layer: Layer) -> tuple[float, float]:
        """Two blocks of two products. Sequence parallelism gathers the input and scatters the sum,
        and gathers the input again for the gradients of weights."""
        setup = self.setup
        if setup.tensor == 1:
            return 0.0, 0.0
        blocks = 1 if isinstance(layer.mlp, ExpertMlp) and setup.expert > 1 else 2
        elements = setup.rows * self.architecture.hidden
        ranks = group(setup.tensor, 1, self.network.node)
        if not setup.sequence_parallel:
            reduce = blocks * self.network.seconds("all_reduce", elements * _BF16, ranks)
            return reduce, reduce
        gather = self.network.seconds("all_gather", elements * self._narrow, ranks)
        scatter = self.network.seconds("reduce_scatter", elements * _BF16, ranks)
        again = 0.0 if setup.lora else gather
        return blocks * (gather + scatter), blocks * (gather + scatter + again)

    def _context(self, layer: Layer) -> tuple[float, float]:
        """Keys and values of the whole sequence, and their gradients."""
        setup, attention = self.setup, layer.attention
        if setup.context == 1:
            return 0.0, 0.0
        match attention:
            case GroupedQueryAttention():
                width = 2 * max(1, attention.kv_heads // setup.tensor) * attention.head_dim
            case LatentAttention():
                width = attention.kv_rank + attention.rope
            case _:  # the state at the end of the part of a sequence
                state = attention.state_elements / setup.tensor * setup.micro_batch
                ranks = group(setup.context, setup.tensor, self.network.node)
                passed = self.network.seconds("all_gather", state * 4 * setup.context, ranks)
                return passed, passed
        size = width * setup.micro_batch * setup.sequence * _BF16
        ranks = group(setup.context, setup.tensor, self.network.node)
        gather = self.network.seconds("all_gather", size, ranks)
        return gather, gather + self.network.seconds("reduce_scatter", size, ranks)

    def _expert(self, layer: Layer) -> tuple[float, float]:
        """Tokens to the GPUs of their experts, and back."""
        setup, mlp = self.setup, layer.mlp
        if setup.expert == 1 or not isinstance(mlp, ExpertMlp):
            return 0.0, 0.0
        pairs = setup.rows // setup.norm_ranks * mlp.topk
        ranks = group(setup.expert, 1, self.network.node)
        size = pairs * self.architecture.hidden * _BF16
        both = 2 * self.network.seconds("all_to_all", size, ranks)
        return both, both

    def _weights(self, function: str, dense: float, experts: float, size: float) -> float:
        setup, node = self.setup, self.network.node
        found = self.network.seconds(
            function, dense * size, group(setup.shards, setup.tensor, node)
        )
        stride = setup.expert if setup.expert > 1 else setup.tensor
        return found + self.network.seconds(
            function, experts * size, group(setup.expert_shards, stride, node)
        )


__all__ = ["PARALLELISMS", "Exchanges", "TrainingCommunication"]
