"""`wavecast.ops/1`: what `wavecast ops --arch … --format json` writes."""

from __future__ import annotations

from typing import Annotated, Literal

from wavecast.json_objects import Count, JsonObject, NonNegative, Positive, doc


class OperatorKernelJson(JsonObject):
    """A kernel of an operator. Seconds are those of one launch."""

    kernel: Annotated[str, doc("symbol")]
    configuration: str
    source: Annotated[
        Literal["table", "formula", ""],
        doc("where the configuration is from; empty for a kernel with only one"),
    ]
    registers: Annotated[Count, doc("VGPRs per lane")]
    spills: Annotated[Count, doc("VGPRs spilled per lane")]
    lds_bytes: Annotated[Count, doc("per workgroup")]
    waves: Annotated[NonNegative, doc("resident per SIMD")]
    seconds: NonNegative | None
    low: NonNegative | None
    high: NonNegative | None
    limiter: str
    fidelity: Annotated[str, doc("static or executed")]
    why_not: Annotated[str, doc("why there is no prediction; empty where there is one")]
    count: Annotated[Positive, doc("number of launches")]


class OperatorCallJson(JsonObject):
    """A call of an operator on a device."""

    operator: str
    sizes: Annotated[dict[str, str | int | float | bool | None], doc("sizes, dtypes, options")]
    device: Annotated[str, doc("id of the device in `wavecast arch`")]
    kernels: list[OperatorKernelJson]
    floor: Annotated[NonNegative | None, doc("least seconds of the useful work at sustained rates")]
    bound: Literal["memory", "compute", "unknown", ""]
    failure: Annotated[str, doc("why there are no kernels; empty where there are")]
    seconds: Annotated[
        NonNegative | None, doc("predicted seconds of all kernels; null where one is unknown")
    ]
    share: Annotated[NonNegative | None, doc("floor / seconds")]


class OpsDocument(JsonObject, tag_field="schema", tag="wavecast.ops/1"):
    """What `wavecast ops --arch … --format json` writes."""

    calls: list[OperatorCallJson]
