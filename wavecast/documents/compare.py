"""`wavecast.compare/1`: what `wavecast compare --format json` writes."""

from __future__ import annotations

from typing import Annotated, Literal

from wavecast.documents.measurement import SubjectJson
from wavecast.json_objects import JsonObject, Share, doc


class ComparedFigureJson(JsonObject):
    """One figure of one subject on one device, before and after."""

    subject: SubjectJson
    device: str
    kpi: Annotated[str, doc("name of the figure; empty for the subject as a whole")]
    verdict: Literal[
        "FASTER", "SLOWER", "BETTER", "WORSE", "SAME", "AMBIGUOUS", "GONE", "NEW", "REFUSED"
    ]
    before: float | None
    after: float | None
    ratio: Annotated[float | None, doc("after / before")]
    low: Annotated[float | None, doc("lower end of the interval of ratio")]
    high: Annotated[float | None, doc("upper end of the interval of ratio")]
    p: Annotated[Share | None, doc("probability of such a difference without a change")]
    adjusted: Annotated[Share | None, doc("p with false discoveries under control")]
    reasons: Annotated[list[str], doc("codes with their meaning here")]
    key: Annotated[str, doc("name of the subject")]


class CompareDocument(JsonObject, tag_field="schema", tag="wavecast.compare/1"):
    """What `wavecast compare --format json` writes."""

    before: Annotated[list[str], doc("ids of the runs before")]
    after: Annotated[list[str], doc("ids of the runs after")]
    across_chips: Annotated[
        bool, doc("whether devices differ and shares of the bound are compared")
    ]
    compared: list[ComparedFigureJson]
    notes: list[str]
