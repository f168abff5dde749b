"""How a model is divided among GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field

from wavecast.arch.systems import System
from wavecast.errors import UsageError
from wavecast.systems.architecture import (
    CompressedAttention,
    DenseMlp,
    ExpertMlp,
    GroupedQueryAttention,
    LinearAttention,
    ModelArchitecture,
)
from wavecast.systems.experts import ExpertLoad


@dataclass(frozen=True, slots=True)
class Parallelism:
    """One replica of a model on `tensor` x `pipeline` GPUs, `data` times.

    `expert`: the GPUs that divide the experts of a layer (1: every GPU has a part of all
    experts). `attention_data`: attention is replicated on the `tensor` GPUs, each with sequences of
    its own, and only the other layers are divided (data-parallel attention). `load` is how often
    experts are chosen. `redundant` copies of popular experts of every layer are on the GPUs that
    divide them.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1
    attention_data: bool = False
    load: ExpertLoad = field(default_factory=ExpertLoad)
    redundant: int = 0

    def __post_init__(self) -> None:
        for name in ("tensor", "pipeline", "data", "expert"):
            value = getattr(self, name)
            if not 1 <= value <= 1 << 20:
                raise UsageError(f"{name} parallelism is {value}, not 1 to {1 << 20}")
        if self.redundant < 0 or (self.redundant and self.expert == 1):
            raise UsageError(f"{self.redundant} redundant experts on GPUs that do not divide them")

    @staticmethod
    def filling(
        gpus: int,
        *,
        tensor: int | None = None,
        pipeline: int = 1,
        data: int = 1,
        expert: int = 1,
        attention_data: bool = False,
        load: ExpertLoad | None = None,
        redundant: int = 0,
    ) -> Parallelism:
        """Tensor parallelism over the GPUs of a system that replicas and stages leave, unless
        given."""
        return Parallelism(
            tensor=tensor or max(1, gpus // (data * pipeline)),
            pipeline=pipeline,
            data=data,
            expert=expert,
            attention_data=attention_data,
            load=load or ExpertLoad(),
            redundant=redundant,
        )

    @property
    def wide(self) -> bool:
        """Whether the experts are divided among more GPUs than a replica has: tokens are dispatched
        to the GPUs of their experts and combined, instead of gathered and scattered."""
        return self.expert > self.tensor

    def dispatches(self, topk: int) -> bool:
        """Whether every GPU sends its tokens to those of their experts (`wide`, or GPUs with
        their own sequences that are more than the `topk` experts of a token: gathering all tokens
        would move more bytes)."""
        return self.wide or (self.attention_data and self.expert == self.tensor > topk)

    def own_experts(self, experts: int) -> int:
        """Those of a layer that one GPU has, of the GPUs that divide them."""
        return (experts + self.redundant) // self.expert

    @property
    def gpus(self) -> int:
        """GPUs of all replicas."""
        return self.tensor * self.pipeline * self.data

    @property
    def ranks(self) -> int:
        """GPUs of a replica that have separate sequences: all of them with data-parallel
        attention, else 1."""
        return self.tensor if self.attention_data else 1

    @property
    def attention_tensor(self) -> int:
        """GPUs that the heads of attention are divided among."""
        return 1 if self.attention_data else self.tensor

    def __str__(self) -> str:
        parts = [f"TP{self.tensor}"]
        parts += [f"PP{self.pipeline}"] * (self.pipeline > 1)
        parts += [f"DP{self.data}"] * (self.data > 1)
        parts += [f"EP{self.expert}"] * (self.expert > 1)
        parts += [f"{self.redundant} redundant experts"] * (self.redundant > 0)
        parts += ["DP attention"] * self.attention_data
        return " ".join(parts)


def check(
    architecture: ModelArchitecture, parallel: Parallelism, system: System | None = None
) -> None:
    """Raises UsageError where the sizes of the model do not divide, or groups of GPUs do not divide
    the nodes of `system`."""
    name, tensor = architecture.name, parallel.attention_tensor
    if parallel.pipeline > architecture.depth:
        raise UsageError(
            f"{name} has {architecture.depth} layers, fewer than {parallel.pipeline} stages"
        )
    for layer, _ in architecture.layers:
        attention, mlp = layer.attention, layer.mlp
        heads = attention.value_heads if isinstance(attention, LinearAttention) else attention.heads
        if heads % tensor:
            fewer = max(ranks for ranks in range(1, tensor) if heads % ranks == 0)
            raise UsageError(
                f"{name}: {heads} heads of attention do not divide among {tensor} GPUs",
                hint=f"--tp {fewer} divides them",
            )
        if isinstance(attention, CompressedAttention) and attention.groups % tensor:
            raise UsageError(
                f"{name}: {attention.groups} groups of heads do not divide among {tensor} GPUs"
            )
        if isinstance(attention, GroupedQueryAttention):
            keys = attention.kv_heads
            if max(keys, tensor) % min(keys, tensor):
                raise UsageError(f"{name}: {keys} heads of keys do not divide among {tensor} GPUs")
        if isinstance(mlp, ExpertMlp) and parallel.expert > 1:
            if parallel.expert not in (parallel.tensor, parallel.tensor * parallel.data):
                raise UsageError(
                    f"{parallel.expert} GPUs divide the experts, which are neither the "
                    f"{parallel.tensor} of tensor parallelism nor those of all replicas"
                )
            if (mlp.experts + parallel.redundant) % parallel.expert:
                copies = -mlp.experts % parallel.expert
                raise UsageError(
                    f"{name}: {mlp.experts} experts do not divide among {parallel.expert} GPUs",
                    hint=f"--redundant-experts {copies} makes them divide",
                )
            parallel.load.busiest(mlp.experts, parallel.expert, parallel.redundant)
        elif isinstance(mlp, (DenseMlp, ExpertMlp)) and mlp.inter % parallel.tensor:
            raise UsageError(
                f"{name}: {mlp.inter} units do not divide among {parallel.tensor} GPUs"
            )
    if system is not None:
        for ranks in {parallel.tensor, parallel.expert}:
            system.group(ranks)
        if parallel.pipeline > 1:
            system.group(2, parallel.tensor)
    if parallel.expert > 1 and not architecture.sparse:
        raise UsageError(f"{name} has no experts for {parallel.expert} GPUs")


__all__ = ["Parallelism", "check"]
