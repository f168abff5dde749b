"""`wavecast model --train`: a training step of a model on machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wavecast.api.machines import ParallelOptions, ReportFiles, TimedResult
from wavecast.api.result import few
from wavecast.errors import UsageError
from wavecast.options import Progress, option, silent
from wavecast.options.values import Integers, Numbers, OneOf

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.report.systems.chakra import RankedRun
    from wavecast.report.systems.traces import TracedRun
    from wavecast.systems.training.answer import TrainingAnswer
    from wavecast.systems.training.setup import TrainingSetup


@dataclass(frozen=True, kw_only=True)
class TrainOptions(ReportFiles, ParallelOptions):
    """Options of a training (docs/training.md). `zero` and `schedule` follow from the others where
    they are None."""

    train: bool = option(False, "Predict a training step instead of serving.")
    batch: int | None = option(None, "Training: sequences of a step.", values=Integers(1))
    seq: int | None = option(None, "Training: tokens of a sequence.", values=Integers(1, 1 << 24))
    micro_batch: int = option(1, "Training: sequences at once on a replica.", values=Integers(1))
    cp: int = option(1, "Training: GPUs that divide a sequence.", values=Integers(1))
    schedule: str | None = option(
        None,
        "Training: schedule of the pipeline.",
        values=OneOf(("1f1b", "interleaved", "gpipe", "zero-bubble")),
    )
    chunks: int = option(
        1,
        "Training: parts of the layers per GPU, of the schedule interleaved.",
        values=Integers(1),
    )
    fsdp: bool = option(False, "Training: shard weights, too (ZeRO-3).")
    zero: int | None = option(
        None,
        "Training: what replicas shard; 1: optimizer, 2: gradients, 3: weights.",
        values=Integers(0, 3),
        default_text="1",
    )
    recompute: str = option(
        "none",
        "Training: what the backward pass computes again.",
        values=OneOf(("none", "selective", "full")),
    )
    recompute_layers: int = option(
        0,
        "Training: layers of a GPU that --recompute full computes again.",
        values=Integers(1),
        default_text="all",
    )
    lora: int = option(
        0, "Training: rank of adapters over frozen weights.", values=Integers(1), default_text=""
    )
    grad_dtype: str = option(
        "fp32", "Training: dtype of gradients.", values=OneOf(("fp32", "bf16"))
    )
    fp8_activations: bool = option(
        False, "Training: store operands of activation functions in fp8."
    )
    no_sequence_parallel: bool = option(False, "Training: norms on every GPU of --tp in full.")
    overlap_experts: bool = option(
        False, "Training: exchanges with experts run next to another micro-batch."
    )
    split_products: bool = option(
        False, "Training: communication of --tp runs next to parts of the products."
    )
    overlap: float | None = option(
        None,
        "Training: share of the communication of replicas that is hidden.",
        values=Numbers(0, 1),
    )
    tokens: float = option(
        0.0,
        "Training: tokens of the whole training.",
        values=Numbers(0, 1e18, above=True),
        default_text="",
    )

    def setup(self, gpus: int) -> TrainingSetup:
        """The setup on so many GPUs; `dp` larger than 1 must agree with the other sizes.

        Raises UsageError for options that exclude each other and sizes that do not divide,
        UnknownName for names.
        """
        from wavecast.systems.training.setup import TrainingSetup

        if self.batch is None or self.seq is None:
            raise UsageError("--train needs --batch and --seq")
        if self.fsdp and self.zero not in (None, 3):
            raise UsageError("--fsdp is --zero 3")
        setup = TrainingSetup(
            gpus=gpus,
            batch=self.batch,
            sequence=self.seq,
            micro_batch=self.micro_batch,
            dtype=self.dtype or "bf16",
            gradients=self.grad_dtype,
            fp8_activations=self.fp8_activations,
            recompute=self.recompute,
            recompute_layers=self.recompute_layers,
            tensor=self.tp or 1,
            pipeline=self.pp,
            context=self.cp,
            expert=self.ep,
            sequence_parallel=not self.no_sequence_parallel,
            schedule=self.schedule or ("interleaved" if self.chunks > 1 else "1f1b"),
            chunks=self.chunks,
            sharding=3 if self.fsdp else 1 if self.zero is None else self.zero,
            lora=self.lora,
            overlap=self.overlap,
            tensor_overlap=self.split_products,
            expert_overlap=self.overlap_experts,
        )
        if self.dp not in (1, setup.data):
            raise UsageError(f"{gpus} GPUs have {setup.data} replicas, not the {self.dp} of --dp")
        return setup


@dataclass(frozen=True, slots=True, repr=False)
class TrainingReport(TimedResult):
    """A training on one system or several: `answers`, one per system. The document is
    `wavecast.training/1`."""

    answers: Sequence[TrainingAnswer]

    def render(self, console: Console, *, detail: str = "normal") -> None:
        from wavecast.report.systems import training

        training.render(self.answers, console, detail=detail)

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.systems import training

        return training.document(self.answers)

    def html(self) -> str:
        from wavecast.report.systems import model_pages

        return model_pages.training_page(self.answers)

    def timed_runs(self) -> list[TracedRun]:
        from wavecast.report.systems import traces

        return traces.training_runs(self.answers)

    def runs_of_ranks(self) -> list[RankedRun]:
        from wavecast.report.systems import chakra

        return chakra.training_runs(self.answers)

    def _repr_html_(self) -> str:
        from wavecast.report.systems import model_pages

        return model_pages.trained_fragment(self.answers)

    def why_nothing(self) -> str:
        fits = any(answer.figures for answer in self.answers)
        return "" if fits else "the training fits none of the systems"

    def subject(self) -> str:
        systems = few([answer.system.name for answer in self.answers])
        return f"{self.answers[0].architecture.name} on {systems}"


def train(
    name: str,
    options: TrainOptions,
    progress: Progress = silent,  # noqa: ARG001
) -> TrainingReport:
    """Predict a training step of the model `name` (`model`).

    A training that does not fit is an answer with `why_not`. Raises UnknownName, UsageError,
    MissingFact and Unpredictable as `systems.training.answer.train`.
    """
    from wavecast.systems import huggingface
    from wavecast.systems.training.answer import train as answer

    config = huggingface.load(name)
    machines = [(machine, options.setup(machine.gpus)) for machine in options.machines()]
    report = TrainingReport(
        [answer(config, machine, setup, tokens=options.tokens) for machine, setup in machines]
    )
    report.write(options)
    return report


__all__ = ["TrainOptions", "TrainingReport", "train"]
