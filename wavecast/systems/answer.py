"""A model on a system: does it fit, how long is a step, and what does serving reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from wavecast.arch.systems import System
from wavecast.errors import Unpredictable, UsageError
from wavecast.systems.architecture import ModelArchitecture
from wavecast.systems.engine import Engine, Setting, engine
from wavecast.systems.experts import ExpertLoad
from wavecast.systems.graph import Step
from wavecast.systems.huggingface import ModelConfig
from wavecast.systems.instances import InstancePlan, instances
from wavecast.systems.intervals import Interval, metric_interval
from wavecast.systems.memory import MemoryUse
from wavecast.systems.parallel import Parallelism
from wavecast.systems.plan import replication_notes
from wavecast.systems.precision import Precision, precision
from wavecast.systems.serving import Disaggregation, Load, Served, serve
from wavecast.systems.speculation import Speculation
from wavecast.systems.step import LayerKernel, StepTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A model as it is deployed: formats, parallelism and engine. Empty names mean the default:
    formats of the checkpoint, the newest release of `vllm`, the cache dtype of the engine.

    `settings` are names of `engine.SETTINGS` with other values than the profile has. With
    `disaggregation`, every instance that decodes has the GPUs of `parallel`, which has no replicas
    then.
    `check_plan` adds notes on modules that the plan of transformers does not divide (`plan`).
    """

    dtype: str = ""
    cache: str = ""
    attention: str = ""
    parallel: Parallelism = field(default_factory=Parallelism)
    engine: str = "vllm"
    check_plan: bool = False
    scale: tuple[tuple[str, float], ...] = ()
    """Factors of times: of a module or a kernel by its name, of what the CPU does as `HOST`."""
    engine_fields: tuple[tuple[str, bool | int], ...] = ()
    """Fields of `Engine` that differ from the profile."""
    settings: tuple[tuple[str, Setting], ...] = ()
    speculation: Speculation | None = None
    disaggregation: Disaggregation | None = None

    @property
    def mode(self) -> str:
        """What errors are counted apart by, before the name of a metric."""
        if self.disaggregation:
            return "disaggregated "
        return "speculative " if self.speculation else ""


HOST: Final = "host"
"""The name of what the CPU does among the factors of times."""


