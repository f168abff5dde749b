"""The kernels of a served model as vLLM launches them, and by the operators of the library.

What the engine launches by default is predicted from sizes (`systems.pricing`); an operator of the
library is compiled for the GPU and predicted from its code (`library`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wavecast.arch.systems import system
from wavecast.errors import UsageError
from wavecast.pipeline.library.library import Surveyed, survey
from wavecast.pipeline.models.engine_layers import (
    EngineKernel,
    LibraryCall,
    Uncovered,
    layer_of,
    library_calls,
)
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment, ModelOnSystem
from wavecast.systems.graph import Step, head_nodes, layer_nodes
from wavecast.systems.huggingface import ModelConfig
from wavecast.systems.parallel import Parallelism
from wavecast.systems.pricing import Priced

ENGINE: Final = "vllm"


@dataclass(frozen=True, slots=True)
class ServedKernel:
    """A kernel that a step launches `count` times. `default` is what the engine runs; `operators`
    of the library take `seconds` once, or `why_not` says why the default remains. `part_of` names
    the kernel whose operators compute this one too. `layer` is the class of vLLM's layer, `dtype`
    that of its operands, `kernels` are the library's symbols."""

    default: Priced
    layer: str
    dtype: str
    count: int
    operators: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    seconds: float | None = None
    part_of: str = ""
    why_not: str = ""

    @property
    def name(self) -> str:
        """Its name in the step."""
        return self.default.node.name

    @property
    def after(self) -> float:
        """Seconds with the library; those of the default where it remains."""
        return self.default.seconds if self.seconds is None else self.seconds


@dataclass(frozen=True, slots=True)
class ServedStep:
    """`prefill` or `decode`, and its kernels. Seconds are those of kernels alone."""

    phase: str
    step: Step
    kernels: tuple[ServedKernel, ...]

    @property
    def before(self) -> float:
        """Seconds of the engine's defaults."""
        return sum(kernel.default.seconds * kernel.count for kernel in self.kernels)

    @property
    def after(self) -> float:
        """Seconds where the library serves what it covers."""
        return sum(kernel.after * kernel.count for kernel in self.kernels)

    @property
    def covered(self) -> float:
        """The share of `before` that the library serves."""
        served = (kernel for kernel in self.kernels if not kernel.why_not)
        return sum(kernel.default.seconds * kernel.count for kernel in served) / self.before


