"""The predicted time of a launch or an operation, in `wavecast.explain/1` and
`wavecast.operation/1`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from wavecast.json_objects import JsonObject, NonNegative, doc
from wavecast.perfmodel.prediction import IntervalBasis, WhatIf

PartKind = Literal["top-down", "stall", "line", "ir"]
"""Kinds of parts of a time, in the order in which views show them."""


class TimePartJson(JsonObject):
    """A part of the predicted time."""

    kind: PartKind
    name: str
    seconds: float


class PredictionJson(JsonObject):
    """The predicted time of one launch and where it goes."""

    seconds: Annotated[float, Meta(gt=0), doc("predicted time of one launch")]
    low: Annotated[NonNegative, doc("lower end of the 80 % interval of measurements")]
    high: Annotated[NonNegative, doc("upper end of the interval")]
    limiter: Annotated[str, doc("the largest bound")]
    fidelity: Annotated[
        Literal["formula", "tile", "static", "executed"],
        doc(
            "what the prediction is made from: formula of an op, tile configuration, code and "
            "trip counts, executed sample"
        ),
    ]
    bounds: Annotated[dict[str, NonNegative | None], doc("seconds each resource needs on its own")]
    assumed: Annotated[
        dict[str, Any], doc("configuration and clock of the prediction that the input leaves open")
    ]
    lines: Annotated[list[TimePartJson], doc("parts of the time; parts of one kind add up to it")]
    what_if: Annotated[list[WhatIf], doc("the time with one thing changed, simulated again")]
    not_modelled: list[str]
    notes: Annotated[list[str], doc("why the interval is wider than usual")]
    basis: Annotated[IntervalBasis | None, doc("the residuals of the interval")]


__all__ = ["PartKind", "PredictionJson", "TimePartJson", "WhatIf"]
