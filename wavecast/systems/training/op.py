"""A training step of a model as an operation with a time: runs are scored like kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from wavecast.arch import Device
from wavecast.arch.systems import system
from wavecast.errors import UsageError
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.ops.base import UnstatedOp
from wavecast.perfmodel.prediction import Prediction
from wavecast.systems import huggingface
from wavecast.systems.training.answer import NOT_MODELLED, TrainingFigures, figures
from wavecast.systems.training.flops import model_flops
from wavecast.systems.training.setup import TrainingSetup, check
from wavecast.systems.training.step import TrainingModel


@dataclass(frozen=True, slots=True)
class TrainedModel(UnstatedOp):
    """A step of `model` (a name of `models.toml`) with `setup` on GPUs of `machine` (a selector of
    `arch.systems.system`)."""

    kind: ClassVar[str] = "training"
    shape_help: ClassVar[str] = "see wavecast model --train"
    predicted_by: ClassVar[str] = "wavecast model --train predicts it"

    model: str
    setup: TrainingSetup
    machine: str

    def work(self) -> Work:
        """The FLOPs of one GPU that a step needs; its bytes are those of its weights, once per
        micro-batch and pass."""
        architecture, setup = huggingface.load(self.model).architecture, self.setup
        flops = model_flops(architecture, setup) / setup.gpus
        width = 2.0 if setup.dtype == "bf16" else 1.0
        weights = architecture.parameters * width / (setup.tensor * setup.pipeline * setup.expert)
        dtype = "bf16" if setup.dtype == "bf16" else "fp8"
        read = 3 * weights * setup.micro_batches
        return Work({dtype: flops}, read, 0.0, "six per parameter", "parameters")

    def predict(self, device: Device) -> Prediction:
        """The step. Raises as `TrainingModel.step`, and UsageError for another device than
        that of the machine."""
        training_figures = _figures(self.model, device.id, self.setup, self.machine)
        seconds, step = training_figures.seconds, training_figures.step
        bounds = {
            **{f"{name} communication": value for name, value in step.exposed.items()},
            **step.phases,
            "pipeline bubble": step.pipeline.seconds - step.pipeline.busy,
            "optimizer": step.optimizer,
        }
        return Prediction(
            device=device.id,
            seconds=seconds.value,
            low=seconds.low,
            high=seconds.high,
            limiter=max(bounds, key=lambda name: bounds[name]),
            fidelity="formula",
            bounds=bounds,
            assumed={"parallelism": str(self.setup), "recompute": self.setup.recompute},
            not_modelled=NOT_MODELLED,
        )

    def __str__(self) -> str:
        setup = self.setup
        return (
            f"training {self.model} {setup.dtype} on {setup.gpus} GPUs, {setup}, batch "
            f"{setup.batch} x {setup.sequence}, micro-batch {setup.micro_batch}"
        )


@lru_cache(maxsize=256)
def _figures(model: str, device: str, setup: TrainingSetup, machine: str) -> TrainingFigures:
    architecture = huggingface.load(model).architecture
    check(architecture, setup)
    cluster = system(machine)
    if cluster.device.id != device:
        raise UsageError(f"{cluster} has {cluster.device.id}, not {device}")
    return figures(TrainingModel(architecture, setup, cluster))


__all__ = ["TrainedModel"]
