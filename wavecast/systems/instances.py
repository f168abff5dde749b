"""The instances of a deployment: GPUs that serve together, each with its kernels and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wavecast.arch.systems import System
from wavecast.systems.architecture import ModelArchitecture
from wavecast.systems.engine import Engine
from wavecast.systems.graph import Builder
from wavecast.systems.memory import memory
from wavecast.systems.parallel import Parallelism, check
from wavecast.systems.serving import Instance
from wavecast.systems.speculation import Speculation
from wavecast.systems.step import StepModel, draft_architecture
from wavecast.systems.weight_formats import Precision


@dataclass(frozen=True, slots=True)
class InstancePlan:
    """What differs between the instances of a deployment."""

    parallel: Parallelism
    engine: Engine
    speculation: Speculation | None = None


def instances(
    architecture: ModelArchitecture,
    precision: Precision,
    system: System,
    scale: Mapping[str, float],
    plans: Sequence[InstancePlan],
) -> Iterator[Instance]:
    """An instance of a model per plan, with `scale` as factors of the times of modules and kernels.
    Equal kernels are predicted once for all of them. Raises UsageError where sizes do not divide,
    MissingFact where the memory of the device is unknown."""
    prices = None
    for plan in plans:
        parallel, drafted = plan.parallel, plan.speculation
        check(architecture, parallel, system)
        draft = None
        if drafted and drafted.method != "ngram":
            draft = draft_architecture(architecture, drafted.method)
        device = system.device
        use = memory(architecture, precision, parallel, plan.engine, device, draft=draft)
        builder = Builder(architecture, precision, parallel, plan.engine, system)
        model = StepModel(builder, device, scale, speculation=drafted)
        if prices is None:
            prices = model.prices
        model.prices = prices
        yield Instance(model, use)


__all__ = ["InstancePlan", "instances"]
