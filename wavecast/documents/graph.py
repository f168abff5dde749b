"""`wavecast.graph/1`: what `wavecast model` writes for a module, a program or a description."""

from __future__ import annotations

from typing import Annotated

from wavecast.json_objects import Count, JsonObject, NonNegative, Numbers, Positive, doc
from wavecast.systems.intervals import Interval


class GraphKernelJson(JsonObject):
    """Equal kernels of a graph."""

    operator: Annotated[str, doc("the operator that launches it, such as aten.addmm; or fused")]
    name: Annotated[str, doc("what it computes, such as product")]
    operation: Annotated[str, doc("the operation with its sizes and dtypes")]
    phase: Annotated[str, doc("forward, backward or optimizer")]
    count: Annotated[Positive, doc("how often it runs")]
    modules: Annotated[list[str], doc("paths of the modules that launch it, each once")]
    seconds: Annotated[NonNegative, doc("one run, in seconds")]
    low: Annotated[NonNegative, doc("lower end of its interval")]
    high: Annotated[NonNegative, doc("upper end of its interval")]
    limiter: Annotated[str, doc("the resource that decides its time")]
    kernel: Annotated[str, doc("the library or kernel that is assumed")]
    bounded: Annotated[str, doc("why only a bound of its time is known; else empty")]


class GraphMemoryJson(JsonObject):
    """The memory of the GPU, in bytes."""

    parts: Annotated[Numbers, doc("bytes by use")]
    total: Annotated[NonNegative, doc("their sum")]
    available: Annotated[float | None, doc("bytes of the GPU; null where not known")]
    fits: Annotated[bool, doc("whether the sum is not more than that")]


class ModuleJson(JsonObject):
    """One graph on one GPU. Times are in seconds."""

    name: Annotated[str, doc("the module's class, function or file")]
    device_id: Annotated[str, doc("id of the GPU in `wavecast arch`")]
    engine: Annotated[str, doc("eager or compile")]
    parameters: Annotated[Count, doc("elements of the weights")]
    total: Annotated[Interval, doc("a run, from the first call to the end of the last kernel")]
    device: Annotated[NonNegative, doc("seconds of all kernels")]
    host: Annotated[NonNegative, doc("until the host has launched the last kernel")]
    idle: Annotated[NonNegative, doc("in which the GPU waits for the host")]
    calls: Annotated[Count, doc("calls of operators")]
    launches: Annotated[Count, doc("kernels")]
    by_phase: Annotated[Numbers, doc("seconds of kernels by phase")]
    by_operator: Annotated[Numbers, doc("seconds of kernels by operator")]
    by_module: Annotated[Numbers, doc("seconds of kernels by path of the module")]
    memory: Annotated[GraphMemoryJson, doc("weights, states and the peak of what calls make")]
    kernels: Annotated[list[GraphKernelJson], doc("kernels, the longest together first")]
    notes: Annotated[list[str], doc("assumptions, and operators that no predictor knows")]


class GraphDocument(JsonObject, tag_field="schema", tag="wavecast.graph/1"):
    """What `wavecast model` writes for a module, an exported program or a description."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    models: Annotated[list[ModuleJson], doc("GPUs in the order that was asked for")]
