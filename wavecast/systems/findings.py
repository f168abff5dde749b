"""What to change first in a deployed model: changes that are predicted, in the order of what they
are worth end to end.

A candidate is a `ModelChange`; the changed deployment is predicted like any other, and what does
not raise the output tokens per second of a GPU at the last load is not shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wavecast import dtypes
from wavecast.arch.systems import System
from wavecast.perfmodel.ops.gemm.formats import SCALINGS
from wavecast.systems.answer import Deployment, ModelAnswer
from wavecast.systems.architecture import LatentAttention
from wavecast.systems.changes import parse, together
from wavecast.systems.graph import MODULES
from wavecast.systems.huggingface import ModelConfig
from wavecast.systems.precision import weight_format
from wavecast.systems.serving import Load
from wavecast.systems.whatif import ChangedModel, predict

LEAST: Final = 1.01
"""The smallest speedup that is shown."""
FASTER: Final = 0.8
"""Time of a module after someone has made it faster."""
_NARROWER: Final = ("fp8", "mxfp4")


@dataclass(frozen=True, slots=True)
class ModelFinding:
    """What to do (`advice`), and the changed deployment with its predicted speedups."""

    advice: str
    changed: ChangedModel

    @property
    def speedup(self) -> float:
        """The speedup in output tokens per second and GPU at the last load."""
        return self.changed.servings[-1].rate_per_gpu.value


@dataclass(frozen=True, slots=True)
class ModuleFinding:
    """A module, its share of the decode step of the last load, and the speedups if it took
    `FASTER` of its time."""

    module: str
    share: float
    changed: ChangedModel


@dataclass(frozen=True, slots=True)
class ModelFindings:
    """Changes of the deployment, and modules in the order of what making them faster is worth."""

    changes: tuple[ModelFinding, ...]
    modules: tuple[ModuleFinding, ...]


def findings(
    config: ModelConfig,
    system: System,
    deployment: Deployment,
    loads: tuple[Load, ...],
    before: ModelAnswer,
) -> ModelFindings:
    """What would make the deployment whose answer to the loads is `before` faster; nothing for a
    model that does not fit. Raises as `answer`."""
    if not before.servings:
        return ModelFindings((), ())
    last = loads[-1:]

    def predict_change(text: str) -> ChangedModel:
        base_answer = ModelAnswer(
            before.system, before.architecture, before.precision, before.parallel, before.engine,
            before.memory, before.servings[-1:],
        )  # fmt: skip
        return predict(config, system, deployment, last, base_answer, together(parse(text)))

    candidates = [
        ModelFinding(advice, predict_change(text)) for text, advice in _candidates(before)
    ]
    worth = [
        finding for finding in candidates if finding.changed.servings and finding.speedup >= LEAST
    ]
    step = before.servings[-1].decode
    modules = [
        ModuleFinding(
            module, step.modules[module] / step.seconds, predict_change(f"{module}*{FASTER}")
        )
        for module in MODULES
        if step.modules.get(module)
    ]
    return ModelFindings(
        tuple(sorted(worth, key=lambda finding: -finding.speedup)),
        tuple(sorted(modules, key=lambda finding: -finding.changed.servings[-1].tpot.value)),
    )


def _candidates(before: ModelAnswer) -> Iterator[tuple[str, str]]:
    """Changes as text, and what they advise."""
    yield from _formats(before)
    yield from _divisions(before)
    engine, serving = before.engine, before.servings[-1]
    running = serving.served.running
    if not engine.graphs or running > engine.captured:
        most = max(running, engine.captured)
        yield f"graphs on; captured {most}", f"capture graphs of up to {most:,} sequences"
    if not engine.asynchronous:
        yield "asynchronous on", "prepare a step on the CPU while the GPU runs the one before"
    if not engine.fused_reduce_norm and before.parallel.attention_tensor > 1:
        yield "fused-reduce-norm on", "fuse all-reduce, residual and norm"
    if not set(SCALINGS) <= set(engine.fused_quantisation):
        yield "fused-quantisation on", "quantise activations in the kernel before the product"


def _formats(before: ModelAnswer) -> Iterator[tuple[str, str]]:
    device, precision = before.system.device, before.precision
    widest = max(precision.dense.bytes, precision.experts.bytes)
    for name in _NARROWER:
        form = weight_format(name)
        multiplied = device.peak_flops(dtypes.lookup(form.activations).rate) is not None
        if form.bytes < 0.9 * widest and multiplied:
            yield f"dtype {name}", f"quantise the weights to {name}; accuracy is not predicted"
    if dtypes.lookup(precision.cache).bytes > 1:
        yield "kv-dtype fp8", "cache keys and values in fp8; accuracy is not predicted"


def _divisions(before: ModelAnswer) -> Iterator[tuple[str, str]]:
    """Other parallelism over the same GPUs."""
    parallel = before.parallel
    gpus, tensor = parallel.gpus, 1
    while tensor <= gpus:
        if gpus % tensor == 0 and tensor != parallel.tensor:
            data = gpus // tensor
            replicas = f"{data} replicas" if data > 1 else "one replica"
            yield f"tp {tensor}; dp {data}", f"{replicas} of TP{tensor}"
        tensor *= 2
    if before.architecture.sparse and parallel.expert == 1 and parallel.tensor > 1:
        yield f"ep {parallel.tensor}", "whole experts on every GPU instead of parts of all"
    layers = (layer for layer, _ in before.architecture.layers)
    latent = any(isinstance(layer.attention, LatentAttention) for layer in layers)
    if latent and not parallel.attention_data and parallel.tensor > 1:
        yield "dp-attention on", "attention of other sequences on every GPU"


__all__ = ["FASTER", "LEAST", "ModelFinding", "ModelFindings", "ModuleFinding", "findings"]
