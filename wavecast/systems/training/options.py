"""Options of a training, as a user names them."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.errors import UsageError
from wavecast.systems.training.setup import TrainingSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """Options of `wavecast model --train` without dashes (docs/training.md); `sequence` is that of
    `--seq`. `zero` and `schedule` follow from the others where they are None."""

    batch: int
    sequence: int
    micro_batch: int = 1
    dtype: str = "bf16"
    tp: int = 1
    dp: int = 1
    ep: int = 1
    pp: int = 1
    cp: int = 1
    schedule: str | None = None
    chunks: int = 1
    fsdp: bool = False
    zero: int | None = None
    recompute: str = "none"
    recompute_layers: int = 0
    lora: int = 0
    grad_dtype: str = "fp32"
    fp8_activations: bool = False
    no_sequence_parallel: bool = False
    split_products: bool = False
    overlap_experts: bool = False
    overlap: float | None = None

    def setup(self, gpus: int) -> TrainingSetup:
        """The setup on so many GPUs; `dp` larger than 1 must agree with the other sizes.

        Raises UsageError for options that exclude each other and sizes that do not divide,
        UnknownName for names.
        """
        if self.fsdp and self.zero not in (None, 3):
            raise UsageError("--fsdp is --zero 3")
        found = TrainingSetup(
            gpus=gpus,
            batch=self.batch,
            sequence=self.sequence,
            micro_batch=self.micro_batch,
            dtype=self.dtype,
            gradients=self.grad_dtype,
            fp8_activations=self.fp8_activations,
            recompute=self.recompute,
            recompute_layers=self.recompute_layers,
            tensor=self.tp,
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
        if self.dp not in (1, found.data):
            raise UsageError(f"{gpus} GPUs have {found.data} replicas, not the {self.dp} of --dp")
        return found


__all__ = ["TrainingOptions"]
