"""`wavecast.check/1`: what `wavecast run --check --check-format json` writes."""

from __future__ import annotations

from typing import Annotated, Literal

from wavecast.documents.kernel import CallSiteJson
from wavecast.emulate.check.gpus.memory import LinkTraffic
from wavecast.json_objects import Count, JsonObject, Positive, Size3, doc


class InstructionJson(JsonObject):
    """An instruction of the program."""

    index: Count
    text: str


class OtherInstructionJson(JsonObject):
    """The second instruction of a race, the outstanding operation, or the origin of a value."""

    index: Count
    text: str
    location: CallSiteJson | None
    kernel: Annotated[str, doc("symbol of the kernel that has it")]
    gpu: Annotated[Count | None, doc("that executed it, of several; null for one GPU")]
    workgroup: Annotated[
        Size3 | None, doc("that executed it, of another launch; null for this launch or several")
    ]


class CheckReportJson(JsonObject):
    """One error of a kernel, by its first occurrence."""

    kind: Annotated[str, doc("what is wrong, such as lds-race")]
    severity: Literal["error", "warning", "note"]
    kernel: Annotated[str, doc("symbol")]
    arch: Annotated[str, doc("target of the code")]
    message: str
    explanation: Annotated[str, doc("what this kind of report means")]
    instruction: InstructionJson
    location: CallSiteJson | None
    workgroup: Annotated[
        Size3 | None, doc("null when the report holds for every wave that gets there")
    ]
    wave: Annotated[Count | None, doc("index in the workgroup")]
    gpu: Annotated[Count | None, doc("of several, by number; null for one GPU")]
    lanes: list[Count]
    addresses: Annotated[
        list[str], doc("of the first lane, hexadecimal: in global memory, or byte offsets in LDS")
    ]
    other: OtherInstructionJson | None
    count: Annotated[Positive, doc("how often it happened")]


class CheckDocument(JsonObject, tag_field="schema", tag="wavecast.check/1"):
    """What `wavecast run --check --check-format json` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    reports: Annotated[list[CheckReportJson], doc("errors first, then by kernel and instruction")]
    traffic: Annotated[list[LinkTraffic], doc("of several GPUs, the most first")]
