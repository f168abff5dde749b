"""Parts of measurements that several documents have."""

from __future__ import annotations

from typing import Annotated

from wavecast.json_objects import JsonObject, doc


class SubjectJson(JsonObject):
    """What was measured."""

    kind: Annotated[str, doc("kernel, operator or callable")]
    name: str
    axes: Annotated[dict[str, str | int | float | bool], doc("sizes and dtypes it was measured at")]
    part: Annotated[str, doc("a kernel of an operator or callable; empty for all of it")]


class ConditionsJson(JsonObject):
    """How it was measured."""

    cache: Annotated[str, doc("cold or warm")]
    timing: Annotated[str, doc("events, graph, predicted, profiler …")]
    inputs: Annotated[str, doc("random or given")]
    clocks: Annotated[str, doc("state of the clocks; empty when unknown")]


class RunJson(JsonObject):
    """One invocation that measured."""

    id: str
    started: Annotated[str, doc("UTC, ISO 8601")]
    label: str
    command: str
    commit: str
    dirty: Annotated[bool, doc("whether the checkout had changes")]
    finished: Annotated[str, doc("UTC, ISO 8601; empty for an interrupted run")]


class StoredRunJson(RunJson):
    """A run of a store: an element of what `wavecast store list --format json` writes."""

    records: Annotated[int, doc("number of records")]
