"""The interval of a prediction, from what earlier predictions of its kind missed by.

`residuals.toml` holds quantiles of log(measured / predicted), written by
`python -m calibration.validate --write-intervals`. A row is for a class of ops, a fidelity, a
target, a limiter and a decade of predicted time; "" is all of them, and as a target the
unmeasured targets, whose residuals are those of targets left out of a calibration. The narrowest
row that matches counts; an op without measurements gets the row of all ops together.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from wavecast.arch import Device
from wavecast.model.prediction import Prediction

COVERAGE = 0.8
"""Share of measurements an interval should hold."""

ANY = "any"
"""Op class of the row for ops without measurements."""

SIZES = ((1e-5, "<10 µs"), (1e-4, "10–100 µs"), (1e-3, "0.1–1 ms"), (math.inf, "≥1 ms"))

Key = tuple[str, str, str, str, str]
"""Op class, fidelity, target, limiter, size."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """Quantiles of log(measured / predicted) of `n` problems."""

    low: float
    high: float
    n: int


def size_class(seconds: float) -> str:
    """The decade of a time: `<10 µs`, `10–100 µs`, `0.1–1 ms`, `≥1 ms`."""
    return next(name for below, name in SIZES if seconds < below)


def bracketed(
    prediction: Prediction, op_class: str, device: Device, *, widen: float = 1.0
) -> Prediction:
    """The prediction with its interval, and a note where that is wider than usual.

    `widen` multiplies the logarithmic width, for reasons the caller notes.
    """
    row, notes = residuals(prediction, op_class, device)
    return replace(
        prediction,
        low=prediction.seconds * math.exp(min(0.0, row.low) * widen),
        high=prediction.seconds * math.exp(max(0.0, row.high) * widen),
        notes=(*prediction.notes, *notes),
    )


def residuals(
    prediction: Prediction, op_class: str, device: Device
) -> tuple[Residuals, tuple[str, ...]]:
    """The row for a prediction, and notes on what makes it a wider one than usual."""
    rows = table()
    of_op = keys(
        op_class,
        prediction.fidelity,
        device.target,
        prediction.limiter,
        size_class(prediction.seconds),
    )
    key = next((key for key in of_op if key in rows), None)
    if key is None:
        return rows[ANY, "", "", "", ""], (f"no measurements of {op_class} to judge the error by",)
    known = bool(key[2])
    return rows[key], () if known else (f"{op_class} was not measured on {device.target}",)


def keys(op_class: str, fidelity: str, target: str, limiter: str, size: str) -> tuple[Key, ...]:
    """The rows that hold for a prediction, the narrowest first; the last for any target."""
    return (
        (op_class, fidelity, target, limiter, size),
        (op_class, fidelity, target, limiter, ""),
        (op_class, fidelity, target, "", size),
        (op_class, fidelity, target, "", ""),
        (op_class, "", target, "", ""),
        (op_class, "", "", "", ""),
    )


@cache
def table() -> Mapping[Key, Residuals]:
    """The rows of `residuals.toml`."""
    text = (resources.files("wavecast.model") / "residuals.toml").read_text(encoding="utf-8")
    return {
        (op, fidelity, target, limiter, size): Residuals(low, high, n)
        for op, fidelity, target, limiter, size, low, high, n in tomllib.loads(text)["rows"]
    }


__all__ = ["ANY", "COVERAGE", "SIZES", "Residuals", "bracketed", "keys", "residuals", "size_class"]
