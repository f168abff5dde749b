"""`wavecast.system/1`: what `wavecast model --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.documents.system_changes import (
    ComparedSystemJson,
    ModelFindingsJson,
    ModelWhatIfJson,
    TokenCostJson,
)
from wavecast.json_objects import Count, JsonObject, NonNegative, Numbers, Positive, Share, doc
from wavecast.systems.intervals import Interval
from wavecast.systems.serving import Latencies


class StepKernelJson(JsonObject):
    """A kernel of the decode step."""

    name: Annotated[str, doc("what it computes, such as qkv_proj")]
    module: Annotated[str, doc("attention, projections, mlp, experts, norm, collective or head")]
    operation: Annotated[str, doc("the operation with its sizes and dtypes")]
    count: Annotated[Positive, doc("how often the step runs it")]
    seconds: Annotated[NonNegative, doc("one run, in seconds")]
    low: Annotated[NonNegative, doc("lower end of its 80 % interval")]
    high: Annotated[NonNegative, doc("upper end of its 80 % interval")]
    limiter: Annotated[str, doc("the resource that decides its time")]
    kernel: Annotated[str, doc("the library or kernel that is assumed")]
    bounded: Annotated[str, doc("why only a bound of its time is known; else empty")]


class EngineStepJson(JsonObject):
    """A step: the kernels of all layers, once."""

    seconds: Annotated[NonNegative, doc("the step")]
    device: Annotated[NonNegative, doc("seconds of its kernels")]
    host: Annotated[NonNegative, doc("seconds of the CPU, which may overlap")]
    kernels: Annotated[Count, doc("number of kernels")]
    modules: Annotated[Numbers, doc("seconds of the kernels by module")]


class ServingJson(JsonObject):
    """A simulated load."""

    prompt: Annotated[Positive, doc("most tokens of a prompt")]
    output: Annotated[Positive, doc("most tokens of an output")]
    concurrency: Annotated[Count, doc("requests at once; 0 for an open loop")]
    rate: Annotated[NonNegative, doc("requests per second of an open loop, else 0")]
    requests: Annotated[Positive, doc("simulated requests of one replica")]
    ttft: Annotated[Interval, doc("mean time to first token, seconds")]
    tpot: Annotated[Interval, doc("mean time per output token after the first, seconds")]
    output_rate: Annotated[Interval, doc("output tokens per second of all GPUs")]
    ttft_of_requests: Annotated[Latencies, doc("time to first token")]
    tpot_of_requests: Annotated[Latencies, doc("time per output token")]
    itl_of_tokens: Annotated[Latencies, doc("time between tokens of a request")]
    end_to_end: Annotated[Latencies, doc("whole requests")]
    running: Annotated[Count, doc("most sequences that ran at once")]
    prefill_share: Annotated[Share, doc("share of the time in steps with prompts")]
    preemptions: Annotated[Count, doc("how often a sequence lost its cache and was computed again")]
    decode: Annotated[EngineStepJson, doc("a decode step in the middle of the run")]
    prefill: Annotated[EngineStepJson, doc("the step of one prompt")]
    kernels: Annotated[list[StepKernelJson], doc("the kernels of the decode step")]


class MemoryJson(JsonObject):
    """The memory of one GPU, in bytes."""

    parts: Annotated[Numbers, doc("bytes by use")]
    available: Annotated[NonNegative, doc("bytes that the engine may take")]
    pool: Annotated[float, doc("bytes left for keys, values and states; negative: does not fit")]
    token: Annotated[NonNegative, doc("bytes of a cached token")]
    sequence: Annotated[NonNegative, doc("bytes of the state of a sequence")]
    fits: Annotated[bool, doc("whether anything is left for a cache")]


class ModelJson(JsonObject):
    """One model on one system."""

    model: Annotated[str, doc("name of the model")]
    parameters: Annotated[Positive, doc("elements of all weights")]
    active_parameters: Annotated[Positive, doc("elements that one token is multiplied by")]
    system: Annotated[str, doc("the machine")]
    device_id: Annotated[str, doc("id of its GPUs in `wavecast arch`")]
    gpus: Annotated[Positive, doc("GPUs that the model takes")]
    parallelism: Annotated[str, doc("how it is divided, such as TP8")]
    engine: Annotated[str, doc("profile of the engine")]
    engine_version: Annotated[str, doc("version that the profile describes")]
    weights: Annotated[dict[str, str], doc("format of the weights by role")]
    cache: Annotated[str, doc("dtype of keys and values")]
    memory: Annotated[MemoryJson, doc("memory of one GPU")]
    servings: Annotated[list[ServingJson], doc("one entry per load")]
    why_not: Annotated[str, doc("why there are no servings; else empty")]
    notes: Annotated[list[str], doc("what a user must know about the prediction")]


class SystemDocument(JsonObject, tag_field="schema", tag="wavecast.system/1"):
    """What `wavecast model --format json` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    models: Annotated[list[ModelJson], doc("systems in the order that was asked for")]
    what_if: Annotated[list[ModelWhatIfJson], doc("changes, an entry per system")]
    comparison: Annotated[list[ComparedSystemJson], doc("ratios to the first system")]
    findings: Annotated[list[ModelFindingsJson], doc("what to change, an entry per system")]
    costs: Annotated[list[list[TokenCostJson]], doc("per system, an entry per load")]
