"""`wavecast.engine/1`: what `wavecast vllm-report --format json` writes."""

from __future__ import annotations

from typing import Annotated, Literal

from wavecast.json_objects import Count, JsonObject, NonNegative, Positive, Share, doc


class ServedKernelJson(JsonObject):
    """Equal kernels of a step. Seconds are those of one launch."""

    name: Annotated[str, doc("what it computes, such as qkv_proj")]
    layer: Annotated[str, doc("class of the engine's layer; empty where none is known")]
    operation: Annotated[str, doc("the operation with its sizes")]
    dtype: Annotated[str, doc("dtype of the operands and how they are scaled")]
    count: Annotated[Positive, doc("launches in a step")]
    default: Annotated[str, doc("library or kernel that the engine runs by default")]
    default_seconds: Annotated[NonNegative, doc("predicted seconds of the default")]
    default_low: Annotated[NonNegative, doc("lower end of its interval")]
    default_high: Annotated[NonNegative, doc("upper end of its interval")]
    operators: Annotated[list[str], doc("operators of wavecast.ops that compute it")]
    kernels: Annotated[list[str], doc("symbols of their kernels")]
    seconds: Annotated[
        NonNegative | None, doc("predicted seconds of these; null where the default remains")
    ]
    part_of: Annotated[str, doc("the kernel whose operators compute this one too; may be empty")]
    why_not: Annotated[str, doc("why the default remains; empty where it does not")]


class ServedStepJson(JsonObject):
    """A step of the engine. Seconds are those of its kernels."""

    phase: Annotated[Literal["prefill", "decode"], doc("prompts or single tokens")]
    sequences: Annotated[Positive, doc("sequences that the step computes")]
    tokens: Annotated[Positive, doc("new tokens of each")]
    context: Annotated[Count, doc("tokens of each that are in the cache before")]
    default_seconds: Annotated[NonNegative, doc("all kernels by the engine's defaults")]
    seconds: Annotated[NonNegative, doc("with the operators where there are some")]
    covered: Annotated[Share, doc("share of default_seconds that the operators compute")]
    kernels: list[ServedKernelJson]


class EngineDocument(JsonObject, tag_field="schema", tag="wavecast.engine/1"):
    """What `wavecast vllm-report --format json` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    model: Annotated[str, doc("name of the model")]
    engine: Annotated[str, doc("name of the engine")]
    device: Annotated[str, doc("id of the GPU in `wavecast arch`")]
    gpus: Annotated[Positive, doc("GPUs that divide every layer; kernels are those of one")]
    formats: Annotated[dict[str, str], doc("formats of weights by role, and of the cache")]
    steps: list[ServedStepJson]
    notes: list[str]
