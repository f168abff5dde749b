"""What the GPUs of a training step send each other, by parallelism, and how long it takes.

GPUs are numbered with those of tensor parallelism next to each other, then those of context, data
and pipeline parallelism (the order of Megatron-LM); experts are divided among neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.arch.systems import System
from wavecast.systems.architecture import (
    CompressedAttention,
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    Layer,
    ModelArchitecture,
)
from wavecast.systems.training.assumptions import assumptions
from wavecast.systems.training.network import group_seconds
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
class GroupMessage:
    """`function` of `size` bytes, as `Collective` counts them, among `ranks` GPUs whose numbers are
    `stride` apart."""

    function: str
    size: float
    ranks: int
    stride: int


@dataclass(frozen=True, slots=True)
class TrainingCommunication:
    """The collectives of a setup on a system."""

    architecture: ModelArchitecture
    setup: TrainingSetup
    system: System

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
        apart = setup.gpus // setup.pipeline
        return group_seconds(self.system, "broadcast", self.boundary_bytes, 2, apart)

    @property
    def boundary_bytes(self) -> float:
        """Bytes that a GPU sends to that of the next stage for a micro-batch."""
        setup = self.setup
        return setup.rows / setup.norm_ranks * self.architecture.hidden * _BF16

    def weights_per_pass(self, layer: RankParameters) -> Exchanges:
        """Gathering the weights of a layer, and scattering its gradients, of fully sharded
        training: once per micro-batch and pass."""
        if self.setup.sharding < 3:
            return Exchanges({}, {})
        gather = self._seconds(
            self._weights("all_gather", layer.dense, layer.experts, self._weight_bytes)
        )
        scatter = self._seconds(
            self._weights(
                "reduce_scatter",
                layer.trained_dense,
                layer.trained_experts,
                self.setup.gradient_bytes,
            )
        )
        return Exchanges({"data": gather}, {"data": gather + scatter})

    def gradients(self, rank: RankParameters) -> float:
        """Seconds of the reduction of gradients, and of the gathering of weights where optimizer
        states are sharded, in a step. Sharded gradients are reduced after every micro-batch. Fully
        sharded training has neither at the end."""
        messages = self.gradient_messages(rank)
        if self.setup.sharding == 2:
            scatters = [message for message in messages if message.function == "reduce_scatter"]
            messages += (self.setup.micro_batches - 1) * scatters
        return self._seconds(messages)

    def gradient_messages(self, rank: RankParameters) -> list[GroupMessage]:
        """What `gradients` takes, with one reduction where there is one per micro-batch."""
        if self.setup.sharding == 3:
            return []
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
        """Two blocks of two products; parallel ones exchange once. Sequence parallelism gathers the
        input and scatters the sum, and gathers the input again for the gradients of weights."""
        setup = self.setup
        if setup.tensor == 1:
            return 0.0, 0.0
        exchanges_once = layer.parallel or (isinstance(layer.mlp, ExpertMlp) and setup.expert > 1)
        blocks = 1 if exchanges_once else 2
        elements = setup.rows * self.architecture.hidden
        ranks, system = setup.tensor, self.system
        if not setup.sequence_parallel:
            reduce = blocks * group_seconds(system, "all_reduce", elements * _BF16, ranks)
            return reduce, reduce
        gather = group_seconds(system, "all_gather", elements * self._narrow, ranks)
        scatter = group_seconds(system, "reduce_scatter", elements * _BF16, ranks)
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
            case CompressedAttention():
                width = attention.head_dim
            case _:  # the state at the end of the part of a sequence
                state = attention.state_elements / setup.tensor * setup.micro_batch
                transfer = self._along("all_gather", state * 4 * setup.context)
                return transfer, transfer
        size = width * setup.micro_batch * setup.sequence * _BF16
        gather = self._along("all_gather", size)
        return gather, gather + self._along("reduce_scatter", size)

    def _along(self, function: str, size: float) -> float:
        """A collective of the GPUs of a sequence."""
        return group_seconds(self.system, function, size, self.setup.context, self.setup.tensor)

    def _expert(self, layer: Layer) -> tuple[float, float]:
        """Tokens to the GPUs of their experts, and back."""
        setup, mlp = self.setup, layer.mlp
        if setup.expert == 1 or not isinstance(mlp, ExpertMlp):
            return 0.0, 0.0
        size = setup.rows // setup.norm_ranks * self.architecture.hidden * _BF16
        both = sum(
            group_seconds(self.system, function, size, setup.expert, topk=mlp.topk)
            for function in ("dispatch", "combine")
        )
        return both, both

    def _weights(
        self, function: str, dense: float, experts: float, size: float
    ) -> list[GroupMessage]:
        setup = self.setup
        stride = setup.expert if setup.expert > 1 else setup.tensor
        return [
            GroupMessage(function, dense * size, setup.shards, setup.tensor),
            GroupMessage(function, experts * size, setup.expert_shards, stride),
        ]

    def _seconds(self, messages: Iterable[GroupMessage]) -> float:
        return sum(
            group_seconds(
                self.system, message.function, message.size, message.ranks, message.stride
            )
            for message in messages
        )


__all__ = ["PARALLELISMS", "Exchanges", "GroupMessage", "TrainingCommunication"]
