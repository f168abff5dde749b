"""A figure of a served model as an operation with a time: runs are scored like kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final, Self

from wavecast.arch import Device, load
from wavecast.arch.systems import names, node_size, system
from wavecast.errors import UnknownName, Unpredictable, UsageError
from wavecast.model.bounds import Work
from wavecast.model.ops.base import Op
from wavecast.model.prediction import Prediction
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment, ModelOnSystem, ServingAnswer
from wavecast.systems.precision import precision
from wavecast.systems.serving import Load

METRICS: Final = {
    "ttft": "time to first token",
    "tpot": "time per output token after the first",
    "output": "time per output token of all requests: 1 / throughput",
}


@dataclass(frozen=True, slots=True)
class ServedModel(Op):
    """`metric` (a key of `METRICS`) of `model` (a name of `models.toml`) under `load`, one node.
    `machine` is a name of `systems.toml` where the node is not the usual one of the device.
    `statistic` of the requests is `mean` or `median`. `cold` is a mean of first tokens that
    contains the compilation of kernels in the first requests, which is not predicted: its errors
    are counted apart."""

    kind: ClassVar[str] = "serving"
    shape_help: ClassVar[str] = "see wavecast model"

    metric: str
    model: str
    deployment: Deployment
    load: Load
    statistic: str = "mean"
    cold: bool = False
    machine: str = ""

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise UnknownName("metric of serving", self.metric, METRICS)
        if self.statistic not in ("mean", "median"):
            raise UnknownName("statistic", self.statistic, ("mean", "median"))

    @property
    def op_class(self) -> str:
        """Errors are counted by metric, apart for speculation, disaggregation and cold starts."""
        cold = "cold " if self.cold else ""
        return f"serving {self.deployment.mode}{cold}{self.metric}"

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        """Raises UsageError: `wavecast model` has the options of a deployment."""
        del shape, options
        raise UsageError("serving has no --shape", hint="wavecast model predicts whole models")

    def work(self) -> Work:
        """What one GPU computes and reads for a decode step of all sequences, per token."""
        name, values = huggingface.load(self.model)
        architecture = huggingface.read(values, name)
        gpus = self.deployment.parallel.tensor
        batch = max(1, self.load.concurrency)
        flops = 2.0 * architecture.active_parameters * batch / gpus
        formats = precision(values, dtype=self.deployment.dtype)
        width = (formats.experts if architecture.sparse else formats.dense).bytes
        read = min(architecture.parameters, architecture.active_parameters * batch) * width / gpus
        share = 1.0 if self.metric != "output" else 1 / batch
        return Work({"bf16": flops * share}, read * share, 0.0, "two per parameter", "parameters")

    def predict(self, device: Device) -> Prediction:
        """Simulate the load. Raises Unpredictable where the model does not fit, and as
        `ModelOnSystem`."""
        answer = _served(self.model, self.machine or device.id, self.deployment, self.load)
        interval = {"ttft": answer.ttft, "tpot": answer.tpot}.get(self.metric)
        if interval is None:
            rate = answer.output_rate
            seconds, low, high = 1 / rate.value, 1 / rate.high, 1 / rate.low
        else:
            share = 1.0
            if self.statistic == "median":
                latencies = getattr(answer.served, self.metric)
                share = latencies.p50 / latencies.mean
            ends = (interval.value, interval.low, interval.high)
            seconds, low, high = (share * end for end in ends)
        modules = answer.decode.modules
        return Prediction(
            device=device.id,
            seconds=seconds,
            low=low,
            high=high,
            limiter=max(modules, key=lambda name: modules[name]),
            fidelity="formula",
            bounds=modules,
            assumed={
                "engine": self.deployment.engine,
                "formats": self.deployment.dtype or "stored",
            },
        )

    def __str__(self) -> str:
        load, how = self.load, self.deployment
        return (
            f"{self.metric} of {self.model} {how.dtype} {how.parallel} {how.engine}, "
            f"{load.prompt} in, {load.output} out, {load.concurrency} at once"
        )


@lru_cache(maxsize=4)
def _ready(model: str, machine: str, deployment: Deployment) -> ModelOnSystem:
    """On a machine of `systems.toml`, or on a node of a device."""
    gpus, named = deployment.parallel.gpus, machine in names()
    most = system(machine).gpus if named else node_size(load(machine))
    if gpus > most:
        raise Unpredictable(f"{gpus} GPUs are several nodes, whose links are not modelled")
    name, values = huggingface.load(model)
    pools = deployment.disaggregation
    total = gpus * (pools.instances if pools else 1)
    if named:
        selector = machine if total <= most else f"{-(-total // most)}x{machine}"
    elif total <= most:
        selector = f"{total}x{machine}"
    else:
        selector = f"{total // gpus}x{gpus}x{machine}"
    ready = ModelOnSystem(name, values, system(selector), deployment)
    if not ready.memory.fits:
        raise Unpredictable(f"{model} does not fit {gpus} GPUs")
    return ready


@lru_cache(maxsize=256)
def _served(model: str, machine: str, deployment: Deployment, asked: Load) -> ServingAnswer:
    return _ready(model, machine, deployment).serve(asked)


__all__ = ["METRICS", "ServedModel"]
