"""`wavecast.gate/1`, what `wavecast gate --format json` writes, and its baseline,
`wavecast.baseline/1`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType, field

from wavecast.documents.base import JsonObject, doc


class KernelLocationJson(JsonObject):
    """Where a kernel is written."""

    file: str
    line: int


class JudgedFigureJson(JsonObject):
    """One figure of a subject on a device, or the subject as a whole."""

    subject: str
    device: str
    kpi: Annotated[str, doc("name of the figure; empty for the subject as a whole")]
    status: Literal["WORSE", "WRONG", "FAILED", "GONE", "LOST", "WARN", "NEW", "BETTER", "SAME"]
    before: float | None
    after: float | None
    limit: Annotated[float | None, doc("the worst value that passes")]
    reason: str
    location: Annotated[KernelLocationJson, doc("where the kernel is written")] = field(
        name="place"
    )
    breaks: Annotated[bool, doc("whether it breaks the gate")]


class GateDocument(JsonObject, tag_field="schema", tag="wavecast.gate/1"):
    """What `wavecast gate --format json` writes."""

    ok: bool
    headline: str
    judged: Annotated[list[JudgedFigureJson], doc("figures that changed, what breaks first")]
    same: Annotated[int, doc("number of figures that did not change")]
    notes: list[str]


class BaselineEntryJson(JsonObject):
    """The figures of one subject on one device."""

    figures: Annotated[dict[str, float], doc("by KPI")]
    code: Annotated[str | UnsetType, doc("digest of the machine code; absent when unknown")] = UNSET
    compiler: Annotated[str | UnsetType, doc("name and version; absent when unknown")] = UNSET
    timing: Annotated[str | UnsetType, doc("how times were measured; absent when unknown")] = UNSET


class BaselineDocument(JsonObject, tag_field="schema", tag="wavecast.baseline/1"):
    """The committed figures, which `wavecast gate --update` writes."""

    subjects: Annotated[dict[str, dict[str, BaselineEntryJson]], doc("by subject and device")]
