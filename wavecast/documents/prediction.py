"""The predicted time of a launch or an operation, in `wavecast.explain/1` and
`wavecast.operation/1`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from wavecast.json_objects import Count, JsonObject, NonNegative, doc
from wavecast.perfmodel.prediction import WhatIf

PartKind = Literal["top-down", "stall", "line", "ir"]
"""Kinds of parts of a time, in the order in which views show them."""


class TimePartJson(JsonObject):
    """A part of the predicted time."""

    kind: PartKind
    name: str
    seconds: float


class IntervalBasisJson(JsonObject):
    """Which residuals an interval comes from."""

    distance: Annotated[
        Literal[
            "measured",
            "other sizes or dtype",
            "library not measured",
            "chip not measured",
            "target not measured",
            "chip and library not measured",
        ],
        doc("what separates the prediction from the nearest measurements"),
    ]
    problems: Annotated[Count, doc("residuals")]
    groups: Annotated[Count, doc("left-out groups they are from, which count equally")]
    source: Annotated[str, doc("what was left out of what")]
    wider: Annotated[
        str, doc('why these are not the residuals of this distance; "" where they are')
    ]


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
    basis: Annotated[IntervalBasisJson | None, doc("the residuals of the interval")]


__all__ = ["IntervalBasisJson", "PartKind", "PredictionJson", "TimePartJson", "WhatIf"]
