"""What the model says about one launch on one device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec

from wavecast.json_objects import Count, JsonObject, doc

FIDELITIES = {
    "formula": "the op's formula",
    "tile": "a tile configuration",
    "static": "the code and its trip counts",
    "executed": "an executed sample of workgroups",
}
"""Where the demand came from, from the coarsest to the finest."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the predicted time: of a source line, an IR line, a stall reason.

    `kind` is `line`, `ir`, `top-down` or `stall`; the shares of one kind add up to the time.
    """

    kind: str
    name: str
    seconds: float


class WhatIf(JsonObject):
    """The time with one thing changed."""

    change: str
    seconds: float
    time_saved: Annotated[float, doc("1 - seconds / predicted seconds")] = msgspec.field(
        name="gain"
    )


class IntervalBasis(JsonObject):
    """Which residuals an interval comes from."""

    distance: Annotated[
        Literal[
            "measured",
            "other sizes or dtype",
            "library not measured",
            "chip not measured",
            "target not measured",
            "chip and library not measured",
            "unknown",
        ],
        doc("what separates the prediction from the nearest measurements"),
    ]
    problems: Annotated[Count, doc("residuals")]
    groups: Annotated[Count, doc("left-out groups they are from, which count equally")]
    source: Annotated[str, doc("what was left out of what")]
    wider: Annotated[
        str, doc('why these are not the residuals of this distance; "" where they are')
    ]

    def __str__(self) -> str:
        """`chip not measured: 812 residuals of 9 groups (gemm, chips left out)`."""
        text = f"{self.problems:,} residuals of {self.groups:,} groups ({self.source})"
        reason = f"; {self.wider}" if self.wider else ""
        return f"{self.distance}: {text}{reason}"


@dataclass(frozen=True, slots=True, repr=False)
class Prediction:
    """The time of a launch, in seconds, with an interval that should contain 80 % of measurements.

    `bounds` is the time each resource alone would need; `limiter` names the one that decides (a key
    of `bounds`). `fidelity` is a key of `FIDELITIES`. `assumed` is the configuration the time is
    for where the caller did not give one. `not_modelled` lists what could matter and is left out,
    `notes` why the interval is wider than usual. `basis` is None before the interval is known.
    """

    device: str
    seconds: float
    low: float
    high: float
    limiter: str
    fidelity: str
    bounds: Mapping[str, float]
    assumed: Mapping[str, object] = field(default_factory=dict)
    lines: tuple[Share, ...] = ()
    what_if: tuple[WhatIf, ...] = ()
    not_modelled: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    basis: IntervalBasis | None = None

    def __repr__(self) -> str:
        """`<Prediction mi300x: 4.49 µs (3 µs to 8.11 µs), bound by launch>`."""
        time, low, high = (
            f"{1e6 * seconds:.3g} µs" for seconds in (self.seconds, self.low, self.high)
        )
        return f"<Prediction {self.device}: {time} ({low} to {high}), bound by {self.limiter}>"


__all__ = ["FIDELITIES", "IntervalBasis", "Prediction", "Share", "WhatIf"]