@dataclass(frozen=True, slots=True)
class ServingAnswer:
    """What a load meets. Times are in seconds, rates in tokens per second of all GPUs.

    `decode` and `prefill` are the steps of the middle of the run: all sequences that run at once,
    halfway through their output; one prompt. `kernels` are those of `decode`, `prefill_kernels`
    those of `prefill`.
    """

    load: Load
    served: Served
    decode: StepTime
    prefill: StepTime
    kernels: tuple[LayerKernel, ...]
    prefill_kernels: tuple[LayerKernel, ...]
    ttft: Interval
    tpot: Interval
    output_rate: Interval


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One model on one system. `why_not` says why there are no `servings`, else it is empty."""

    system: System
    architecture: ModelArchitecture
    precision: Precision
    parallel: Parallelism
    engine: Engine
    memory: MemoryUse
    servings: tuple[ServingAnswer, ...]
    why_not: str = ""
    notes: tuple[str, ...] = ()


class ModelOnSystem:
    """A deployed model, ready for loads. Equal kernels are predicted once for all of them."""

    def __init__(self, config: ModelConfig, system: System, deployment: Deployment) -> None:
        """Raises UsageError for sizes that do not divide or a field that is missing, UnknownName
        for a format or an engine, MissingFact where the memory of the device is unknown."""
        self.system, self.parallel = system, deployment.parallel
        self.pools, self.mode = deployment.disaggregation, deployment.mode
        gpus = self.pools.gpus(self.parallel) if self.pools else self.parallel.gpus
        if gpus > system.gpus:
            raise UsageError(
                f"{self.pools or self.parallel} takes {gpus} GPUs, {system} has {system.gpus}"
            )
        if self.pools and self.parallel.data > 1:
            raise UsageError("disaggregated instances have no replicas: the pools have them")
        if self.pools and self.parallel.pipeline > 1:
            raise Unpredictable("disaggregated instances with a pipeline are not modelled")
        self.architecture = config.architecture
        scale = dict(deployment.scale)
        aiter = bool(dict(deployment.settings).get("aiter"))
        generation = system.device.generation
        profile = engine(deployment.engine, generation, aiter=aiter, model_type=config.kind)
        profile = replace(profile, **dict(deployment.engine_fields)).scale(scale.pop(HOST, 1.0))
        self.engine = profile.over(self.parallel.ranks).with_settings(deployment.settings)
        formats = precision(
            config,
            dtype=deployment.dtype,
            cache=deployment.cache or _cache(self.engine, self.architecture),
            attention=deployment.attention,
        )
        self.precision, self.notes = formats.on_device(system.device)
        if deployment.check_plan:
            self.notes += replication_notes(config.values, self.architecture, self.parallel)
        plans = [InstancePlan(self.parallel, self.engine, deployment.speculation)]
        if self.pools and self.pools.uneven:
            parallel = self.pools.parallel or self.parallel
            profile = profile.over(parallel.ranks).with_settings(deployment.settings)
            plans.append(InstancePlan(parallel, profile.with_settings(self.pools.settings)))
        decode, *prefill = instances(self.architecture, self.precision, system, scale, plans)
        self.model, self.memory = decode.model, decode.memory
        self.prefill = prefill[0] if prefill else None

    @property
    def lacking(self) -> MemoryUse | None:
        """The memory of the instances that do not fit, if any."""
        uses = [self.memory, *([self.prefill.memory] if self.prefill else [])]
        return next((use for use in uses if not use.fits), None)

    def serve(self, load: Load) -> ServingAnswer:
        """Simulate a load. With several replicas each takes its share of it. The sequences of a
        replica are in as many groups as the pipeline has stages, if there are enough: while a group
        is on one stage, the others are on the other stages, so that a step of a group takes the
        time of all stages.

        Raises UsageError where not even one request fits the memory, MissingFact where the device
        has no rate for a dtype.
        """
        stages, at_once = self.parallel.pipeline, load.share(self.parallel.data).concurrency
        groups = min(stages, at_once) if at_once else stages
        replicas = self.parallel.data * groups
        replica_load = load.share(replicas)
        served = serve(
            self.model, self.memory.share(groups), replica_load, self.pools, self.prefill
        )
        context = load.prompt + load.output // 2
        running = max(1, min(served.running, replica_load.concurrency or served.running))
        drafted = self.model.speculation.tokens if self.model.speculation else 0
        step = Step(decode=running, context=context, queries=1 + drafted)
        decode = self.model.time(step)
        prompt = Step(chunks=1, tokens=load.prompt)
        prefilling = self.prefill.model if self.prefill else self.model
        prefill = prefilling.time(prompt)
        device = self.system.device

        def interval(metric: str, value: float) -> Interval:
            return metric_interval(self.mode + metric, value, device, self.engine.name)

        return ServingAnswer(
            load=load,
            served=served,
            decode=decode,
            prefill=prefill,
            kernels=tuple(self.model.kernels(step)),
            prefill_kernels=tuple(prefilling.kernels(prompt)),
            ttft=interval("ttft", served.ttft.mean),
            tpot=interval("tpot", served.tpot.mean),
            output_rate=_rate(interval("output", 1 / (served.output_rate * replicas))),
        )


def answer(
    config: ModelConfig, system: System, deployment: Deployment, loads: tuple[Load, ...]
) -> ModelAnswer:
    """A model on a system under every load; one that does not fit is an answer without servings.

    Raises as `ModelOnSystem`.
    """
    ready = ModelOnSystem(config, system, deployment)
    why_not = ""
    servings: list[ServingAnswer] = []
    lacking = ready.lacking
    if lacking is not None:
        demand = sum(lacking.parts.values())
        why_not = (
            f"{config.name} needs {demand / 2**30:.1f} GiB of every GPU before any cache, the "
            f"engine may take {lacking.available / 2**30:.1f} GiB of {system.device.id}"
        )
    else:
        servings = [ready.serve(load) for load in loads]
    return ModelAnswer(
        system=system,
        architecture=ready.architecture,
        precision=ready.precision,
        parallel=ready.parallel,
        engine=ready.engine,
        memory=ready.memory,
        servings=tuple(servings),
        why_not=why_not,
        notes=(*_notes(ready), *_context_notes(ready.architecture, loads)),
    )


def loads(
    prompt: int,
    output: int,
    *,
    concurrency: Sequence[int] = (),
    rate: float | None = None,
    requests: int | None = None,
) -> tuple[Load, ...]:
    """The loads that a user asks for: an open loop with `rate`, else a closed one per concurrency,
    1, 16 and 64 where none is given. Raises UsageError for both, and as `Load`."""
    if rate is not None:
        if concurrency:
            raise UsageError("a concurrency and a rate exclude each other")
        return (Load(prompt, output, rate=rate, requests=requests or 0),)
    return tuple(
        Load(prompt, output, concurrency=number, requests=requests or 0)
        for number in concurrency or (1, 16, 64)
    )


def _cache(profile: Engine, architecture: ModelArchitecture) -> str:
    """The dtype of keys and values where the deployment names none."""
    chosen = any(getattr(layer.attention, "indexer", None) for layer, _ in architecture.layers)
    return (profile.sparse_cache if chosen else "") or profile.cache


def _rate(time: Interval) -> Interval:
    """Tokens per second from seconds per token."""
    return Interval(1 / time.value, 1 / time.high, 1 / time.low, time.basis)


def _context_notes(architecture: ModelArchitecture, loads: Sequence[Load]) -> Iterator[str]:
    """What a load asks of a model that its configuration does not promise."""
    samples = (load.sample() for load in loads)
    longest = max((int((prompts + outputs).max()) for _, prompts, outputs in samples), default=0)
    if architecture.context and longest > architecture.context:
        yield (
            f"requests of up to {longest:,} tokens are longer than the {architecture.context:,} of "
            "max_position_embeddings: engines refuse them unless positions are extended"
        )


def _notes(ready: ModelOnSystem) -> tuple[str, ...]:
    notes = list(ready.notes)
    bounded = ready.model.prices.bounded.items()
    notes += [f"{name}: only a bound, because {why}" for name, why in bounded]
    profile = ready.engine
    if profile.version != profile.measured:
        measured = f"{profile.measured} and other engines" if profile.measured else "other engines"
        notes.append(
            f"no run of {profile.name} {profile.version} was measured: the intervals come from "
            f"runs of {measured}, and may be too narrow"
        )
    if ready.parallel.pipeline > 1:
        notes.append(
            f"pipeline: {ready.parallel.pipeline} groups of sequences follow each other over "
            "stages that are taken to be equally long; a step is that of a group"
        )
    if ready.parallel.expert > 1:
        notes.append(f"load of the GPUs that divide the experts: {ready.parallel.load}")
    elif ready.parallel.load != ExpertLoad():
        notes.append("the load of experts has no effect: no GPUs divide the experts (--ep)")
    if ready.system.device.identity.partition:
        notes.append(
            "a partition has its share of the GPU's memory and links, as if all were busy: no run "
            "on partitions was measured"
        )
    if ready.system.nodes > 1:
        notes.append("collectives over nodes: no all-reduce over nodes was measured")
    drafted = ready.model.speculation
    if drafted:
        notes.append(
            f"a decode step verifies {drafted.tokens} drafted tokens and yields "
            f"{drafted.length:.2f} tokens where {drafted.acceptance:.0%} are accepted; "
            "its table leaves the draft out"
        )
    if ready.pools:
        notes.append(
            f"{ready.pools}: caches move with {ready.pools.bandwidth / 1e9:g} GB/s of every GPU; "
            "latencies and rates are of all instances"
        )
    return tuple(notes)


__all__ = ["HOST", "Deployment", "ModelAnswer", "ModelOnSystem", "ServingAnswer", "answer", "loads"]
