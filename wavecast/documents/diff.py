"""`wavecast.diff/1` and `wavecast.bisect/1`: what `wavecast diff --format json` writes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from wavecast.documents.explain import FailureJson
from wavecast.json_objects import Count, JsonObject, NonNegative, Numbers, Positive, doc


class DeltaJson(JsonObject):
    """A number before and after; null on a side without it."""

    before: float | None
    after: float | None


class LoopFiguresJson(JsonObject):
    """A loop on one side."""

    index: Count
    depth: Positive
    trip_count: Annotated[NonNegative | None, doc("iterations per entry; null when unknown")]
    cycles: Annotated[Numbers, doc("clock cycles per iteration by pipe")]
    limiter: Annotated[str, doc("pipe with the most cycles")]
    critical_path: Annotated[
        NonNegative | None, doc("loop-carried dependency chain of one wave, clock cycles")
    ]
    instructions: Annotated[Numbers, doc("instructions per iteration by class")]


class RegionJson(JsonObject):
    """A loop without the loops it contains, or all code outside of loops."""

    loop: bool
    line_before: Annotated[Positive | None, doc("source line before")]
    line_after: Annotated[Positive | None, doc("source line after")]
    text: Annotated[str, doc("text of the line")]
    spent: Annotated[DeltaJson, doc("seconds or cycles of its instructions, see basis")]
    before: LoopFiguresJson | None
    after: LoopFiguresJson | None
    changes: Annotated[Count, doc("number of rows that differ")]
    rows: Annotated[
        list[Annotated[list[Any], Meta(min_length=5, max_length=5)]],
        doc(
            "[same | operands | changed | gone | new, instruction index before, after, text "
            "before, text after]; empty without changes"
        ),
    ]


class LineDeltaJson(JsonObject):
    """A source line, matched by its text."""

    file: str
    line_before: Positive | None
    line_after: Positive | None
    text: str
    spent: Annotated[DeltaJson, doc("seconds or cycles of its instructions, see basis")]


class ChangedFindingJson(JsonObject):
    """A finding of one side."""

    rule: str
    severity: Literal["error", "warning", "note"]
    message: str
    line: int | None


class KernelDiffJson(JsonObject):
    """One launched kernel on one device, before and after."""

    kernel: Annotated[str, doc("symbol")]
    number: Annotated[Positive, doc("number of the launch of that name")]
    device: Annotated[str, doc("id of the device in `wavecast arch`")]
    arch: Annotated[str, doc("target, such as gfx942 or sm_90")]
    sides: Annotated[list[Literal["before", "after"]], doc("the sides that have the kernel")] = (
        msgspec.field(name="in")
    )
    same_code: Annotated[bool, doc("whether machine code and metadata are equal")]
    figures: Annotated[dict[str, DeltaJson], doc("by KPI")]
    resources: Annotated[dict[str, DeltaJson], doc("registers, LDS, occupancy …")]
    mix: Annotated[dict[str, DeltaJson], doc("instructions by cost class")]
    basis: Annotated[Literal["seconds", "cycles"], doc("unit of every spent")]
    responsible: Annotated[
        Count | None, doc("index of the region with most of the change; null without a change")
    ]
    regions: list[RegionJson]
    lines: Annotated[list[LineDeltaJson], doc("source lines whose time changed")]
    findings_gone: list[ChangedFindingJson]
    findings_new: list[ChangedFindingJson]


class DiffDocument(JsonObject, tag_field="schema", tag="wavecast.diff/1"):
    """What `wavecast diff --format json` writes. Unknown numbers are null."""

    before: Annotated[str, doc("name of the version before")]
    after: Annotated[str, doc("name of the version after")]
    kernels: list[KernelDiffJson]
    failed_before: list[FailureJson]
    failed_after: list[FailureJson]
    notes: list[str]


class ProbeJson(JsonObject):
    """One release that was tried."""

    release: str
    values: Annotated[Numbers, doc("the figure by kernel and device")]
    failed: Annotated[str, doc("why it could not be tried; empty where it could")]
    worse: Annotated[list[str], doc("figures worse than those of the oldest release")]
    verdict: Literal["good", "worse", "skipped"]


class BisectDocument(JsonObject, tag_field="schema", tag="wavecast.bisect/1"):
    """What `wavecast diff --bisect --format json` writes."""

    kpi: Annotated[str, doc("name of the figure")]
    releases: Annotated[list[str], doc("oldest first")]
    first_worse: Annotated[str, doc("empty when the newest release is not worse")]
    last_good: str
    undecided: Annotated[
        list[str], doc("releases in between that could not be tried; any may be the first")
    ]
    probes: Annotated[list[ProbeJson], doc("in the order of trying")]
    diff: Annotated[DiffDocument | None, doc("the two releases around the change")]
