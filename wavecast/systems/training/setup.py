"""What is trained how: batch, formats, recomputation, parallelism; and whether sizes divide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wavecast.errors import UnknownName, Unpredictable, UsageError
from wavecast.systems.architecture import (
    CompressedAttention,
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    LinearAttention,
    ModelArchitecture,
)

DTYPES: Final = ("bf16", "fp8", "mxfp8")
"""Formats of the matrix products; mxfp8 is fp8 with a scale per 32 elements."""
GRADIENTS: Final = ("fp32", "bf16")
RECOMPUTE: Final = {
    "none": "all inputs of the backward pass are stored",
    "selective": "norms and activation functions are computed again",
    "full": "every layer is computed again from its input",
}
SCHEDULES: Final = ("1f1b", "interleaved", "gpipe", "zero-bubble")
SHARDING: Final = {
    0: "replicas",
    1: "optimizer states (ZeRO-1)",
    2: "optimizer states and gradients (ZeRO-2)",
    3: "optimizer states, gradients and weights (ZeRO-3, FSDP)",
}
LORA_TARGETS: Final = ("qkv_proj", "o_proj")
"""Projections with adapters: those of MLPerf's Llama 2 70B LoRA benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSetup:
    """`batch` sequences of `sequence` tokens per step on `gpus`, `micro_batch` at once.

    `dtype`: one of `DTYPES`. `gradients`: dtype that gradients are accumulated and reduced in.
    `fp8_activations`: operands of activation functions are stored in fp8 for the backward pass.
    `recompute`: a key of `RECOMPUTE`, in `recompute_layers` layers of every GPU (0: all).

    `tensor`, `pipeline`, `context`, `expert`: GPUs that divide a layer, the layers, a sequence, the
    experts; what is left of `gpus` are replicas (`data`). `sequence_parallel`: norms are divided
    among the GPUs of `tensor`, too. `schedule`: one of `SCHEDULES`, with `chunks` parts of the
    layers per GPU (interleaved). `sharding`: a key of `SHARDING`. `lora`: rank of adapters of
    `LORA_TARGETS` over frozen weights (0: all weights are trained).

    `overlap`: share of the communication of sharding that is hidden (None: as assumed).
    `tensor_overlap`: a library splits products so that communication of tensor parallelism runs
    next to their parts. `expert_overlap`: tokens of one micro-batch go to their experts and back
    next to the compute of another.

    Raises UsageError for sizes that do not divide, UnknownName for a name.
    """

    gpus: int
    batch: int
    sequence: int
    micro_batch: int = 1
    dtype: str = "bf16"
    gradients: str = "fp32"
    fp8_activations: bool = False
    recompute: str = "none"
    recompute_layers: int = 0
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    sequence_parallel: bool = True
    schedule: str = "1f1b"
    chunks: int = 1
    sharding: int = 1
    lora: int = 0
    overlap: float | None = None
    tensor_overlap: bool = False
    expert_overlap: bool = False

    def __post_init__(self) -> None:
        for name in ("gpus", "batch", "sequence", "micro_batch", "tensor", "pipeline", "context",
                     "expert", "chunks"):  # fmt: skip
            value = getattr(self, name)
            if not 1 <= value <= 1 << 24:
                raise UsageError(f"{name} is {value}, not 1 to {1 << 24}")
        for name, value, choices in (
            ("dtype of training", self.dtype, DTYPES),
            ("dtype of gradients", self.gradients, GRADIENTS),
            ("recomputation", self.recompute, RECOMPUTE),
            ("pipeline schedule", self.schedule, SCHEDULES),
        ):
            if value not in choices:
                raise UnknownName(name, value, choices)
        if self.sharding not in SHARDING:
            raise UsageError(f"sharding is {self.sharding}, not 0 to 3")
        if self.lora < 0 or self.recompute_layers < 0:
            raise UsageError("lora and recompute_layers are not negative")
        if self.overlap is not None and not 0 <= self.overlap <= 1:
            raise UsageError(f"overlap is {self.overlap}, not 0 to 1")
        divided = self.tensor * self.pipeline * self.context
        if self.gpus % divided:
            raise UsageError(
                f"{self.gpus} GPUs do not divide by TP{self.tensor} PP{self.pipeline} "
                f"CP{self.context}"
            )
        if self.batch % (self.data * self.micro_batch):
            raise UsageError(
                f"a batch of {self.batch} does not divide by {self.data} replicas and "
                f"micro-batches of {self.micro_batch}"
            )
        if (self.gpus // self.pipeline) % self.expert:
            raise UsageError(
                f"{self.expert} GPUs of --ep do not divide the {self.gpus // self.pipeline} of a "
                "stage"
            )
        if self.recompute_layers and self.recompute != "full":
            raise UsageError("recompute_layers belongs to the recomputation full")
        if self.expert_overlap and self.expert == 1:
            raise UsageError("the overlap of exchanges with experts needs experts on several GPUs")
        if (self.chunks > 1) != (self.schedule == "interleaved"):
            raise UsageError("several chunks per GPU belong to the schedule interleaved")
        if self.pipeline == 1 and self.schedule not in ("1f1b", "gpipe"):
            raise UsageError(f"the schedule {self.schedule} needs several stages")
        if self.chunks > 1 and self.micro_batches % self.pipeline:
            raise UsageError(
                f"{self.micro_batches} micro-batches do not divide by {self.pipeline} stages, "
                "which the schedule interleaved needs"
            )
        parts = self.context * (self.tensor if self.sequence_parallel else 1)
        if self.sequence % parts:
            raise UsageError(f"a sequence of {self.sequence} tokens does not divide by {parts}")

    @property
    def data(self) -> int:
        """Replicas, which have different sequences."""
        return self.gpus // (self.tensor * self.pipeline * self.context)

    @property
    def shards(self) -> int:
        """GPUs that have the same part of the weights outside of experts."""
        return self.data * self.context

    @property
    def expert_shards(self) -> int:
        """GPUs that have the same experts."""
        if self.expert == 1:
            return self.shards
        return self.gpus // self.pipeline // self.expert

    @property
    def micro_batches(self) -> int:
        """Micro-batches of a step of one replica: gradients are accumulated over them."""
        return self.batch // (self.data * self.micro_batch)

    @property
    def rows(self) -> int:
        """Tokens of a micro-batch on one GPU."""
        return self.micro_batch * self.sequence // self.context

    @property
    def norm_ranks(self) -> int:
        """GPUs that divide the rows of norms and of the residual stream."""
        return self.tensor if self.sequence_parallel else 1

    @property
    def gradient_bytes(self) -> float:
        """Bytes of a gradient."""
        return 4.0 if self.gradients == "fp32" else 2.0

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.batch * self.sequence

    def __str__(self) -> str:
        parts = [f"TP{self.tensor}", f"PP{self.pipeline}", f"CP{self.context}", f"EP{self.expert}"]
        labels = [part for part in parts if not part.endswith("P1") or part == "TP1"]
        labels += [f"DP{self.data}"] * (self.data > 1)
        labels += [f"ZeRO-{self.sharding}"] * (self.shards > 1 and self.sharding > 0)
        if self.pipeline > 1:
            labels.append(self.schedule + (f" x{self.chunks}" if self.chunks > 1 else ""))
        labels += [f"LoRA {self.lora}"] * (self.lora > 0)
        return " ".join(labels)


def check(architecture: ModelArchitecture, setup: TrainingSetup) -> None:
    """Raises UsageError where the model does not divide, Unpredictable where its training is not
    modelled."""
    name, tensor = architecture.name, setup.tensor
    if setup.pipeline * setup.chunks > architecture.depth:
        raise UsageError(
            f"{name} has {architecture.depth} layers, fewer than {setup.pipeline} stages of "
            f"{setup.chunks} chunks"
        )
    for layer, _ in architecture.layers:
        attention, mlp = layer.attention, layer.mlp
        if isinstance(attention, CompressedAttention) or (
            isinstance(attention, LatentAttention) and attention.indexer
        ):
            raise Unpredictable(f"{name}: training of {attention.name} is not modelled")
        heads = attention.value_heads if isinstance(attention, LinearAttention) else attention.heads
        if heads % tensor:
            raise UsageError(f"{name}: {heads} heads do not divide among {tensor} GPUs")
        if isinstance(attention, GroupedQueryAttention):
            keys = attention.kv_heads
            if max(keys, tensor) % min(keys, tensor):
                raise UsageError(f"{name}: {keys} heads of keys do not divide among {tensor} GPUs")
        if isinstance(mlp, ExpertMlp):
            if mlp.experts % setup.expert:
                raise UsageError(
                    f"{name}: {mlp.experts} experts do not divide among {setup.expert} GPUs"
                )
            if setup.expert > 1 and tensor > 1 and not setup.sequence_parallel:
                raise UsageError("experts on several GPUs with tensor parallelism need sequence "
                                 "parallelism")  # fmt: skip
        elif mlp.inter % tensor:
            raise UsageError(f"{name}: {mlp.inter} units do not divide among {tensor} GPUs")
    if setup.expert > 1 and not architecture.sparse:
        raise UsageError(f"{name} has no experts for {setup.expert} GPUs")


__all__ = [
    "DTYPES",
    "GRADIENTS",
    "LORA_TARGETS",
    "RECOMPUTE",
    "SCHEDULES",
    "SHARDING",
    "TrainingSetup",
    "check",
]
