"""`wavecast.history/1`: what `wavecast history --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.documents.measurement import ConditionsJson, RunJson, SubjectJson
from wavecast.json_objects import JsonObject, NonNegative, doc


class HistoryPointJson(RunJson):
    """A figure in one run."""

    value: Annotated[float, doc("median")]
    low: Annotated[float, doc("lower end of the middle half of the samples, or of the interval")]
    high: Annotated[float, doc("upper end")]
    samples: Annotated[int, doc("number of samples")]
    digest: Annotated[str, doc("of the machine code")]


class HistoryChangeJson(JsonObject):
    """A new level of a figure."""

    at: Annotated[int, doc("index of its first point")]
    before: Annotated[float, doc("median of the level before")]
    after: Annotated[float, doc("median of the level after")]
    ratio: Annotated[NonNegative | None, doc("after / before; null from or to zero")]
    worse: bool
    commits: Annotated[int | None, doc("commits since the run before; null when unknown")]
    also: Annotated[list[str], doc("what else changed in that run")]
    few: Annotated[bool, doc("whether there are too few runs to tell a change from outliers")]
    run: Annotated[str, doc("id of the first run of the level")]
    commit: str


class HistorySeriesJson(JsonObject):
    """One figure of one subject on one device over the runs."""

    subject: SubjectJson
    key: Annotated[str, doc("name of the subject")]
    device: str
    conditions: ConditionsJson
    kpi: Annotated[str, doc("name of the figure")]
    unit: str
    points: Annotated[list[HistoryPointJson], doc("by run")]
    changes: list[HistoryChangeJson]


class HistoryDocument(JsonObject, tag_field="schema", tag="wavecast.history/1"):
    """What `wavecast history --format json` writes."""

    runs: Annotated[list[str], doc("ids of the runs, oldest first")]
    series: Annotated[list[HistorySeriesJson], doc("by subject, device and figure")]
    notes: Annotated[list[str], doc("what was left out or is uncertain")]
