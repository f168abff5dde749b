"""A model that is trained on a system: does it fit, how long is a step, and where the time goes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from wavecast import dtypes
from wavecast.arch import Device
from wavecast.arch.systems import System
from wavecast.errors import UsageError
from wavecast.systems.architecture import ExpertMlp, ModelArchitecture
from wavecast.systems.huggingface import ModelConfig
from wavecast.systems.intervals import Interval
from wavecast.systems.slices import TimelineSlice
from wavecast.systems.training.assumptions import Overlap, assumptions
from wavecast.systems.training.flops import model_flops
from wavecast.systems.training.intervals import bracketed_step
from wavecast.systems.training.memory import (
    TrainingMemory,
    largest_micro_batch,
    training_memory,
)
from wavecast.systems.training.setup import RECOMPUTE, TrainingSetup, check
from wavecast.systems.training.step import TrainingKernel, TrainingModel, TrainingStep

NOT_MODELLED: Final = (
    "data loading, checkpoints and evaluation",
    "unequal loads of experts",
    "different layers are taken to be distributed evenly over the stages",
)


@dataclass(frozen=True, slots=True)
class TrainingFigures:
    """A step and what follows from it; `timeline` has its first micro-batches.

    `seconds` of a step, `rate` in tokens per second and GPU, `mfu`: share of the peak FLOP/s of
    `peak_dtype`, `exposed`: share of a step in which communication is not hidden, `bubble`: share
    in which the busiest GPU of the pipeline waits, `training`: seconds for all tokens (None where
    their number is not given).
    """

    step: TrainingStep
    kernels: tuple[TrainingKernel, ...]
    timeline: tuple[TimelineSlice, ...]
    seconds: Interval
    rate: Interval
    mfu: Interval | None
    peak_dtype: str
    exposed: Interval
    bubble: Interval
    training: Interval | None


@dataclass(frozen=True, slots=True)
class TrainingAnswer:
    """One model with one setup on one system. `largest` is the largest micro-batch that fits.
    `why_not` says why there are no `figures`, else it is empty."""

    system: System
    architecture: ModelArchitecture
    setup: TrainingSetup
    memory: TrainingMemory
    largest: int
    figures: TrainingFigures | None
    why_not: str = ""
    notes: tuple[str, ...] = ()


def train(
    config: ModelConfig, system: System, setup: TrainingSetup, *, tokens: float = 0.0
) -> TrainingAnswer:
    """A model on a system; one that does not fit is an answer without figures. `tokens`: of the
    whole training (0: not given).

    Raises UsageError for sizes that do not divide, MissingFact for links
    or memory that are not known, Unpredictable for layers whose training is not modelled.
    """
    architecture = config.architecture
    check(architecture, setup)
    if setup.gpus > system.gpus:
        raise UsageError(f"{setup.gpus} GPUs, {system} has {system.gpus}")
    device = system.device
    memory = training_memory(architecture, setup, device)
    largest = largest_micro_batch(architecture, setup, device)
    if not memory.fits:
        more = f"; a micro-batch of {largest} fits"
        if not largest:
            more = _least_recompute(architecture, setup, device)
        why_not = (
            f"{config.name} needs {memory.needed / 2**30:.1f} GiB of every GPU, training may take "
            f"{memory.available / 2**30:.1f} GiB of {device.id}{more}"
        )
        return TrainingAnswer(system, architecture, setup, memory, largest, None, why_not)
    model = TrainingModel(architecture, setup, system)
    return TrainingAnswer(
        system=system,
        architecture=architecture,
        setup=setup,
        memory=memory,
        largest=largest,
        figures=figures(model, tokens),
        notes=_notes(model),
    )


def _least_recompute(architecture: ModelArchitecture, setup: TrainingSetup, device: Device) -> str:
    """The least recomputation with which the training fits, if any does."""
    order = list(RECOMPUTE)
    for recompute in order[order.index(setup.recompute) + 1 :]:
        other = replace(setup, recompute=recompute, recompute_layers=0)
        if training_memory(architecture, other, device).fits:
            return f"; --recompute {recompute} fits"
    return ""


def figures(model: TrainingModel, tokens: float = 0.0) -> TrainingFigures:
    """The figures of a step with their intervals."""
    setup, architecture, device = model.setup, model.architecture, model.system.device
    step, overlaps = model.step(), model.overlaps()
    fast = model.step({name: Overlap(o.high, o.high, o.high) for name, o in overlaps.items()})
    slow = model.step({name: Overlap(o.low, o.low, o.low) for name, o in overlaps.items()})
    seconds = bracketed_step(step.seconds, device, architecture, (fast.seconds, slow.seconds))
    each = setup.tokens / setup.gpus
    ranges = "overlap of communication from its least to its most"
    peak = device.peak_flops(dtypes.lookup(_peak_dtype(setup)).rate)
    required_flops = model_flops(architecture, setup) / setup.gpus
    return TrainingFigures(
        step=step,
        kernels=tuple(model.kernels()),
        timeline=tuple(model.timeline()),
        seconds=seconds,
        rate=_per_second(each, seconds),
        mfu=_per_second(required_flops / peak.number, seconds) if peak is not None else None,
        peak_dtype=_peak_dtype(setup),
        exposed=Interval(_share(step), _share(fast), _share(slow), ranges),
        bubble=_sorted_interval(
            step.pipeline.bubble, fast.pipeline.bubble, slow.pipeline.bubble, ranges
        ),
        training=_times(seconds, tokens / setup.tokens) if tokens else None,
    )


def _peak_dtype(setup: TrainingSetup) -> str:
    """The dtype whose peak MFU is a share of."""
    return "bf16" if setup.dtype == "bf16" else "fp8"


def _share(step: TrainingStep) -> float:
    return sum(step.exposed.values()) / step.seconds


def _sorted_interval(value: float, bound: float, other: float, basis: str) -> Interval:
    return Interval(value, min(value, bound, other), max(value, bound, other), basis)


def _per_second(amount: float, seconds: Interval) -> Interval:
    return Interval(
        amount / seconds.value, amount / seconds.high, amount / seconds.low, seconds.basis
    )


def _times(seconds: Interval, steps: float) -> Interval:
    ends = seconds.low * steps, seconds.high * steps
    return Interval(seconds.value * steps, *ends, seconds.basis)


def _notes(model: TrainingModel) -> tuple[str, ...]:
    setup = model.setup
    notes = [
        f"kernels take {assumptions().kernel_slowdown:g} times as long as alone "
        "(wavecast/systems/training/assumptions.toml)"
    ]
    if setup.dtype == "mxfp8":
        notes.append("mxfp8 is priced at the rate of fp8 with a scale per tensor")
    if any(isinstance(layer.mlp, ExpertMlp) for layer, _ in model.architecture.layers):
        notes.append("experts are taken to be chosen equally often")
    notes.append("gradients of norms and element-wise kernels are priced by their bytes")
    notes += [f"{name}: only a bound, because {why}" for name, why in model.prices.bounded.items()]
    return tuple(notes)


__all__ = ["NOT_MODELLED", "TrainingAnswer", "TrainingFigures", "figures", "train"]
