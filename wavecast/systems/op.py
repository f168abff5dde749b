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
    "requests": "time per request of all requests: 1 / (requests per second)",
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
        sequences (`output`: for a token of it, `requests`: for a prompt and a share of the steps of
        its tokens)."""
        config = huggingface.load(self.model)
        architecture = config.architecture
        gpus = self.deployment.parallel.tensor
        batch = self.load.prompt if self.metric == "ttft" else max(1, self.load.concurrency)
        flops = 2.0 * architecture.active_matrices * batch / gpus
        formats = precision(config, dtype=self.deployment.dtype)
        width = (formats.experts if architecture.sparse else formats.dense).bytes
        read = min(architecture.parameters, architecture.active_parameters * batch) * width / gpus
        share = {"output": 1 / batch, "requests": self.load.output / batch}.get(self.metric, 1.0)
        prompt = self.load.prompt * (1 - self.load.prefix) if self.metric == "requests" else 0.0
        flops, read = flops * share, read * share
        flops += 2.0 * architecture.active_matrices * prompt / gpus
        return Work({"bf16": flops}, read, 0.0, "two per parameter", "parameters")

    def predict(self, device: Device) -> Prediction:
        """Simulate the load. Raises Unpredictable where the model does not fit, and as
        `ModelOnSystem`."""
        answer = _serve(self.model, device, self.deployment, self.load)
        interval = {"ttft": answer.ttft, "tpot": answer.tpot}.get(self.metric)
        if interval is None:
            rate = answer.output_rate
            tokens = self.load.output if self.metric == "requests" else 1
            ends = (rate.value, rate.high, rate.low)
            seconds, low, high = (tokens / end for end in ends)
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