@dataclass(frozen=True, slots=True)
class EngineReport:
    """A model on GPUs of a device: `formats` of its weights by role."""

    model: str
    engine: str
    device: str
    gpus: int
    formats: Mapping[str, str]
    steps: tuple[ServedStep, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EngineModel:
    """A model that is deployed on GPUs."""

    config: ModelConfig
    ready: ModelOnSystem

    @staticmethod
    def of(model: str, gpu: str, deployment: Deployment) -> EngineModel:
        """Raises as `engine_report`."""
        if deployment.engine != ENGINE:
            raise UsageError(f"{deployment.engine}: only layers of {ENGINE} are known")
        config = huggingface.load(model)
        machine = system(f"{deployment.parallel.gpus}x{gpu}")
        return EngineModel(config, ModelOnSystem(config, machine, deployment))

    def kernels(self, step: Step) -> Iterable[tuple[EngineKernel, int]]:
        """The kernels of a step, and in how many layers each runs."""
        builder, device = self.ready.model.builder, self.ready.system.device
        for layer, count in self.ready.architecture.layers:
            for node in layer_nodes(builder, layer, step):
                yield EngineKernel(node, layer, step, builder, self.config.values, device), count
        for node in head_nodes(builder, step):
            yield EngineKernel(node, None, step, builder, self.config.values, device), 1


def engine_report(
    model: str, gpu: str, deployment: Deployment, steps: Sequence[tuple[str, Step]], *,
    jobs: int = 1, update: Callable[[str], object] = lambda _: None,
) -> EngineReport:  # fmt: skip
    """The kernels of `steps` (phase, step) of a model (a `config.json`, its folder, or a known
    name) on GPUs named `gpu`. Every different call of an operator is compiled (seconds each), with
    `jobs` in processes; `update` gets lines of progress.

    Raises UnknownName for names, UsageError for another engine than vLLM and for sizes that do not
    divide, MissingFact for a GPU without memory or rates, MissingTool without PyTorch or Triton.
    """
    engine_model = EngineModel.of(model, gpu, deployment)
    kernels_by_phase = {phase: list(engine_model.kernels(step)) for phase, step in steps}
    calls = {
        phase: [library_calls(kernel) for kernel, _ in kernels]
        for phase, kernels in kernels_by_phase.items()
    }
    unique_calls = {
        _key(call): call
        for each in calls.values()
        for entry in each
        if not isinstance(entry, Uncovered)
        for call in entry
    }
    ready = engine_model.ready
    device = ready.system.device.id
    surveyed: dict[tuple[Any, ...], Surveyed] = {}
    update(f"compiling {len(unique_calls)} calls")
    for entry in survey([(*call, device) for call in unique_calls.values()], jobs=jobs):
        surveyed[_key((entry.operator, entry.sizes))] = entry
        update(f"{len(surveyed)} of {len(unique_calls)} calls: {entry.operator}")
    served = tuple(
        ServedStep(
            phase,
            step,
            tuple(_served_kernels(ready, kernels_by_phase[phase], calls[phase], surveyed)),
        )
        for phase, step in steps
    )
    formats = {
        role: getattr(ready.precision, role).weights
        for role in ("attention", "dense", "experts", "head")
        if role != "experts" or ready.architecture.sparse
    }
    formats["cache"] = ready.precision.cache
    bounded = ready.model.prices.bounded.items()
    notes = (*ready.notes, *(f"{kernel}: only a bound, because {why}" for kernel, why in bounded))
    gpus = deployment.parallel.gpus
    return EngineReport(engine_model.config.name, ENGINE, device, gpus, formats, served, notes)


def steps(prompt: int, sequences: int, context: int) -> tuple[tuple[str, Step], ...]:
    """Prefill of one prompt of `prompt` tokens, and decode of `sequences` with `context` tokens."""
    prefill = Step(chunks=1, tokens=prompt)
    return ("prefill", prefill), ("decode", Step(decode=sequences, context=context))


def vllm_deployment(gpus: int, dtype: str = "", cache: str = "", attention: str = "") -> Deployment:
    """vLLM with layers divided among `gpus` (tensor parallelism). Formats are as in
    `Deployment`."""
    parallel = Parallelism.filling(gpus, tensor=gpus)
    return Deployment(
        dtype=dtype, cache=cache, attention=attention, parallel=parallel, engine=ENGINE
    )


def _served_kernels(
    ready: ModelOnSystem,
    kernels: Sequence[tuple[EngineKernel, int]],
    calls: Sequence[tuple[LibraryCall, ...] | Uncovered],
    surveyed: Mapping[tuple[Any, ...], Surveyed],
) -> Iterable[ServedKernel]:
    """Kernels with equal operations are one, with the sum of their counts."""
    served_kernels: list[ServedKernel] = []
    for (kernel, count), kernel_calls in zip(kernels, calls, strict=True):
        layer = layer_of(kernel.node.name)
        plain = ServedKernel(
            ready.model.prices.of(kernel.node), layer.name, _dtype(kernel), count,
            part_of=layer.part_of,
        )  # fmt: skip
        served_kernels.append(_with_library(plain, kernel_calls, surveyed))
    refusals = {
        served_kernel.name: served_kernel.why_not
        for served_kernel in served_kernels
        if served_kernel.why_not
    }
    merged: dict[tuple[Any, ...], ServedKernel] = {}
    for served_kernel in served_kernels:
        if served_kernel.part_of in refusals:
            served_kernel = replace(
                served_kernel, seconds=None, why_not=refusals[served_kernel.part_of]
            )
        key = (served_kernel.name, served_kernel.default.node.op, served_kernel.operators)
        count = merged[key].count + served_kernel.count if key in merged else served_kernel.count
        merged[key] = replace(served_kernel, count=count)
    return merged.values()


def _with_library(
    plain: ServedKernel,
    calls: tuple[LibraryCall, ...] | Uncovered,
    surveyed: Mapping[tuple[Any, ...], Surveyed],
) -> ServedKernel:
    if isinstance(calls, Uncovered):
        return replace(plain, why_not=calls.why)
    each = [surveyed[_key(call)] for call in calls]
    operators = tuple(name for name, _ in calls)
    for call_result in each:
        if call_result.seconds is None:
            kernels = (kernel.why_not for kernel in call_result.kernels if kernel.why_not)
            why = call_result.failure or next(kernels, "no prediction")
            return replace(plain, operators=operators, why_not=f"{call_result.operator}: {why}")
    return replace(
        plain,
        operators=operators,
        kernels=tuple(
            dict.fromkeys(kernel.kernel for call_result in each for kernel in call_result.kernels)
        ),
        seconds=sum(call_result.seconds for call_result in each if call_result.seconds is not None),
    )


def _dtype(kernel: EngineKernel) -> str:
    """Dtype of the operands: weights and activations where they differ."""
    op = kernel.node.op
    activations = getattr(op, "dtype", "")
    weights = getattr(op, "weight", "") or getattr(op, "weights", "")
    scaling = getattr(op, "scaling", "")
    return " ".join(filter(None, (f"{weights} x" if weights else "", activations, scaling)))


def _key(call: LibraryCall) -> tuple[Any, ...]:
    name, sizes = call
    return (name, *sorted(sizes.items()))


__all__ = [
    "EngineModel",
    "EngineReport",
    "ServedKernel",
    "ServedStep",
    "engine_report",
    "steps",
    "vllm_deployment",
]
