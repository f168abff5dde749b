"""`wavecast.training/1`: what `wavecast model --train --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.json_objects import Count, JsonObject, NonNegative, Numbers, Positive, doc
from wavecast.systems.intervals import Interval


class TrainingKernelJson(JsonObject):
    """A kernel of a micro-batch."""

    name: Annotated[str, doc("what it computes, such as qkv_proj weight grad")]
    module: Annotated[str, doc("attention, projections, mlp, experts, norm, head or optimizer")]
    phase: Annotated[str, doc("forward, recompute, input_grad or weight_grad")]
    operation: Annotated[str, doc("the operation with its sizes and dtypes")]
    count: Annotated[NonNegative, doc("how often a GPU runs it for a micro-batch, as a mean")]
    seconds: Annotated[NonNegative, doc("one run alone, in seconds")]
    limiter: Annotated[str, doc("the resource that decides its time")]
    kernel: Annotated[str, doc("the library or kernel that is assumed")]
    bounded: Annotated[str, doc("why only a bound of its time is known; else empty")]


class TrainingMemoryJson(JsonObject):
    """The memory of the fullest GPU, in bytes."""

    parts: Annotated[Numbers, doc("bytes by use")]
    needed: Annotated[NonNegative, doc("all parts")]
    available: Annotated[NonNegative, doc("bytes that training may take")]
    fits: Annotated[bool, doc("whether the GPU has as much")]
    largest_micro_batch: Annotated[Count, doc("largest micro-batch that fits; 0: none")]


class TrainingFiguresJson(JsonObject):
    """A training step; communication and phases are of a mean GPU."""

    seconds: Annotated[Interval, doc("one step")]
    tokens_per_gpu: Annotated[Interval, doc("tokens per second and GPU")]
    mfu: Annotated[Interval | None, doc("useful FLOP/s over the peak of the dtype")]
    peak_dtype: Annotated[str, doc("dtype whose peak MFU is a share of")]
    exposed_communication: Annotated[Interval, doc("share of a step")]
    bubble: Annotated[Interval, doc("share of the pipeline's time that the busiest GPU waits")]
    training_seconds: Annotated[Interval | None, doc("all tokens; null: number not given")]
    phases: Annotated[Numbers, doc("seconds of kernels by phase")]
    exposed: Annotated[Numbers, doc("seconds of communication that nothing hides, by parallelism")]
    hidden: Annotated[Numbers, doc("seconds of communication that compute hides")]
    optimizer: Annotated[NonNegative, doc("seconds of the update of the weights")]
    host_bound: Annotated[bool, doc("whether the CPU launches more slowly than the GPU computes")]
    kernels: Annotated[list[TrainingKernelJson], doc("kernels of a micro-batch")]


class TrainingJson(JsonObject):
    """One model with one setup on one system."""

    model: Annotated[str, doc("name of the model")]
    parameters: Annotated[Positive, doc("elements of all weights")]
    active_parameters: Annotated[Positive, doc("elements that one token is multiplied by")]
    system: Annotated[str, doc("the machine")]
    device_id: Annotated[str, doc("id of its GPUs in `wavecast arch`")]
    gpus: Annotated[Positive, doc("GPUs of the training")]
    parallelism: Annotated[str, doc("how the model is divided")]
    dtype: Annotated[str, doc("format of the products")]
    recompute: Annotated[str, doc("none, selective or full")]
    batch: Annotated[Positive, doc("sequences of a step")]
    sequence: Annotated[Positive, doc("tokens of a sequence")]
    micro_batch: Annotated[Positive, doc("sequences at once")]
    micro_batches: Annotated[Positive, doc("micro-batches of a step of one replica")]
    memory: Annotated[TrainingMemoryJson, doc("memory of the fullest GPU")]
    figures: Annotated[TrainingFiguresJson | None, doc("the step; null where it does not fit")]
    why_not: Annotated[str, doc("why there are no figures; else empty")]
    notes: Annotated[list[str], doc("what a user must know about the prediction")]


class TrainingDocument(JsonObject, tag_field="schema", tag="wavecast.training/1"):
    """What `wavecast model --train --format json` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    trainings: Annotated[list[TrainingJson], doc("systems in the order that was asked for")]
