"""`wavecast.tune/1`: the table that `wavecast tune --output` writes and programs load."""

from __future__ import annotations

from typing import Annotated, Any

from wavecast.json_objects import Count, JsonObject, NonNegative, Positive, doc


class TunedConfigurationJson(JsonObject):
    """A configuration that compiles, with its predicted time in seconds."""

    rank: Annotated[Positive, doc("1 is the best")]
    configuration: Annotated[dict[str, Any], doc("settings by name")]
    seconds: NonNegative
    low: Annotated[NonNegative | None, doc("lower end of the 80 % interval")]
    high: Annotated[NonNegative | None, doc("upper end of the interval")]
    limiter: str
    fidelity: Annotated[str, doc("static or executed; executed ranks first")]
    registers: Annotated[Count | None, doc("VGPRs per lane")]
    spills: Annotated[Count | None, doc("VGPRs spilled per lane")]
    lds_bytes: Annotated[Count | None, doc("per workgroup")]
    waves: Annotated[NonNegative | None, doc("resident per SIMD")]
    matrix: Annotated[bool, doc("whether the code has matrix instructions")]
    reason: str


class RefusedConfigurationJson(JsonObject):
    """A configuration without a time."""

    configuration: Annotated[dict[str, Any], doc("settings by name")]
    reason: str


class TunedProblemJson(JsonObject):
    """One autotuned kernel for one class of arguments on one device."""

    kernel: Annotated[str, doc("symbol")]
    key: Annotated[dict[str, Any], doc("the autotuner's key by name")]
    arguments: Annotated[dict[str, str], doc("what the compiler specialises on")]
    source: Annotated[str, doc("digest of the kernel's text")]
    target: Annotated[str, doc("gfx942 …")]
    device: Annotated[str, doc("id of the device in `wavecast arch`")]
    compiler: Annotated[str, doc("such as triton 3.9.0")]
    configurations: Annotated[list[TunedConfigurationJson], doc("the best first")]
    refused: list[RefusedConfigurationJson]


class TuneDocument(JsonObject, tag_field="schema", tag="wavecast.tune/1"):
    """What `wavecast tune --output` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    entries: list[TunedProblemJson]
