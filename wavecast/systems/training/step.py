"""The time of a training step: kernels, exposed communication, pipeline, optimizer.

One GPU of a stage represents all of them: they have equal kernels and equal collectives, so the
time does not depend on how many there are except through the collectives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from wavecast.arch.systems import System
from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.systems.architecture import ModelArchitecture
from wavecast.systems.graph import Node
from wavecast.systems.pricing import Priced, Prices
from wavecast.systems.slices import TimelineSlice
from wavecast.systems.training.assumptions import Overlap, assumptions
from wavecast.systems.training.communication import (
    PARALLELISMS,
    Exchanges,
    TrainingCommunication,
)
from wavecast.systems.training.graph import TrainedKernel, TrainingGraph
from wavecast.systems.training.parameters import RankParameters, of_layer, of_stage
from wavecast.systems.training.schedule import (
    BACKWARD,
    FORWARD,
    INPUT_GRAD,
    WEIGHT_GRAD,
    ChunkTimes,
    PipelineTime,
    action_times,
    orders,
    simulate,
)
from wavecast.systems.training.setup import TrainingSetup
from wavecast.systems.training.stages import chunk_layers

PHASES: Final[tuple[str, ...]] = ("forward", "recompute", "input_grad", "weight_grad")
PASSES: Final = {
    FORWARD: "forward",
    BACKWARD: "backward",
    INPUT_GRAD: "input gradients",
    WEIGHT_GRAD: "weight gradients",
}
"""Actions of a schedule -> their names."""
_SHOWN: Final = 2
"""Micro-batches per stage of a timeline."""
_FULL: Final = 4
"""Micro-batches per stage after which the time grows linearly with them."""


@dataclass(frozen=True, slots=True)
class TrainingKernel:
    """A kernel, its phase (one of `PHASES`) and how often a GPU runs it for a micro-batch, as a
    mean over the stages."""

    priced: Priced
    phase: str
    count: float

    @property
    def seconds(self) -> float:
        """The time of all of them in a long run."""
        return self.priced.seconds * self.count * assumptions().kernel_slowdown


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """Seconds of a step.

    `pipeline`: all micro-batches, with communication of tensor, context and expert parallelism in
    them. `exposed`: seconds of communication that no compute hides, by parallelism, of a mean GPU.
    `hidden`: the same of hidden communication. `phases`: seconds of kernels by phase, of a mean
    GPU. `host_bound`: the CPU launches more slowly than the GPU computes.
    """

    seconds: float
    pipeline: PipelineTime
    optimizer: float
    exposed: Mapping[str, float]
    hidden: Mapping[str, float]
    phases: Mapping[str, float]
    host_bound: bool


@dataclass(frozen=True, slots=True)
class _Pass:
    """A part of a model (a mean layer, the head) for one micro-batch: seconds by phase, number of
    kernels by phase, communication of both passes."""

    seconds: Mapping[str, float]
    kernels: Mapping[str, float]
    exchanges: Exchanges


@dataclass
class TrainingModel:
    """The steps of one model with one setup on one system."""

    architecture: ModelArchitecture
    setup: TrainingSetup
    system: System
    prices: Prices = field(init=False)

    def __post_init__(self) -> None:
        self.prices = Prices(self.system.device)
        self.graph = TrainingGraph(self.architecture, self.setup)
        self.communication = TrainingCommunication(self.architecture, self.setup, self.system)

    def kernels(self) -> list[TrainingKernel]:
        """Every kernel of a micro-batch."""
        kernels: list[TrainingKernel] = []
        stages = self.setup.pipeline
        for layer, count in self.architecture.layers:
            kernels += self._price(self.graph.layer(layer), count / stages, self._again)
        for part in (self.graph.embedding(), self.graph.head()):
            kernels += self._price(part, 1 / stages, 0.0)
        return kernels

    def step(self, overlaps: Mapping[str, Overlap] | None = None) -> TrainingStep:
        """The time of a step with the assumed `overlaps`. Raises MissingFact where links are not
        known."""
        overlap_shares = overlaps or self.overlaps()
        layer = self._mean_layer()
        times, bound = self._chunks(layer, overlap_shares)
        pipeline = self._pipeline(times)
        optimizer = self.optimizer()
        exposed, hidden = self._totals(layer, overlap_shares)
        reduced = self.communication.gradients(self.rank)
        if reduced:
            compute = max(time.input_grad + time.weight_grad for time in times) * self.setup.chunks
            if self.setup.sharding == 2:
                compute *= self.setup.micro_batches
            visible = _exposed_seconds(reduced, compute, overlap_shares["data"].value)
            exposed["data"] += visible
            hidden["data"] += reduced - visible
        else:
            visible = 0.0
        micro = self.setup.micro_batches
        phases: dict[str, float] = defaultdict(float)
        for kernel in self.kernels():
            phases[kernel.phase] += kernel.seconds * micro
        return TrainingStep(
            seconds=pipeline.seconds + optimizer + visible,
            pipeline=pipeline,
            optimizer=optimizer,
            exposed={name: value for name, value in exposed.items() if value},
            hidden={name: value for name, value in hidden.items() if value},
            phases=dict(phases),
            host_bound=bound,
        )

    def timeline(self) -> list[TimelineSlice]:
        """What the stages do with the first micro-batches: until the pipeline is full and empty
        again, with as many micro-batches as that takes. Groups are forward, backward, and for
        schedules that separate them the gradients of inputs and of weights."""
        setup = self.setup
        micro = min(setup.micro_batches, _SHOWN * setup.pipeline)
        work = orders(setup.schedule, setup.pipeline, micro, setup.chunks)
        times = self.chunk_times()
        return [
            TimelineSlice(
                f"stage {rank}",
                f"{PASSES[action]}, micro-batch {number}",
                start,
                seconds,
                PASSES[action],
                f"chunk {chunk}" if setup.chunks > 1 else "",
            )
            for rank, (action, chunk, number), start, seconds in action_times(
                work, times, self.communication.boundary()
            )
        ]

    def chunk_times(self) -> list[ChunkTimes]:
        """Times of a micro-batch on every chunk of the pipeline, with the communication in it that
        nothing hides."""
        return self._chunks(self._mean_layer(), self.overlaps())[0]

    def overlaps(self) -> dict[str, Overlap]:
        """Assumed shares of hidden communication; the setup may give that of sharding."""
        shares = dict(assumptions().overlap)
        split, batched = shares.pop("tensor_split"), shares.pop("expert_batched")
        if self.setup.tensor_overlap:
            shares["tensor"] = split
        if self.setup.expert_overlap:
            shares["expert"] = batched
        overlap = self.setup.overlap
        if overlap is not None:
            shares["data"] = Overlap(overlap, overlap, overlap)
        return shares

    # --- parts ---------------------------------------------------------------------------------

    @property
    def _again(self) -> float:
        """Share of the layers that are computed again in full."""
        setup = self.setup
        if setup.recompute != "full":
            return 0.0
        stage_layers = self.architecture.depth / setup.pipeline
        return min(1.0, (setup.recompute_layers or stage_layers) / stage_layers)

    def _price(
        self, kernels: Iterable[TrainedKernel], count: float, again: float
    ) -> list[TrainingKernel]:
        training_kernels: list[TrainingKernel] = []

        def add(nodes: Iterable[Node], phase: str, times: float) -> None:
            if times:
                training_kernels.extend(
                    TrainingKernel(self.prices.of(n), phase, times) for n in nodes
                )

        for kernel in kernels:
            add(kernel.forward, "forward", count)
            cheap = self.setup.recompute == "selective" and kernel.cheap
            add(kernel.forward, "recompute", count if cheap else count * again)
            add(kernel.input_grad, "input_grad", count)
            add(kernel.weight_grad, "weight_grad", count)
        return training_kernels

    def _pass(self, kernels: Iterable[TrainingKernel], exchanges: Exchanges) -> _Pass:
        seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        numbers: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        for kernel in kernels:
            seconds[kernel.phase] += kernel.seconds
            numbers[kernel.phase] += kernel.count
        return _Pass(seconds, numbers, exchanges)

    def _mean_layer(self) -> _Pass:
        """A layer with the mean times of all layers: different ones are taken to be distributed
        evenly over the stages."""
        depth = self.architecture.depth
        kernels: list[TrainingKernel] = []
        forward: dict[str, float] = defaultdict(float)
        backward: dict[str, float] = defaultdict(float)
        for layer, count in self.architecture.layers:
            share = count / depth
            kernels += self._price(self.graph.layer(layer), share, self._again)
            sharded = self.communication.weights_per_pass(
                of_layer(self.architecture, self.setup, layer)
            )
            for exchanges in (self.communication.layer(layer), sharded):
                for name, value in exchanges.forward.items():
                    forward[name] += value * share
                    if name != "data":
                        backward[name] += value * share * self._again
                for name, value in exchanges.backward.items():
                    backward[name] += value * share
        return self._pass(kernels, Exchanges(forward, backward))

    def _ends(self, *, first: bool) -> _Pass:
        kernels = self.graph.embedding() if first else self.graph.head()
        return self._pass(self._price(kernels, 1.0, 0.0), Exchanges({}, {}))

    def _chunks(
        self, layer: _Pass, overlaps: Mapping[str, Overlap]
    ) -> tuple[list[ChunkTimes], bool]:
        """Times of every chunk of the pipeline, and whether the host decides one of them."""
        first, last = self._ends(first=True), self._ends(first=False)
        numbers = chunk_layers(self.architecture.depth, self.setup.pipeline * self.setup.chunks)
        times, bound = [], False
        for index, number in enumerate(numbers):
            parts = [(layer, float(number))]
            parts += [(first, 1.0)] * (index == 0) + [(last, 1.0)] * (index == len(numbers) - 1)
            chunk, late = self._chunk(parts, overlaps)
            times.append(chunk)
            bound |= late
        return times, bound

    def _chunk(
        self, parts: list[tuple[_Pass, float]], overlaps: Mapping[str, Overlap]
    ) -> tuple[ChunkTimes, bool]:
        """Times of a chunk, and whether the host decides one of them."""
        seconds: dict[str, float] = defaultdict(float)
        host: dict[str, float] = defaultdict(float)
        for part, number in parts:
            for phase in PHASES:
                seconds[phase] += part.seconds[phase] * number
                host[phase] += part.kernels[phase] * number * assumptions().launch
            compute = {
                "forward": part.seconds["forward"],
                "input_grad": sum(part.seconds[phase] for phase in PHASES[1:]),
            }
            for phase, exchanges in (
                ("forward", part.exchanges.forward),
                ("input_grad", part.exchanges.backward),
            ):
                for name, value in exchanges.items():
                    visible = _exposed_seconds(value, compute[phase], overlaps[name].value)
                    seconds[phase] += visible * number
        backward = ("recompute", "input_grad")
        forward = max(seconds["forward"], host["forward"])
        inputs = max(sum(seconds[p] for p in backward), sum(host[p] for p in backward))
        weights = max(seconds["weight_grad"], host["weight_grad"])
        return ChunkTimes(forward, inputs, weights), host["forward"] > seconds["forward"]

    def _pipeline(self, times: list[ChunkTimes]) -> PipelineTime:
        """All micro-batches. A full pipeline takes the same time for every further one."""
        setup, transfer = self.setup, self.communication.boundary()

        def run(micro: int) -> PipelineTime:
            work = orders(setup.schedule, setup.pipeline, micro, setup.chunks)
            return simulate(work, times, transfer)

        few = _FULL * setup.pipeline
        if setup.schedule == "gpipe" or setup.micro_batches <= 2 * few:
            return run(setup.micro_batches)
        low, high = run(few), run(2 * few)
        more = (setup.micro_batches - 2 * few) / few
        return replace(
            high,
            seconds=high.seconds + more * (high.seconds - low.seconds),
            busy=high.busy + more * (high.busy - low.busy),
        )

    @property
    def rank(self) -> RankParameters:
        """Parameters of a GPU of the stage with most layers."""
        numbers = chunk_layers(self.architecture.depth, self.setup.pipeline * self.setup.chunks)
        layers = max(
            sum(numbers[rank :: self.setup.pipeline]) for rank in range(self.setup.pipeline)
        )
        ends = 1 if self.setup.pipeline > 1 or self.architecture.tied else 2
        return of_stage(self.architecture, self.setup, layers, embeddings=ends)

    def optimizer(self) -> float:
        """AdamW of the parameters of a GPU as one kernel with its traffic."""
        rank, setup = self.rank, self.setup
        parameters = rank.trained_total
        if setup.sharding:
            parameters = (
                rank.trained_dense / setup.shards + rank.trained_experts / setup.expert_shards
            )
        elements = max(1, round(parameters * assumptions().adamw_traffic / 8))
        update = Node("adamw", "optimizer", Elementwise.of("copy", (elements,), "fp32"))
        return self.prices.of(update).seconds

    def _totals(
        self, layer: _Pass, overlaps: Mapping[str, Overlap]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Seconds of exposed and of hidden communication of a step on a mean GPU."""
        number = self.architecture.depth / self.setup.pipeline * self.setup.micro_batches
        exposed, hidden = dict.fromkeys(PARALLELISMS, 0.0), dict.fromkeys(PARALLELISMS, 0.0)
        passes = (
            (layer.exchanges.forward, layer.seconds["forward"]),
            (layer.exchanges.backward, sum(layer.seconds[p] for p in PHASES[1:])),
        )
        for exchanges, compute in passes:
            for name, value in exchanges.items():
                visible = _exposed_seconds(value, compute, overlaps[name].value)
                exposed[name] += visible * number
                hidden[name] += (value - visible) * number
        return exposed, hidden


def _exposed_seconds(seconds: float, compute: float, overlap: float) -> float:
    """Communication that is not hidden: the share that does not overlap, and what is longer than
    the compute it overlaps with."""
    return max(seconds * (1 - overlap), seconds - compute)


__all__ = ["PASSES", "PHASES", "TrainingKernel", "TrainingModel", "TrainingStep"]
