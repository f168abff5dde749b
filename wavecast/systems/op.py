"""A figure of a served model as an operation with a time: runs are scored like kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

from wavecast.arch import Device
from wavecast.arch.systems import node_size, of_device
from wavecast.errors import UnknownName, Unpredictable
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.ops.base import UnstatedOp
from wavecast.perfmodel.prediction import Prediction
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
class ServedModel(UnstatedOp):
    """`metric` (a key of `METRICS`) of `model` (a name of `models.toml`) under `load`, one node.
    `statistic` of the requests is `mean` or `median`. `cold` is a mean of first tokens that
    contains the compilation of kernels in the first requests, and `cached` is a run whose prompts
    were probably answered from the prefix cache: neither is predicted, and their errors are counted
    apart."""

    kind: ClassVar[str] = "serving"
    shape_help: ClassVar[str] = "see wavecast model"
    predicted_by: ClassVar[str] = "wavecast model predicts whole models"

    metric: str
    model: str
    deployment: Deployment
    load: Load
    statistic: str = "mean"
    cold: bool = False
    cached: bool = False

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise UnknownName("metric of serving", self.metric, METRICS)
        if self.statistic not in ("mean", "median"):
            raise UnknownName("statistic", self.statistic, ("mean", "median"))

    @property
    def op_class(self) -> str:
        """Errors are counted by metric, apart for speculation, disaggregation, cold starts and
        cached prompts."""
        apart = "cold " * self.cold + "cached " * self.cached
        return f"serving {self.deployment.mode}{apart}{self.metric}"

    def work(self) -> Work:
        """What one GPU computes and reads for a prompt (`ttft`), else for a decode step of all
        sequences (`output`: for a token of it)."""
        config = huggingface.load(self.model)
        architecture = config.architecture
        gpus = self.deployment.parallel.tensor
        batch = self.load.prompt if self.metric == "ttft" else max(1, self.load.concurrency)
        flops = 2.0 * architecture.active_matrices * batch / gpus
        formats = precision(config, dtype=self.deployment.dtype)
        width = (formats.experts if architecture.sparse else formats.dense).bytes
        read = min(architecture.parameters, architecture.active_parameters * batch) * width / gpus
        share = 1.0 if self.metric != "output" else 1 / batch
        return Work({"bf16": flops * share}, read * share, 0.0, "two per parameter", "parameters")

    def predict(self, device: Device) -> Prediction:
        """Simulate the load. Raises Unpredictable where the model does not fit, and as
        `ModelOnSystem`."""
        answer = _serve(self.model, device, self.deployment, self.load)
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
def _ready(model: str, device: Device, deployment: Deployment) -> ModelOnSystem:
    gpus = deployment.parallel.gpus
    pools = deployment.disaggregation
    total = pools.gpus(deployment.parallel) if pools else gpus
    largest = max(gpus, pools.parallel.gpus if pools and pools.parallel else 0)
    most = node_size(device)
    if largest > most:
        raise Unpredictable(f"{largest} GPUs are several nodes, whose links are not modelled")
    config = huggingface.load(model)
    if pools and total > most:
        machine = of_device(device, largest, pools.instances)
    else:
        machine = of_device(device, total)
    ready = ModelOnSystem(config, machine, deployment)
    if ready.lacking is not None:
        raise Unpredictable(f"{model} does not fit {gpus} GPUs")
    return ready


@lru_cache(maxsize=256)
def _serve(model: str, device: Device, deployment: Deployment, load: Load) -> ServingAnswer:
    return _ready(model, device, deployment).serve(load)


__all__ = ["METRICS", "ServedModel"]
