"""What a training step takes of every GPU's memory, and the largest micro-batch that fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.systems.architecture import ModelArchitecture
from wavecast.systems.training.assumptions import assumptions
from wavecast.systems.training.graph import TrainingGraph
from wavecast.systems.training.parameters import RankParameters, of_layer, of_stage
from wavecast.systems.training.schedule import peak_activations
from wavecast.systems.training.setup import TrainingSetup
from wavecast.systems.training.stages import chunk_layers


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """Bytes on the fullest GPU by use (`parts`), and the bytes that training may take."""

    parts: Mapping[str, float]
    available: float

    @property
    def needed(self) -> float:
        """All parts."""
        return sum(self.parts.values())

    @property
    def fits(self) -> bool:
        """Whether the GPU has as much."""
        return self.needed <= self.available


def training_memory(
    architecture: ModelArchitecture, setup: TrainingSetup, device: Device
) -> TrainingMemory:
    """The memory of the fullest stage. Raises MissingFact where the GPU's memory is not known."""
    if device.get("mem_size") is None:
        raise MissingFact(f"the memory of {device.id} is not known")
    available = device.facts.integer("mem_size", "B") * assumptions().usable_memory
    layers = chunk_layers(architecture.depth, setup.pipeline * setup.chunks)
    in_flight = peak_activations(setup.schedule, setup.pipeline, setup.micro_batches, setup.chunks)
    stages = []
    for rank in range(setup.pipeline):
        rank_layers = layers[rank :: setup.pipeline]
        ends = (rank == 0) + (rank == setup.pipeline - 1)
        stages.append(_stage(architecture, setup, rank_layers, ends, in_flight[rank], rank))
    return TrainingMemory(max(stages, key=lambda parts: sum(parts.values())), available)


def largest_micro_batch(
    architecture: ModelArchitecture, setup: TrainingSetup, device: Device
) -> int:
    """The largest micro-batch that divides a replica's sequences and fits; 0: none does."""
    sequences = setup.batch // setup.data
    for size in sorted((n for n in range(1, sequences + 1) if sequences % n == 0), reverse=True):
        if setup.chunks > 1 and sequences // size % setup.pipeline:
            continue
        if training_memory(architecture, replace(setup, micro_batch=size), device).fits:
            return size
    return 0


def _stage(
    architecture: ModelArchitecture,
    setup: TrainingSetup,
    layers: tuple[int, ...],
    ends: int,
    in_flight: int,
    rank: int,
) -> dict[str, float]:
    constants = assumptions()
    tied = 1 if architecture.tied and setup.pipeline == 1 else ends
    owned = of_stage(architecture, setup, sum(layers), embeddings=tied)
    dense, experts = setup.shards, setup.expert_shards

    def shard(at: int, parameters: tuple[float, float]) -> float:
        """Elements on a GPU where the sharding of level `at` applies."""
        if setup.sharding < at:
            return sum(parameters)
        return parameters[0] / dense + parameters[1] / experts

    everything = (owned.dense, owned.experts)
    trained = (owned.trained_dense, owned.trained_experts)
    frozen_bytes = 1.0 if setup.lora and setup.dtype != "bf16" else constants.weight_bytes
    last = rank == setup.pipeline - 1
    return {
        "weights": shard(3, everything) * frozen_bytes,
        "gradients": shard(2, trained) * setup.gradient_bytes,
        "optimizer states": shard(1, trained) * constants.state_bytes,
        "activations": _activations(architecture, setup, max(layers), in_flight),
        "logits": _logits(architecture, setup) if last else 0.0,
        "gathered weights": _gathered_elements(architecture, setup) * constants.weight_bytes,
        "communication": constants.communication_buffers if setup.gpus > 1 else 0.0,
    }


def _activations(
    architecture: ModelArchitecture, setup: TrainingSetup, layers: int, in_flight: int
) -> float:
    """Activations of `in_flight` micro-batches of a chunk of `layers` layers; the layer that is
    computed again has all of its activations."""
    graph = TrainingGraph(architecture, setup)
    stream = setup.rows / setup.norm_ranks * architecture.hidden * 2
    total, peak = 0.0, 0.0
    for layer, count in architecture.layers:
        kernels = graph.layer(layer)
        saved = sum(kernel.saved for kernel in kernels)
        avoidable = sum(kernel.avoidable for kernel in kernels)
        share = count / architecture.depth
        if setup.recompute == "full":
            again = min(layers, setup.recompute_layers or layers) / layers
            total += share * (again * stream + (1 - again) * saved)
            peak = max(peak, saved)
        elif setup.recompute == "selective":
            total += share * (saved - avoidable)
            peak = max(peak, avoidable)
        else:
            total += share * saved
    return total * layers * in_flight + peak


def _logits(architecture: ModelArchitecture, setup: TrainingSetup) -> float:
    """Logits in 16 bits, and in fp32 for the loss."""
    return setup.rows * architecture.vocabulary / setup.tensor * 6


def _gathered_elements(architecture: ModelArchitecture, setup: TrainingSetup) -> float:
    """Elements of the layer that is computed and of the one that is gathered ahead."""
    if setup.sharding < 3:
        return 0.0
    layer_parameters: list[RankParameters] = [
        of_layer(architecture, setup, layer) for layer, _ in architecture.layers
    ]
    return 2 * max(parameters.dense + parameters.experts for parameters in layer_parameters)


__all__ = ["TrainingMemory", "largest_micro_batch", "training_memory"]
