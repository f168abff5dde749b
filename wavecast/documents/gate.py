"""`wavecast.gate/1`: what `wavecast gate --format json` writes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from wavecast.benchmarking.gate.guards import KernelLocation
from wavecast.json_objects import JsonObject, doc


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
    location: Annotated[KernelLocation, doc("where the kernel is written")] = field(name="place")
    breaks: Annotated[bool, doc("whether it breaks the gate")]


class GateDocument(JsonObject, tag_field="schema", tag="wavecast.gate/1"):
    """What `wavecast gate --format json` writes."""

    ok: bool
    headline: str
    judged: Annotated[list[JudgedFigureJson], doc("figures that changed, what breaks first")]
    same: Annotated[int, doc("number of figures that did not change")]
    notes: list[str]
