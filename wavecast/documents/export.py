"""`wavecast.export/1`: the manifest of the C sources that `wavecast export` writes."""

from __future__ import annotations

from typing import Annotated, Any

from wavecast.json_objects import Count, JsonObject, NonNegative, Positive, Size3, doc


class ExportBufferJson(JsonObject):
    """Memory of the call."""

    name: str
    role: Annotated[str, doc("input, updated, output, workspace or constant")]
    dtype: Annotated[str, doc("name in PyTorch")]
    shape: list[Count]
    strides: Annotated[list[int], doc("elements")]
    bytes: Count


class ExportLaunchJson(JsonObject):
    """A launch of the call. Seconds are predicted; null where `why_not` says why."""

    kernel: Annotated[str, doc("symbol")]
    file: Annotated[str, doc("the code object")]
    grid: Annotated[Size3, doc("workgroups")]
    workgroup_size: Annotated[Positive, doc("threads")]
    lds_bytes: Annotated[Count, doc("dynamic LDS (shared memory) of the launch")]
    seconds: NonNegative | None
    low: NonNegative | None
    high: NonNegative | None
    why_not: Annotated[str, doc("why there is no prediction; empty where there is one")]


class ExportTargetJson(JsonObject):
    """The call on one device."""

    device: Annotated[str, doc("the device whose configuration was chosen")]
    target: Annotated[str, doc("compiler target of the code")]
    workspace_bytes: Count
    buffers: list[ExportBufferJson]
    launches: list[ExportLaunchJson]


class ExportDocument(JsonObject, tag_field="schema", tag="wavecast.export/1"):
    """What `wavecast export` writes as JSON."""

    name: Annotated[str, doc("prefix of the C functions")]
    operator: str
    sizes: dict[str, Any]
    version: Annotated[str, doc("version of wavecast")]
    targets: list[ExportTargetJson]


__all__ = ["ExportBufferJson", "ExportDocument", "ExportLaunchJson", "ExportTargetJson"]
